"""The table of product elasticities: found, filtered, sorted and cut on the server, whatever the size of the market."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from core.posterior.verdicts import VERDICTS
from core.report.exports import to_csv, to_parquet, to_xlsx
from core.report.tables import TablePage, matching, page_of
from core.report.wording import plural
from core.runs.files import file_name

ROWS = 50
"""Rows on screen at a time."""
HEIGHT = 330
ALL = "All"
PAGE = "page-of-table"
SORTS = {
    "product": "Product",
    "category": "Category",
    "mean": "Elasticity",
    "sd": "Uncertainty",
    "prob_elastic": "P(elastic)",
    "n_obs": "Rows",
    "price_sd": "Price variation",
    "shrinkage": "Shrinkage",
    "k_hat": "k-hat",
}


@dataclass(frozen=True)
class Filters:
    """What the table is asked for."""

    search: str
    category: str | None
    verdict: str | None
    sort: str
    ascending: bool


def product_picker(table: pd.DataFrame, mass: float, name: str) -> str:
    """The filters, the rows that match, their download, and the product whose row is chosen ('' for none)."""
    products = table[table["level"] == "product"]
    filters = _filters(products)
    shown = _page(products, filters)
    chosen = _rows(shown, mass)
    _footer(products, filters, shown, name)
    return chosen


def _filters(products: pd.DataFrame) -> Filters:
    categories = [ALL, *products["category"].drop_duplicates()]
    verdicts = {ALL: "All verdicts"} | {key: verdict.label for key, verdict in VERDICTS.items()}
    sorts = [key for key in SORTS if key in products]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        search = st.text_input(
            "Search", type="search", key="find", placeholder="Product or category", live="300ms", width=230
        )
        category = st.selectbox("Category", categories, key="of-category", width=180)
        verdict = st.selectbox("Verdict", list(verdicts), format_func=verdicts.__getitem__, key="of-verdict", width=160)
        sort = st.selectbox("Sorted by", sorts, format_func=SORTS.__getitem__, key="sorted-by", width=160)
        falling = st.toggle("Largest first", key="falling")
    return Filters(
        search or "",
        None if category == ALL else category,
        None if verdict == ALL else verdict,
        sort,
        not falling,
    )


def _page(products: pd.DataFrame, filters: Filters) -> TablePage:
    asked = st.session_state.get(PAGE, 1)
    return page_of(
        products, filters.search, filters.category, filters.verdict, filters.sort, filters.ascending, asked, ROWS
    )


def _rows(shown: TablePage, mass: float) -> str:
    if not shown.matched:
        st.info("No product matches. Clear the search or choose another category or verdict.", icon=":material/search:")
        return ""
    selected = st.dataframe(
        displayed(shown.rows, mass), height=min(HEIGHT, 38 + 35 * len(shown.rows)), hide_index=True,
        column_config=columns(mass), on_select="rerun", selection_mode="single-row", key="elasticities",
        placeholder="–", alt=f"Elasticities of {plural(shown.matched, 'product')}, {ROWS} to a page",
    )  # fmt: skip
    rows = [row for row in selected["selection"]["rows"] if row < len(shown.rows)]
    return str(shown.rows["product"].iloc[rows[0]]) if rows else ""


def displayed(rows: pd.DataFrame, mass: float) -> pd.DataFrame:
    """The columns that people read, in their order, with the interval as one text."""
    interval = [f"[{lower:.2f}, {upper:.2f}]" for lower, upper in zip(rows["lower"], rows["upper"], strict=True)]
    verdicts = {key: verdict.label for key, verdict in VERDICTS.items()}
    kept = ["product", "category", "mean", "prob_elastic", "n_obs", "price_sd", "own_estimate", "shrinkage", "k_hat"]
    kept += ["corrected_mean", "corrected_sd"]
    frame = rows[[name for name in kept if name in rows]].copy()
    frame.insert(3, "interval", interval)
    frame.insert(4, "verdict", rows["verdict"].map(verdicts))
    frame["shrinkage"] *= 100
    return frame


def columns(mass: float) -> dict[str, object]:
    """Titles, formats and explanations of the columns."""
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    return {
        "product": text("Product", pinned=True),
        "category": text("Category"),
        "mean": number("Elasticity", format="%.2f", help="Per cent of units per one per cent of price."),
        "interval": text(f"{mass:.0%} interval".replace("%", " %"), help="Where the elasticity lies so probably."),
        "verdict": text("Verdict", help="Given from 90 % probability on."),
        "prob_elastic": st.column_config.ProgressColumn(
            "P(elastic)", format="percent", min_value=0, max_value=1, width=110,
            help="Probability that units react more than proportionally: elasticity below -1.",
        ),
        "n_obs": number("Rows", format="localized", help="Observations of this product."),
        "price_sd": number("Price variation", format="%.3f", help="Sd of log price: 0.1 is about 10 %."),
        "own_estimate": number("Own data", format="%.2f", help="What the product's own rows alone would say."),
        "shrinkage": number("Shrinkage", format="%.0f %%", help="How far pooling moved it from there to its category."),
        "corrected_mean": number(
            "Corrected", format="%.2f", help="After weighing draws by the exact model; empty where k-hat is poor."
        ),
        "corrected_sd": number("Corrected sd", format="%.2f", help="The same for the standard deviation."),
        "k_hat": number("k-hat", format="%.2f", help="Below 0.7 the approximation of this product can be trusted."),
    }  # fmt: skip


def _footer(products: pd.DataFrame, filters: Filters, shown: TablePage, name: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        # A narrower search may leave fewer pages than the one that was open.
        st.session_state[PAGE] = shown.page
        st.number_input("Page", 1, shown.pages, key=PAGE, label_visibility="collapsed", width=130)
        st.caption(f"of {shown.pages:,} · {plural(shown.matched, 'product')} found", width="content")
        st.space("stretch")
        found = _found(products, filters)
        for label, make, suffix in (
            ("CSV", to_csv, "csv"),
            ("Excel", to_xlsx, "xlsx"),
            ("Parquet", to_parquet, "parquet"),
        ):
            st.download_button(
                label, lambda make=make: make(found), file_name(f"{name}-elasticities") + f".{suffix}",
                icon=":material/download:", key=f"rows-{suffix}", on_click="ignore", type="tertiary",
                help="The rows found, all pages of them, in the order shown.",
            )  # fmt: skip


def _found(products: pd.DataFrame, filters: Filters) -> pd.DataFrame:
    found = matching(products, filters.search, filters.category, filters.verdict)
    return found.sort_values(filters.sort, ascending=filters.ascending, kind="stable", na_position="last")
