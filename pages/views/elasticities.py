"""What was learned, and how sure it is: top line, pictures, every product, and what the numbers are not."""

import streamlit as st

from pages.components.address import work_on
from pages.components.downloads import run_downloads
from pages.components.elasticities import found_by, show_pictures, show_table
from pages.components.empty import nothing_learned
from pages.components.findings import limits, outcome_line, pick_mass, pick_run, top_line, usable_runs, waiting_for
from pages.components.navigation import header
from pages.components.nutscheck import check_progress
from pages.components.redraw import require_result
from pages.components.services import result, snapshot
from pages.components.session import workspace

header("elasticities")
waiting_for(workspace().run)
runs = usable_runs()
if not runs:
    nothing_learned()
    st.stop()
check_progress()
bar = st.container(horizontal=True, vertical_alignment="bottom")
with bar:
    run_id = pick_run(runs)
require_result(run_id)
with bar:
    mass = pick_mass(result(run_id).fit.plan.mass)
    st.space("stretch")
    with st.popover("Export", icon=":material/download:", type="primary"):
        run_downloads(run_id, "export")
if run_id != workspace().run:
    work_on(dataset=runs[run_id].dataset_id, run=run_id)
found = found_by(run_id, runs[run_id].name, runs[run_id].dataset_id, mass)
top_line(found.posterior, found.table)
outcome_line(snapshot(run_id), result(run_id).fit)
show_pictures(found)
show_table(found)
limits()
