"""Is the file understood? Its rows, roles, problems and figures; and the button that fits it."""

import streamlit as st

from pages.components.dataview import show_facts, show_findings, show_overview, show_preview
from pages.components.fitting import fit_buttons
from pages.components.intake import choose_dataset
from pages.components.navigation import header
from pages.components.rolepicker import role_picker
from pages.components.services import checked, overview_of, source
from pages.components.session import workspace
from pages.components.text import escaped

header("data")
top, buttons = st.columns([3, 2], vertical_alignment="bottom")
with top:
    dataset = choose_dataset()
roles = role_picker()
choices = workspace().choices
found = checked(dataset, roles, choices)
with buttons:
    fit_buttons(ready=found.sales is not None)
if found.sales is not None:
    st.markdown(f":material/functions: {escaped(str(found.sales.account))}")
    show_facts(overview_of(dataset, roles, choices))
show_findings(found)
if found.sales is not None:
    show_overview(overview_of(dataset, roles, choices), source(dataset).frame)
else:
    show_preview(source(dataset).frame)
