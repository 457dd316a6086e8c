"""Say first what was learned: the market's elasticity, how many products are elastic, and what cannot be told."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.inference.fit import Fit
from core.posterior.posterior import Posterior
from core.posterior.verdicts import CERTAINTY, VERDICTS
from core.report.wording import elasticity, share
from core.runs.requests import RunSummary
from core.runs.snapshots import RunSnapshot
from pages.components.access import viewer
from pages.components.navigation import page
from pages.components.services import manager, snapshot, still_there
from pages.components.session import workspace
from pages.components.states import state_badge
from pages.components.text import escaped, when

MASSES = (0.5, 0.8, 0.9, 0.95, 0.99)


def usable_runs() -> dict[str, RunSummary]:
    """Runs with a posterior, newest first, by id."""
    return {run.run_id: run for run in manager().runs(viewer()) if run.usable}


def pick_run(runs: dict[str, RunSummary]) -> str:
    """The run whose elasticities are shown: the one in use, or the newest of the data in use, or the newest of all."""
    own = [run_id for run_id, run in runs.items() if run.dataset_id == workspace().dataset]
    now = workspace().run if workspace().run in runs else next(iter([*own, *runs]))
    return st.selectbox(
        "Run", list(runs), list(runs).index(now), key=f"run-{now}", label_visibility="collapsed", width=520,
        format_func=lambda run_id: f"{runs[run_id].name} · {when(runs[run_id].created)}",
    )  # fmt: skip


def pick_mass(default: float) -> float:
    """Probability inside the intervals on this page."""
    masses = sorted({*MASSES, default})
    return st.segmented_control(
        "Interval", masses, default=default, required=True, key="mass", format_func=share,
        label_visibility="collapsed", help="Posterior probability inside every interval on this page.",
    )  # fmt: skip


def top_line(posterior: Posterior, table: pd.DataFrame) -> None:
    """The market, and how many products fall under each verdict."""
    market = posterior.levels["global"]
    products = table[table["level"] == "product"]["verdict"].value_counts()
    everything = max(1, posterior.n_products)
    with st.container(horizontal=True, gap="small"):
        st.metric(
            "Market elasticity", elasticity(market.mean[0], market.lower[0], market.upper[0]), border=True,
            help=f"+1 % price: {elasticity(market.mean[0])} % units, over the whole market.", width=270,
            height="stretch",
        )  # fmt: skip
        st.metric("Categories", f"{len(posterior.labels.categories):,}", border=True, height="stretch")
        st.metric("Products", f"{posterior.n_products:,}", border=True, height="stretch")
        for name, verdict in VERDICTS.items():
            number = int(products.get(name, 0))
            if name == "rises" and not number:
                continue
            st.metric(
                verdict.label, f"{number:,}", share(number / everything), delta_color="off", delta_arrow="off",
                border=True, height="stretch", help=f"{verdict.sentence} Given from {share(CERTAINTY)} probability on.",
            )  # fmt: skip


def outcome_line(run: RunSnapshot, fit: Fit) -> None:
    """How the run ended and what its engine warns of, where that limits what its numbers mean."""
    for sentence in fit.diagnostics.get("warnings", ()):
        st.caption(f":material/warning: {escaped(sentence)}")
    if fit.diagnostics.get("data_home") == "host":
        st.caption(":material/info: The rows stayed in host memory and were streamed to the device in mini-batches.")
    if run.plan.engine == "svi" and run.plan.svi.guide in MEAN_FIELD:
        st.caption(
            ":material/info: In general a mean-field guide, as this one, gives good means and intervals that are too "
            "narrow; the structured engine has no such limit."
        )
    if run.state.value != "finished":
        st.caption(f":material/info: {escaped(run.outcome)}")


MEAN_FIELD = ("AutoNormal", "AutoDiagonalNormal", "AutoDelta")


def limits() -> None:
    """What the estimates are not."""
    with st.expander("What these numbers are not", icon=":material/help:"):
        st.markdown(
            "- **Association, not proof of cause.** Prices are cut when demand is expected, rivals react, stock runs "
            "out. What moves price and units together, and is not in the file, is read as an effect of price.\n"
            "- **Inside the prices seen.** The curve is one of constant elasticity; far outside the observed prices it "
            "is an extrapolation.\n"
            "- **Own price only.** Sales that a price cut takes from other products are not counted.\n"
            "- **The interval is the model's.** It covers what the data leave open if the model holds; the check "
            "*Could the model have made these data?* says how well it does."
        )


def waiting_for(run_id: str) -> None:
    """A line and a way to the run in use while it is not done yet."""
    if not still_there(run_id):
        return
    run = snapshot(run_id)
    if run.usable and not run.state.active:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(f"{state_badge(run)} **{escaped(run.name)}** {escaped(run.outcome)}", width="content")
        st.page_link(page("model"), label="Watch it", icon=":material/visibility:")
