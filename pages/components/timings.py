"""Show what was timed: start a benchmark and follow it, the ratios that count, pictures, the table of everything."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

import streamlit as st

from core.benchmark.figures import (
    accuracy_chart,
    beside_published,
    published_table,
    record_table,
    scaling_lines,
    speedup_bars,
)
from core.benchmark.jobs import ask_to_stop, last_words, running, start_benchmark
from core.benchmark.options import CASE_HELP, BenchmarkOptions
from core.benchmark.published import NOTE
from core.benchmark.ratios import BASELINES, check_targets
from core.benchmark.records import Report, newest_of_each_case
from core.benchmark.runner import kept_reports, shipped_reports
from core.declare import declarations
from core.errors import UserError
from core.report.chart import Chart
from core.report.exports import to_csv
from core.report.palette import Theme
from pages.components.errors import guard
from pages.components.forms import show_field
from pages.components.pictures import show_chart, show_kept, theme
from pages.components.problems import show_problems
from pages.components.services import settings
from pages.components.text import escaped

EVERY = "1s"
NUMBERS = ("products", "periods", "rounds", "seconds")
PLACES = {
    "cpu": "CPU",
    "gpu": "One GPU",
    "all-gpus": "All GPUs",
    "cpu:2": "2 simulated",
    "cpu:4": "4 simulated",
    "cpu:8": "8 simulated",
}
SIMULATED = "Simulated devices show that the answer does not depend on their number; they are no faster."
QUICK = {"products": 2_000, "periods": 104, "rounds": 1, "seconds": 1.0}
"""What the form starts with: a look in minutes; the command line's defaults take an hour or more."""


def reports() -> dict[str, tuple[Report, bool]]:
    """Reports by label, newest first, each with whether it came with the project. Of those that did, the newest run of
    every case comes first, in one."""
    shipped = shipped_reports()
    found = [(_label(report, False), (report, False)) for report in kept_reports(settings())]
    if together := newest_of_each_case(shipped):
        found.append((f"{_label(together, True)}: every case", (together, True)))
    found += [(_label(report, True), (report, True)) for report in shipped]
    return {label: entry for label, entry in found if entry[0].records}


def _label(report: Report, shipped: bool) -> str:
    machine = next((r.environment for r in report.records if r.environment), None)
    where = f" · {machine.processor}, {machine.cores} cores" if machine else ""
    state = "" if report.state == "finished" else f" · {report.state}"
    return (
        f"{report.started.replace('T', ' ').removesuffix('Z')} UTC{where}{state}{' · came with Isoelastic' * shipped}"
    )


def pick_report(found: dict[str, tuple[Report, bool]]) -> Report:
    """The report to show: the newest, or another one by choice."""
    chosen = st.selectbox("Report", list(found), key="report", label_visibility="collapsed", width=620)
    return found[chosen][0]


@st.dialog("Time this machine", width="large")
def ask_to_run() -> None:
    """The form of a benchmark; it says what each case measures."""
    cases = st.pills("Cases", list(CASE_HELP), selection_mode="multi", default=list(CASE_HELP), key="time-cases")
    st.caption("  \n".join(f"**{case}**: {CASE_HELP[case]}" for case in cases))
    places = st.pills(
        "Devices", list(PLACES), selection_mode="multi", default=["cpu", "gpu"], key="time-places", help=SIMULATED,
        format_func=lambda place: PLACES[place],
    )  # fmt: skip
    declared = {f.name: (f, rule) for f, rule in declarations(BenchmarkOptions)}
    columns = st.columns(len(NUMBERS))
    entered = {}
    for column, name in zip(columns, NUMBERS, strict=True):
        with column:
            entered[name] = show_field(*declared[name], QUICK[name], f"time-{name}")
    st.caption("The machine should be idle. Fits wait while a cell is timed; each cell runs in a process of its own.")
    if st.button("Start", type="primary", icon=":material/timer:", key="time-start"):
        try:
            start_benchmark(BenchmarkOptions(cases=",".join(cases), placements=",".join(places), **entered), settings())
        except UserError as error:
            show_problems(error.problems)
            return
        st.rerun()


def run_button() -> None:
    """Opens the form; while something is timed it says so instead."""
    busy = running(settings())
    why = f"A {busy} is running on this machine." if busy else "Measure the article's recipe and ours on this machine."
    if st.button(
        "Run on this machine", type="primary", icon=":material/timer:", key="time", disabled=bool(busy), help=why
    ):
        ask_to_run()


def follow() -> None:
    """Progress of a running benchmark, with a button that calls it off; else why the last one ended early."""
    if running(settings()) == "benchmark":
        st.fragment(guard(_progress), run_every=EVERY)()
        return
    newest = next(iter(kept_reports(settings())), None)
    if newest is None and (words := last_words(settings())):
        st.warning(f"The last benchmark ended without a record: {escaped(words)}", icon=":material/warning:")
    elif newest is not None and newest.remark:
        done = f"The last benchmark measured {len(newest.records)} of {newest.planned}."
        st.warning(f"{done} {escaped(newest.remark)}", icon=":material/timer_off:")


