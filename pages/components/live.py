"""Show a run while it goes on: where it stands, its loss, the elasticities so far. Looks again every second."""

from __future__ import annotations

import streamlit as st

from core.report.wording import elasticity, loss, plural, seconds, size
from core.runs.snapshots import RunSnapshot
from pages.components.actions import FORWARD, attempt, confirm_discard, show_refusal
from pages.components.address import work_on
from pages.components.errors import guard
from pages.components.livecharts import estimate_rows, estimates_chart, loss_chart
from pages.components.navigation import page
from pages.components.pictures import theme
from pages.components.services import gone, manager, snapshot
from pages.components.states import state_badge
from pages.components.text import escaped

EVERY = "1s"
PANEL_HEIGHT = 460
"""Pixels; fixed, so that nothing jumps when the first steps arrive."""
PARTS = ("Whole run", "Last tenth")


def live_panel(run_id: str) -> None:
    """The panel of one run, on a timer while the run is active; a watched quick fit leads on to its result."""
    run = snapshot(run_id)
    if st.session_state.get(FORWARD) == run_id and not run.state.active:
        st.session_state[FORWARD] = ""
        if run.usable:
            st.switch_page(page("elasticities"))
    show_refusal()
    st.fragment(guard(_panel), run_every=EVERY if run.state.active else None)(run_id, run.state.active)


def _panel(run_id: str, was_active: bool) -> None:
    if gone(run_id):
        # Discarded in another tab: the frame says so.
        st.rerun()
    run = snapshot(run_id)
    if was_active and not run.state.active:
        st.rerun()
    _headline(run)
    left, right = st.columns([5, 4], gap="medium")
    with left, st.container(border=True, height=PANEL_HEIGHT):
        _loss(run)
    with right, st.container(border=True, height=PANEL_HEIGHT):
        _estimates(run)


def _headline(run: RunSnapshot) -> None:
    left, right = st.columns([3, 2], vertical_alignment="center")
    with left:
        st.markdown(f"{state_badge(run)} **{escaped(run.name)}**")
        st.caption(" · ".join(_facts(run)))
    with right:
        _buttons(run)
    if run.state.active:
        st.progress(run.share_done, text=_doing(run))
    elif run.outcome:
        st.markdown(escaped(run.outcome))


def _facts(run: RunSnapshot) -> list[str]:
    facts = [f"{seconds(run.elapsed)} elapsed"]
    if run.left is not None:
        facts.append(f"at most {seconds(run.left)} left")
    if run.steps_per_second:
        facts.append(f"{_rate(run.steps_per_second)} steps/s")
    if run.n_obs:
        facts.append(plural(run.n_obs, "observation"))
    if run.memory_bytes:
        facts.append(f"{size(run.memory_bytes)} of memory")
    return facts


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _doing(run: RunSnapshot) -> str:
    if run.queue_position:
        return f"Waiting: number {run.queue_position} in the queue"
    return f"{run.phase or 'Starting'} · step {run.steps_done:,} of {run.steps_total:,}"


def _buttons(run: RunSnapshot) -> None:
    act = manager()
    with st.container(horizontal=True, horizontal_alignment="right"):
        if run.resumable:
            st.button("Resume", icon=":material/play_arrow:", on_click=attempt, args=(act.resume, run.run_id))
        if run.state.active:
            if st.button("Discard", icon=":material/delete:", key="discard"):
                confirm_discard(run.run_id, run.name)
            st.button("Pause", icon=":material/pause:", on_click=attempt, args=(act.pause, run.run_id))
            st.button(
                "Stop and keep", icon=":material/stop_circle:", type="primary", on_click=attempt,
                args=(act.stop, run.run_id),
            )  # fmt: skip
        else:
            if st.button("New fit", icon=":material/tune:", key="plan-another"):
                work_on(run="")
                st.rerun()
            if run.usable and st.button("See the elasticities", type="primary", icon=":material/show_chart:"):
                st.switch_page(page("elasticities"))


def _loss(run: RunSnapshot) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown("**Loss per observation**", width="content", help=LOSS_HELP)
        part = st.segmented_control(
            "Part of the run", PARTS, default=PARTS[0], required=True, label_visibility="collapsed", key="loss-part"
        )
    curve = run.progress.tail if part == PARTS[1] else run.progress.whole
    if not len(curve.step):
        st.caption("The first steps are on their way." if run.state.active else "No loss was recorded.")
        return
    now = curve.smooth[-1] if run.loss is None else run.loss
    words = f"Loss per observation went from {loss(curve.smooth[0])} to {loss(now)}."
    st.vega_lite_chart(spec=loss_chart(curve), key="loss-chart", alt=words)
    verdict = run.verdict[:1].upper() + run.verdict[1:] if run.state.active else ""
    st.caption(f"{words} {verdict}{'.' if verdict else ''}")


LOSS_HELP = (
    "How far the fitted posterior is from the data, in nats per observation: lower is better, flat is done. Of engines "
    "with noise, as SVI, the last figure is the mean of their last hundred steps."
)


def _estimates(run: RunSnapshot) -> None:
    st.markdown("**Elasticities so far**", help=ESTIMATES_HELP)
    if run.progress.estimates is None:
        st.caption("They appear with the first steps." if run.state.active else "None were reported.")
        return
    rows = estimate_rows(run.progress.estimates, run.progress, run.plan.mass)
    market = rows.iloc[0]
    words = f"Market {elasticity(market['mean'], market['lower'], market['upper'])}"
    st.vega_lite_chart(spec=estimates_chart(rows, theme()), key="estimates-chart", alt=words)
    st.caption(f"{words}: per cent of units per one per cent of price.")


ESTIMATES_HELP = "Per cent of units per one per cent of price. They still move until the run has ended."
