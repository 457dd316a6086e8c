"""One product: what was observed, the demand curve the model draws through it, and what its category adds."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd
import streamlit as st

from core.posterior.curve import demand_curve, observations_of, product_code
from core.posterior.densities import product_densities
from core.posterior.posterior import Posterior
from core.posterior.seasons import period_effects
from core.posterior.verdicts import VERDICTS
from core.report.advice import what_would_settle
from core.report.chart import Chart
from core.report.figures import demand_figure, density_figure, period_effects_figure
from core.report.palette import Theme
from core.report.wording import elasticity, plural, share
from core.runs.prepare import Prepared
from pages.components.pictures import show_kept
from pages.components.text import escaped


def show_product(
    posterior: Posterior, market: Prepared, table: pd.DataFrame, name: str, ids: tuple[Hashable, ...]
) -> None:
    """Its elasticity in words, then curve and posterior side by side, then its category's periods.

    `ids` are those of the posterior, under which its pictures are kept.
    """
    code = product_code(posterior.labels, name)
    products = table[table["level"] == "product"]
    row = products.iloc[code]
    with st.container(border=True):
        st.markdown(f"#### {escaped(name)} — {elasticity(row['mean'], row['lower'], row['upper'])}")
        st.markdown(_words(row, products))
        left, right = st.columns([3, 2], gap="medium")
        with left:
            show_kept("demand-curve", (*ids, name), lambda theme: _demand(posterior, market, code, name, theme))
        with right:
            show_kept(
                "product-posterior", (*ids, name),
                lambda theme: density_figure(product_densities(posterior, code), name, row["category"], theme),
            )  # fmt: skip
        _periods(posterior, code, row["category"], ids)


def _demand(posterior: Posterior, market: Prepared, code: int, name: str, theme: Theme) -> Chart:
    labels = posterior.labels
    seen = observations_of(market.panel, labels, code)
    curve = demand_curve(posterior, market.panel, code)
    return demand_figure(seen, curve, name, labels.periods, labels.stores, theme)


def _words(row: pd.Series, products: pd.DataFrame) -> str:
    own = (
        f"Its own {plural(int(row['n_obs']), 'row')} alone would say {elasticity(row['own_estimate'])}; "
        f"pooling moved that {share(row['shrinkage'])} of the way to its category."
        if pd.notna(row["own_estimate"]) and pd.notna(row["shrinkage"])
        else f"Its own {plural(int(row['n_obs']), 'row')} alone say nothing definite; the category speaks."
    )
    verdict = VERDICTS[row["verdict"]]
    return (
        f"**{verdict.label}.** {verdict.sentence} Elastic with {share(row['prob_elastic'])} probability. {own} "
        f"{what_would_settle(products, str(row['product']))}"
    )


def _periods(posterior: Posterior, code: int, category: str, ids: tuple[Hashable, ...]) -> None:
    effects = period_effects(posterior, int(posterior.category_of_product[code]))
    if effects is None:
        return
    with st.expander(f"Periods of {escaped(category)}", icon=":material/calendar_month:", on_change="rerun") as opened:
        if opened.open:
            show_kept("period-effects", (*ids, category), lambda theme: period_effects_figure(effects, category, theme))
