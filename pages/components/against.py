"""Read a run against another of the same data: both means in a picture, the largest differences, and what they say."""

from __future__ import annotations

import streamlit as st

from core.inference.fit import Ending
from core.report.comparison import plan_differences
from core.report.figures import compare_runs
from core.report.pairs import Pair, displayed_pair, pair_of, short_names
from core.runs.nutscheck import partner_of
from pages.components.findings import usable_runs
from pages.components.pictures import show_kept
from pages.components.services import result, snapshot, table, version
from pages.components.shelf import kept
from pages.components.text import escaped, when

TITLE = "Against another run"
SHOWN = 200
"""Rows of the largest differences on screen."""
SETTLED = (Ending.CONVERGED, Ending.FINISHED)


def against_another(run_id: str, mass: float) -> None:
    """Choose the other run, then see both; runs of the same products come first."""
    runs = usable_runs()
    others = partner_of(run_id, runs.values())
    if not others:
        st.info(
            "There is no other finished run of these data. Fit them with another engine on the Model page, or use "
            "*Check with NUTS* above.",
            icon=":material/compare_arrows:",
        )
        return
    other = st.selectbox(
        "Against", others, key=f"against-{run_id}", width=520,
        format_func=lambda name: f"{runs[name].name} · {when(runs[name].created)}",
    )  # fmt: skip
    own_plan, other_plan = (snapshot(which).plan for which in (run_id, other))
    own, its = short_names(runs[run_id].name, runs[other].name, (own_plan.engine, other_plan.engine))
    names, plans = {run_id: own, other: its}, {own: own_plan, its: other_plan}
    unfinished = [name for which, name in names.items() if result(which).fit.outcome.ending not in SETTLED]
    ids = (mass, *((which, name, *version(which)) for which, name in names.items()))
    tables = {name: table(which, mass) for which, name in names.items()}
    pair = kept("pair", ids, lambda: pair_of(tables, plans, unfinished))
    left, right = st.columns([3, 2], gap="medium")
    with left:
        show_kept("against-another", ids, lambda theme: compare_runs(pair.rows, pair.judged, pair.reference, theme))
    with right:
        st.markdown(escaped(pair.words))
        differing = plan_differences(plans)
        if not differing.empty:
            st.dataframe(differing, hide_index=True, alt="Choices in which the plans differ")
    _differences(pair)


def _differences(pair: Pair) -> None:
    st.markdown("**Largest differences first**")
    number = st.column_config.NumberColumn
    parts = [f"{name}: {part}" for name in (pair.judged, pair.reference) for part in ("mean", "sd")]
    ratio = f"Sd of {escaped(pair.judged)} over sd of {escaped(pair.reference)}: 1 is equally sure, less is surer."
    st.dataframe(
        displayed_pair(pair, SHOWN), hide_index=True, placeholder="–", key="pair",
        alt="Elasticities of both runs side by side",
        column_config={name: number(name, format="%.2f") for name in parts}
        | {
            "product": "Product", "category": "Category", "level": "Level",
            "spread_in_sd": number("Differ, in sd", format="%.2f", help="Distance of the means in the wider sd."),
            "sd_ratio": number("Sd ratio", format="%.2f", help=ratio),
        },
    )  # fmt: skip
    if len(pair.rows) > SHOWN:
        st.caption(f"The {SHOWN} largest of {len(pair.rows):,}; the data of the picture hold every product.")
