"""Show the article's recipe and ours side by side for half a minute: where each stands, and how wrong it still is."""

from __future__ import annotations

import altair as alt
import pandas as pd
import streamlit as st

from core.benchmark.figures import THINGS
from core.benchmark.jobs import ask_to_stop, last_words, race_folder, running, start_race
from core.benchmark.race import LANES, Line, RaceOptions, lines_of
from core.declare import declarations
from core.errors import UserError
from core.report.palette import colour
from core.report.wording import MISSING, seconds, share
from pages.components.errors import guard
from pages.components.forms import show_field
from pages.components.pictures import theme
from pages.components.problems import show_problems
from pages.components.services import settings
from pages.components.text import escaped

EVERY = "1s"
FIELDS = ("ours", "products", "periods", "seconds")
NAMES = {"article": "The article's recipe", "ours": "Isoelastic"}
EXPLAINED = (
    "Both fit the same simulated market at the same moment, each on its half of the cores. A lane's clock starts "
    "when it has compiled. The line is the error of ten products that both watch."
)


def race_section() -> None:
    """The form, then both lanes on a timer while they run, and what they reached afterwards."""
    st.caption(EXPLAINED)
    entered = _form()
    busy = running(settings())
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Start the race", type="primary", icon=":material/sports_score:", disabled=bool(busy), key="race"):
            _start(entered)
        if busy == "race":
            st.button("Stop", icon=":material/stop_circle:", key="race-stop", on_click=ask_to_stop, args=(settings(),))
        elif busy:
            st.caption(f"A {busy} is running on this machine: wait for it or cancel it.")
    st.fragment(guard(_lanes), run_every=EVERY if busy == "race" else None)(entered, busy == "race")


def _form() -> RaceOptions:
    declared = {f.name: (f, rule) for f, rule in declarations(RaceOptions)}
    plain = RaceOptions()
    values = {}
    for column, name in zip(st.columns(len(FIELDS)), FIELDS, strict=True):
        with column:
            values[name] = show_field(*declared[name], getattr(plain, name), f"race-{name}")
    return RaceOptions(**values)


def _start(options: RaceOptions) -> None:
    try:
        start_race(options, settings())
    except UserError as error:
        show_problems(error.problems)
        return
    st.rerun()


def _lanes(options: RaceOptions, was_running: bool) -> None:
    if was_running and running(settings()) != "race":
        st.rerun()
    lanes = {lane: lines_of(race_folder(settings()), lane) for lane in LANES}
    if not any(lanes.values()):
        waiting = "Both lanes are drawing their market." if was_running else ""
        st.caption(waiting or escaped(last_words(settings())))
        return
    for column, (lane, lines) in zip(st.columns(len(LANES)), lanes.items(), strict=True):
        with column, st.container(border=True):
            _lane(NAMES[lane], lines, was_running)
    frame = _frame(lanes)
    if len(frame):
        st.altair_chart(_chart(frame, options), key="race-chart", alt=_words(lanes))


def _lane(name: str, lines: tuple[Line, ...], is_running: bool) -> None:
    if not lines:
        st.markdown(f"**{name}**")
        st.caption("Drawing its market." if is_running else "It did not start.")
        return
    last = lines[-1]
    state = "done" if last.done else ("compiling" if last.steps == 0 else "running") if is_running else "stopped"
    st.markdown(f"**{name}** · {state}" + (f" · {seconds(last.seconds)}" if last.seconds else ""))
    with st.container(horizontal=True):
        st.metric("Steps", f"{last.steps:,}")
        st.metric("Error, ten watched", _decimals(last.watched_error), help="RMSE against the known truth.")
        st.metric("Error, all", _decimals(last.error), help="The same of all products, measured at the end.")
        st.metric(
            "Truth inside", MISSING if last.coverage90 is None else share(last.coverage90),
            help="Share of products whose 90 % interval holds the truth, measured at the end.",
        )  # fmt: skip


def _decimals(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3f}"


def _frame(lanes: dict[str, tuple[Line, ...]]) -> pd.DataFrame:
    rows = [
        (NAMES[lane], line.seconds, line.watched_error)
        for lane, lines in lanes.items()
        for line in lines
        if line.watched_error is not None
    ]
    return pd.DataFrame(rows, columns=["who", "seconds", "error"])


def _chart(frame: pd.DataFrame, options: RaceOptions) -> alt.Chart:
    shades = [colour(THINGS["article"], theme()), colour(THINGS[options.ours], theme())]
    longest = max(options.seconds, float(frame["seconds"].max()))
    return (
        alt.Chart(frame)
        .mark_line(point=True, strokeWidth=2.5)
        .encode(
            alt.X("seconds:Q", title="seconds since it had compiled", scale=alt.Scale(domain=[0, longest])),
            alt.Y("error:Q", title="error of ten watched products", scale=alt.Scale(type="log", nice=True)),
            alt.Color("who:N", title=None, scale=alt.Scale(domain=list(NAMES.values()), range=shades),
                      legend=alt.Legend(orient="top")),
        )
        .properties(height=330)
    )  # fmt: skip


def _words(lanes: dict[str, tuple[Line, ...]]) -> str:
    return "; ".join(_said(NAMES[lane], lines[-1]) for lane, lines in lanes.items() if lines) + "."


def _said(name: str, last: Line) -> str:
    return f"{name} after {seconds(last.seconds)}: {last.steps:,} steps, error {_decimals(last.watched_error)}"
