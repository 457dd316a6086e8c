"""What a run learned, picture by picture: against the truth, by category, by product, and how far pooling moved it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Float

from core.posterior.checks import PredictiveChecks, predictive_checks
from core.posterior.posterior import Posterior
from core.posterior.recovery import Recovery, recovery
from core.report.figures import caterpillar, coverage_chart, forest, shrinkage_view, truth_scatter, z_histogram
from core.report.wording import elasticity, share
from pages.components.against import TITLE as AGAINST
from pages.components.against import against_another
from pages.components.elastable import product_picker
from pages.components.errors import guard
from pages.components.nutscheck import check_with_nuts
from pages.components.pictures import kept_chart, show_chart, show_kept
from pages.components.product import show_product
from pages.components.services import market, posterior, table, truth_of_run, version
from pages.components.shelf import kept

FEW = 4


@dataclass(frozen=True)
class Found:
    """A run's result as the pictures need it."""

    run_id: str
    name: str
    posterior: Posterior
    table: pd.DataFrame
    truth: Float[np.ndarray, "row"] | None
    """True elasticities in the order of `table`; None for real data."""

    version: tuple[int, int]
    """See `services.version`."""

    @property
    def ids(self) -> tuple[Hashable, ...]:
        """What decides every number of it."""
        return (self.run_id, *self.version, self.posterior.mass)

    @property
    def products(self) -> pd.DataFrame:
        return self.table[self.table["level"] == "product"]

    def truth_of(self, level: str) -> Float[np.ndarray, "member"]:
        assert self.truth is not None
        return self.truth[(self.table["level"] == level).to_numpy()]


def found_by(run_id: str, name: str, dataset: str, mass: float) -> Found:
    """The result of a run with intervals of `mass`; a truth that names none of its products is no truth."""
    # First, as the run may go further meanwhile: what it was must never be kept for what it is.
    seen = version(run_id)
    rows, truth = table(run_id, mass), truth_of_run(run_id, dataset, mass)
    if truth is not None and not np.isfinite(truth[(rows["level"] == "product").to_numpy()]).any():
        truth = None
    return Found(run_id, name, posterior(run_id, mass), rows, truth, seen)


def show_pictures(found: Found) -> None:
    """One picture at a time, chosen by its question."""
    views: dict[str, Callable[[Found], None]] = {
        "By category": _categories,
        "All products": _products,
        "Pooling": _pooling,
        "Does the model fit?": _checks,
        AGAINST: _against_another,
    }
    if found.truth is not None:
        views = {"Against the truth": _against_truth, **views}
    # A button may have chosen the picture already; a default beside it would be a second word on it.
    first = None if "picture" in st.session_state else next(iter(views))
    with st.container(horizontal=True, vertical_alignment="center"):
        chosen = st.segmented_control(
            "Picture", list(views), default=first, required=True, key="picture",
            label_visibility="collapsed",
        )  # fmt: skip
        st.space("stretch")
        check_with_nuts(found.run_id, found.table)
    views.get(chosen, _categories)(found)


def show_table(found: Found) -> None:
    """The table of products, and under it the product whose row is chosen; answers without redrawing the pictures."""
    st.fragment(guard(_table))(found)


def _table(found: Found) -> None:
    st.subheader("Products", anchor=False)
    st.caption("Choose a row to see the product: its observations, its demand curve, and what its category adds.")
    name = product_picker(found.table, found.posterior.mass, found.name)
    if name:
        show_product(found.posterior, market(found.run_id), found.table, name, found.ids)


def _against_truth(found: Found) -> None:
    products, categories = (_recovery(found, level) for level in ("product", "category"))
    scatter = kept_chart(
        "against-truth", found.ids, lambda theme: truth_scatter(found.products, found.truth_of("product"), theme)
    )
    left, right = st.columns([3, 2], gap="medium")
    with left:
        show_chart(scatter, "against-truth")
    with right:
        _recovered(products.rmse, categories.rmse, float(scatter.data["inside"].mean()), found.posterior.mass)
        show_kept("z-scores", found.ids, lambda theme: z_histogram(products, theme))


def _recovery(found: Found, level: str) -> Recovery:
    return kept("recovery", (*found.ids, level), lambda: recovery(found.posterior, level, found.truth_of(level)))


def _recovered(products: float, categories: float, inside: float, mass: float) -> None:
    """Typical errors and the share of intervals that hold the truth, beside what they promise."""
    plain = {"delta_color": "off", "delta_arrow": "off", "border": True}
    rmse = "Root mean square distance of the estimates from the true elasticities."
    first, second, third = st.columns(3, gap="small")
    first.metric("Products", elasticity(products), "typical error", help=rmse, **plain)
    second.metric("Categories", elasticity(categories), "typical error", help=rmse, **plain)
    third.metric(
        "Truth inside", share(inside), f"of {share(mass)}", **plain,
        help="Share of products whose interval holds the truth, and the share it promises. In a single market 80 "
        "to 97 % inside 90 % intervals is usual: all products share one learned spread and err together.",
    )  # fmt: skip


def _categories(found: Found) -> None:
    names = found.table.loc[found.table["level"] == "category", "category"]
    known = None
    if found.truth is not None:
        known = dict(zip(names, found.truth_of("category"), strict=True)) | {"": float(found.truth_of("global")[0])}
    show_kept("by-category", found.ids, lambda theme: forest(found.table, found.posterior.mass, theme, known))


def _products(found: Found) -> None:
    show_kept("all-products", found.ids, lambda theme: caterpillar(found.products, found.posterior.mass, theme))


def _pooling(found: Found) -> None:
    show_kept("pooling", found.ids, lambda theme: shrinkage_view(found.products, theme))


def _checks(found: Found) -> None:
    checks = _checked(found.run_id, found.version, found.posterior.mass, found.posterior)
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Could the model have made these data?**")
        st.markdown("\n".join(f"- {line}" for line in checks.sentences))
        st.caption(f"{checks.n_cells:,} observations against {checks.n_replicates:,} replicated data sets.")
    with right:
        show_kept(
            "predictive-coverage", found.ids, lambda theme: coverage_chart(checks.coverage, "observations", theme)
        )


def _against_another(found: Found) -> None:
    against_another(found.run_id, found.posterior.mass)


@st.cache_resource(max_entries=FEW, show_spinner="Replicating the data from the model")
def _checked(run_id: str, version: tuple[int, int], mass: float, _posterior: Posterior) -> PredictiveChecks:
    return predictive_checks(_posterior, market(run_id).panel)