def _progress() -> None:
    if running(settings()) != "benchmark":
        st.rerun()
    report = next(iter(kept_reports(settings())), None)
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        if report is None or report.state != "running":
            st.progress(0.0, text="Starting")
        else:
            rounds = max(int(report.options.get("rounds", 1)), 1)
            st.progress(_share(report, rounds), text=f"{len(report.records)} of {report.planned} · {report.doing}")
        st.button("Cancel", icon=":material/close:", key="time-cancel", on_click=ask_to_stop, args=(settings(),))


def _share(report: Report, rounds: int) -> float:
    """Share of the cells measured at least once; later rounds fill what is left of the bar."""
    done = len(report.records) / max(report.planned, 1)
    at = report.doing.rpartition("(round ")[2].partition(" ")[0]
    earlier = int(at) - 1 if at.isdigit() else 0
    return min((earlier + (done if earlier == 0 else 0.5)) / rounds, 1.0)


def top_line(report: Report) -> None:
    """What must hold, as far as the report measured it."""
    found = [finding for finding in check_targets(report.records) if finding.value is not None]
    with st.container(horizontal=True, gap="small"):
        for finding in found:
            unit = finding.target.name.rpartition(", ")[2]
            bound = f"{'at least' if finding.target.at_least else 'at most'} {finding.target.bound:g} wanted"
            told = bound if finding.holds else f"missed: {bound}"
            st.metric(
                finding.target.short, f"{finding.value:.3g} {_unit(unit)}", told,
                delta_color="off", delta_arrow="off", border=True, width=186, help=finding.sentence,
            )  # fmt: skip


def _unit(words: str) -> str:
    return {"times faster": "x faster", "in article steps": "steps", "times its seconds": "x"}.get(words, "")


PICTURES = ("Times faster", "Accuracy against time", "Rows against seconds", "Beside the article", "Everything")


def show_pictures(report: Report, others: tuple[Report, ...]) -> None:
    """One picture at a time, by name; nothing is drawn that is not looked at."""
    view = st.segmented_control(
        "Picture", PICTURES, default=PICTURES[0], required=True, key="timing-view", label_visibility="collapsed"
    )
    if view == PICTURES[0]:
        _speedups(report)
    elif view == PICTURES[1]:
        _show(report, "accuracy-against-time", lambda theme: accuracy_chart(report.records, theme))
        st.caption(
            "Nobody ran the article's million steps here: the dotted line is where they would end at the measured rate."
        )
    elif view == PICTURES[2]:
        _show(report, "rows-against-seconds", lambda theme: scaling_lines(report.records, theme))
    elif view == PICTURES[3]:
        _published(report)
    else:
        _everything(report, others)


def _show(report: Report, key: str, draw: Callable[[Theme], Chart]) -> None:
    """A chart of a report; one that still grows is drawn anew at every look."""
    if report.state == "running":
        show_chart(draw(theme()), key)
    else:
        show_kept(key, (report.started, report.command, len(report.records)), draw)


def _speedups(report: Report) -> None:
    measured = dict.fromkeys(record.case for record in report.records if record.case in BASELINES)
    if not measured:
        st.info("This report has no case with a baseline: run step, live, posterior or scale.")
        return
    case = st.segmented_control(
        "Case", list(measured), default=next(iter(measured)), required=True, key="timing-case",
        label_visibility="collapsed",
    )  # fmt: skip
    st.caption(CASE_HELP[case])
    _show(report, f"times-faster-{case}", lambda theme: speedup_bars(report.records, case, theme))
    _not_run(report, case)


def _not_run(report: Report, case: str) -> None:
    missing = dict.fromkeys(
        "- " + escaped(f"{record.variant} on {record.placement}: {record.error}")
        for record in report.records
        if record.case == case and not record.success
    )
    if missing:
        with st.expander(f"{len(missing)} not run", icon=":material/info:"):
            st.markdown("\n".join(missing))


def _published(report: Report) -> None:
    _show(report, "beside-the-article", lambda theme: beside_published(report.records, theme))
    st.caption(NOTE)
    with st.expander("The published figures"):
        st.dataframe(published_table(), hide_index=True, key="published", alt="The article's published figures")


def _everything(report: Report, others: tuple[Report, ...]) -> None:
    # One that was put together of several runs is not compared with these.
    apart = (other for other in others if not any(record in report.records for record in other.records))
    earlier = tuple(other for other in apart if other.started < report.started)
    table = record_table(report.records, earlier)
    st.dataframe(table, hide_index=True, key="all-records", height=480, alt="Every record of the report")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"`{report.command}` · {report.started}", width="stretch")
        st.download_button(
            "CSV", lambda: to_csv(table), "benchmark.csv", "text/csv", key="records-csv", on_click="ignore",
            icon=":material/download:",
        )  # fmt: skip
        st.download_button(
            "JSON", lambda: json.dumps(asdict(report), indent=1).encode(), "benchmark.json", "application/json",
            key="records-json", on_click="ignore", icon=":material/download:",
        )  # fmt: skip


def nothing_timed() -> None:
    """For an installation that has timed nothing yet: the published figures, labelled."""
    st.info("Nothing has been timed on this machine yet. Below: what the article published.", icon=":material/timer:")
    show_kept("published-alone", (), lambda theme: beside_published((), theme))
    st.caption(NOTE)
