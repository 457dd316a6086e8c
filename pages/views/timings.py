"""How much faster, at what accuracy, on this machine: the records, and a race of half a minute to watch."""

import streamlit as st

from pages.components.navigation import header
from pages.components.race import race_section
from pages.components.timings import follow, nothing_timed, pick_report, reports, run_button, show_pictures, top_line

VIEWS = ("Records", "Live race")

header("timings")
found = reports()
with st.container(horizontal=True, vertical_alignment="bottom"):
    view = st.segmented_control(
        "View", VIEWS, default=VIEWS[0], required=True, key="timings", label_visibility="collapsed"
    )
    report = pick_report(found) if found and view == VIEWS[0] else None
    st.space("stretch")
    run_button()
follow()
if view == VIEWS[1]:
    race_section()
elif report is None:
    nothing_timed()
else:
    top_line(report)
    show_pictures(report, tuple(other for other, _ in found.values()))
