"""List the runs of this installation, and work with the one or compare the few that are chosen."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pandas as pd
import streamlit as st

from core.report.chart import Chart
from core.report.comparison import MOST
from core.report.exports import to_csv
from core.report.figures import compare_runs as against_each_other
from core.report.figures import loss_curves
from core.report.palette import Theme
from core.report.wording import plural, seconds
from core.runs.compare import Comparison, compare_runs
from core.runs.diagnostics import diagnostics_bundle
from core.runs.requests import RunSummary
from pages.components.access import viewer
from pages.components.actions import attempt, confirm_discard
from pages.components.address import work_on
from pages.components.downloads import run_downloads
from pages.components.errors import guarded
from pages.components.navigation import page
from pages.components.pictures import show_kept
from pages.components.redraw import draw_again
from pages.components.services import manager, version
from pages.components.shelf import kept
from pages.components.states import state_badge
from pages.components.text import escaped, when

SHOWN = 200
"""Rows of the largest differences on screen."""


def pick_runs() -> tuple[RunSummary, ...] | None:
    """The runs chosen in the list; None where there are none to choose from."""
    runs = manager().runs(viewer())
    if not runs:
        return None
    st.caption(f"{plural(len(runs), 'run')}. Choose one to open it, two to {MOST} to compare them.")
    selected = st.dataframe(
        run_rows(runs), hide_index=True, on_select="rerun", selection_mode="multi-row", key="runs",
        placeholder="–", alt="Runs, newest first",
        column_config={
            "Loss": st.column_config.NumberColumn(format="%.3f", help="Nats per observation, at the end."),
            "Run": st.column_config.TextColumn(width=320),
            "Data": st.column_config.TextColumn(width=130, help="Click a cell to read the whole of it."),
            "Plan": st.column_config.TextColumn(width=170, help="Click a cell to read the whole of it."),
        },
    )  # fmt: skip
    return tuple(runs[row] for row in selected["selection"]["rows"] if row < len(runs))


def run_rows(runs: Sequence[RunSummary]) -> pd.DataFrame:
    """The list as a table of words and numbers."""
    listed = pd.DataFrame(
        {
            "State": [_state(run) for run in runs],
            "Run": [run.name for run in runs],
            "Data": [run.dataset_name for run in runs],
            "Plan": [run.plan_line for run in runs],
            "Loss": [run.loss for run in runs],
            "Time": [seconds(run.seconds) for run in runs],
            "Started": [when(run.created) for run in runs],
            "Owner": [run.owner for run in runs],
            "Note": [run.note for run in runs],
        }
    )
    return listed.drop(columns=[name for name in ("Owner", "Note") if not listed[name].any()])


def _state(run: RunSummary) -> str:
    if run.queue_position:
        return f"queued, number {run.queue_position}"
    return run.state.value


def work_with_run(run: RunSummary) -> None:
    """Open, resume, name, note, export or delete one run."""
    with st.container(border=True):
        st.markdown(f"{state_badge(run)} **{escaped(run.name)}**")
        st.caption(escaped(run.outcome or run.plan_line))
        with st.container(horizontal=True):
            if st.button("Open", type="primary", icon=":material/open_in_new:"):
                work_on(dataset=run.dataset_id, run=run.run_id)
                st.switch_page(page("elasticities" if run.usable else "model"))
            if run.resumable:
                st.button("Resume", icon=":material/play_arrow:", on_click=attempt, args=(manager().resume, run.run_id))
            if not run.state.active:
                _more_steps(run)
            if run.usable:
                with st.popover("Export", icon=":material/download:"), guarded():
                    run_downloads(run.run_id, f"export-{run.run_id}")
            if run.usable and not run.state.active:
                with guarded():
                    draw_again(run)
            _name_and_note(run)
            if st.button("Delete", icon=":material/delete:"):
                confirm_discard(run.run_id, run.name)


def _more_steps(run: RunSummary) -> None:
    with st.popover("More steps", icon=":material/fast_forward:"), st.form(f"more-{run.run_id}", border=False):
        steps = st.number_input("Further steps", 1, 10_000_000, max(1, run.steps_done), key=f"steps-{run.run_id}")
        if st.form_submit_button("Go on"):
            attempt(manager().more_steps, run.run_id, int(steps))
            work_on(dataset=run.dataset_id, run=run.run_id)
            st.rerun()


def _name_and_note(run: RunSummary) -> None:
    with st.popover("Name and note", icon=":material/edit:"), st.form(f"name-{run.run_id}", border=False):
        name = st.text_input("Name", run.name, max_chars=120)
        note = st.text_area("Note", run.note, max_chars=2_000)
        shared = st.toggle("Others on this server may see it", run.shared) if run.owner else run.shared
        if st.form_submit_button("Keep"):
            attempt(manager().rename, run.run_id, name)
            attempt(manager().set_note, run.run_id, note)
            if shared != run.shared:
                attempt(manager().share, run.run_id, shared)
            st.rerun()


def compare(runs: Sequence[RunSummary]) -> None:
    """Losses, differing choices, and elasticities side by side, largest differences in sd first."""
    ids = tuple(_ids(run) for run in runs)
    found = kept("comparison", (viewer(), *ids), lambda: compare_runs(manager(), tuple(i[0] for i in ids), viewer()))
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True):
        st.markdown("**Loss per observation**")
        show_kept("losses", ids, lambda theme: _losses(found, theme))
    with right, st.container(border=True):
        st.markdown("**Choices that differ**")
        if found.choices.empty:
            st.caption("None: the plans are the same.")
        else:
            st.dataframe(found.choices, hide_index=True, alt="Choices in which the plans differ")
    _side_by_side(found, ids)


def _ids(run: RunSummary) -> tuple[Hashable, ...]:
    """What tells apart all that is compared of a run: its name, how far it came and is to go, its result."""
    return run.run_id, run.name, run.usable, run.seconds, run.steps_total, *version(run.run_id)


def _losses(found: Comparison, theme: Theme) -> Chart:
    curves = {
        name: pd.DataFrame({"step": curve.smooth_step, "loss": curve.smooth}) for name, curve in found.losses.items()
    }
    return loss_curves(curves, theme)


def _side_by_side(found: Comparison, ids: tuple[Hashable, ...]) -> None:
    st.markdown("**Elasticities side by side, largest differences in sd first**")
    if found.without_result:
        st.caption("Without a result: " + escaped(", ".join(found.without_result)) + ".")
    if found.elasticities is None:
        return
    rows = found.elasticities
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    means = {f"{name}: mean": number(name, format="%.2f") for name in found.names if f"{name}: mean" in rows}
    st.dataframe(
        rows.head(SHOWN), hide_index=True, placeholder="–",
        column_order=["product", "category", "level", *means, "spread", "spread_in_sd"],
        alt="Elasticities of the chosen runs side by side",
        column_config=means
        | {name: text(name.capitalize()) for name in ("product", "category", "level")}
        | {
            "spread": number("Difference", format="%.2f", help="Largest mean minus smallest."),
            "spread_in_sd": number("In sd", format="%.2f", help="The same in units of the widest sd."),
        },
    )  # fmt: skip
    if len(rows) > SHOWN:
        st.caption(f"The {SHOWN} largest of {len(rows):,} differences.")
    st.download_button(
        "Download CSV", lambda: to_csv(rows), "comparison.csv", "text/csv", icon=":material/download:",
        on_click="ignore", key="comparison-csv",
    )  # fmt: skip
    if len(found.names) == 2:
        show_kept("runs-against-each-other", ids, lambda theme: against_each_other(rows, *found.names, theme))


def bug_report() -> None:
    """Versions, settings, states of runs and the last log lines in one file; no data in it."""
    st.download_button(
        "Diagnostics for a bug report", lambda: diagnostics_bundle(manager(), viewer()), "isoelastic-diagnostics.zip",
        "application/zip", icon=":material/bug_report:", type="tertiary", on_click="ignore", key="diagnostics",
        help="Versions, settings, states of runs and the last log lines. No sales data and no names.",
    )  # fmt: skip
