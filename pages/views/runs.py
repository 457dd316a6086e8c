"""What was done before: every run with its state and result; open, compare, name, resume or delete them."""

from pages.components.actions import show_refusal
from pages.components.empty import nothing_done
from pages.components.navigation import header
from pages.components.runlist import bug_report, compare, pick_runs, work_with_run

header("runs")
show_refusal()
runs = pick_runs()
if runs is None:
    nothing_done()
elif len(runs) == 1:
    work_with_run(runs[0])
elif len(runs) > 1:
    compare(runs)
bug_report()
