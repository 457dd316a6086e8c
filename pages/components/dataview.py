"""Show whether a file is understood: where its rows went, what is wrong with it, and what it holds."""

from __future__ import annotations

from dataclasses import replace

import altair as alt
import pandas as pd
import streamlit as st

from core.data.choices import Choices
from core.data.overview import Overview
from core.data.validation import Checked
from core.declare import declarations
from core.errors import Problem
from core.report.tables import page_of
from core.report.wording import plural, price, share, units
from pages.components.errors import guard
from pages.components.problems import show_problems, summary_of
from pages.components.session import renew, workspace
from pages.components.text import escaped

QUIET = ("note",)
PREVIEW = 200
ROWS = 100
PRODUCT_COLUMNS = {
    "product": "Product",
    "category": "Category",
    "rows": "Rows",
    "units": "Units",
    "zero_share": "Without sales",
    "mean_price": "Mean price",
    "price_changes": "Price changes",
    "price_sd": "Price variation",
    "verdict": "What it says",
}
FORMATS = {
    "rows": "localized",
    "units": "localized",
    "zero_share": "%.1f %%",
    "mean_price": "%.2f",
    "price_changes": "localized",
    "price_sd": "%.3f",
}
WIDTHS = {"units": 105}
"""Left to themselves, columns measure numbers without their separators, and cut the first digits off."""
HEIGHT = 320


def show_findings(found: Checked) -> None:
    """The problems, open where something stops the work or should be looked at, folded where there are notes only."""
    if not found.problems:
        return
    loud = any(problem.severity not in QUIET for problem in found.problems)
    with st.expander(f"Problems found: {summary_of(found.problems)}", expanded=loud, icon=":material/fact_check:"):
        show_problems(found.problems, treatment_picker)


def treatment_picker(problem: Problem) -> None:
    """The treatments of one problem, the one in force chosen; another one is taken over at once."""
    rule = {field.name: rule for field, rule in declarations(Choices)}[problem.choice]
    options = list(rule.choices or {})
    key = f"choice-{problem.code}-{problem.where}-{workspace().revision}"
    chosen = getattr(workspace().choices, problem.choice)
    st.selectbox(
        "What we do", options, options.index(chosen), key=key, on_change=_treat, args=(problem.choice, key),
        format_func=lambda name: (rule.choices or {})[name].rstrip("."), help=f"{rule.help}.",
    )  # fmt: skip


def _treat(choice: str, key: str) -> None:
    renew(choices=replace(workspace().choices, **{choice: st.session_state[key]}))


def show_overview(seen: Overview, preview: pd.DataFrame) -> None:
    """Preview, products, and units and price over time, one at a time; only what is open is drawn."""
    names = ["Products", "Over time", "Preview"] if seen.periods else ["Products", "Preview"]
    tabs = dict(zip(names, st.tabs(names, on_change="rerun", key="data-tabs"), strict=True))
    draw = {
        "Products": lambda: _products(seen),
        "Over time": lambda: _over_time(seen),
        "Preview": lambda: show_preview(preview),
    }
    for name, tab in tabs.items():
        if tab.open:
            with tab:
                draw[name]()


def facts(seen: Overview) -> list[tuple[str, str]]:
    """The figures of the top line."""
    found = [
        ("Observations", f"{seen.cells:,}"),
        ("Products", f"{seen.products:,}"),
        ("Categories", f"{seen.categories:,}"),
    ]
    if seen.stores:
        found.append(("Stores", f"{seen.stores:,}"))
    if seen.periods:
        found.append(("Periods", f"{seen.periods:,}"))
    return [
        *found,
        ("Units sold", units(seen.total_units)),
        ("Mean price", price(seen.mean_price)),
        ("Without sales", share(seen.zero_share)),
    ]


def show_facts(seen: Overview) -> None:
    """Rows, products, categories, periods, units, price, zeros: one line of figures."""
    with st.container(horizontal=True, gap="small"):
        for label, value in facts(seen):
            st.metric(label, value, border=True)
    if seen.periods:
        first, last = escaped(seen.first_period), escaped(seen.last_period)
        st.caption(f"From {first} to {last}; {share(seen.filled)} of all possible rows are there.")


def show_preview(frame: pd.DataFrame) -> None:
    """The first rows of the file, as it spells them."""
    st.dataframe(frame.head(PREVIEW), hide_index=True, height=HEIGHT, alt="The first rows of the file")
    st.caption(f"The first {min(PREVIEW, len(frame)):,} of {len(frame):,} rows, as the file spells them.")


def _products(seen: Overview) -> None:
    st.fragment(guard(_product_table))(seen)


def _product_table(seen: Overview) -> None:
    verdicts = ["All", *seen.by_product["verdict"].drop_duplicates()]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        search = st.text_input(
            "Search", type="search", key="data-search", placeholder="Product or category", live="300ms", width=260
        )
        verdict = st.selectbox("Price variation", verdicts, key="data-verdict", width=380)
        sort = st.selectbox(
            "Sorted by", list(PRODUCT_COLUMNS), format_func=PRODUCT_COLUMNS.__getitem__, key="data-sort", width=180
        )
        falling = st.toggle("Largest first", key="data-falling")
    asked = st.session_state.get("data-page", 1)
    wanted = None if verdict == "All" else verdict
    shown = page_of(seen.by_product, search or "", None, wanted, sort, not falling, asked, ROWS)
    rows = shown.rows.assign(zero_share=100 * shown.rows["zero_share"])
    st.dataframe(
        rows, hide_index=True, height=min(HEIGHT, 38 + 35 * len(rows)),
        alt="Products with their rows and price variation",
        column_config={
            name: st.column_config.NumberColumn(PRODUCT_COLUMNS[name], format=form, width=WIDTHS.get(name))
            for name, form in FORMATS.items()
        } | {name: st.column_config.TextColumn(PRODUCT_COLUMNS[name]) for name in ("product", "category", "verdict")},
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center"):
        st.session_state["data-page"] = shown.page
        st.number_input("Page", 1, shown.pages, key="data-page", label_visibility="collapsed", width=130)
        st.caption(f"of {shown.pages:,} · {plural(shown.matched, 'product')}", width="content")


def _over_time(seen: Overview) -> None:
    frame = seen.by_period
    left, right = st.columns(2, gap="medium")
    for cell, column, title, told in (
        (left, "units", "Units sold", units),
        (right, "mean_price", "Mean price", price),
    ):
        with cell:
            st.markdown(f"**{title} per period**")
            low, high = frame[column].min(), frame[column].max()
            words = f"{title} per period, from {told(low)} to {told(high)}."
            st.altair_chart(over_time(frame, column), alt=words)
            st.caption(words)
    with st.popover("Data", icon=":material/table:", type="tertiary"):
        st.dataframe(frame, hide_index=True, alt="Units, mean price and rows per period")


def over_time(frame: pd.DataFrame, column: str) -> alt.Chart:
    """One line over the periods; text periods keep their order."""
    dated = pd.api.types.is_datetime64_any_dtype(frame["period"])
    kind = "T" if dated else "O"
    drawn = frame if dated else frame.assign(period=frame["period"].astype(str))
    x = alt.X(f"period:{kind}", title=None, sort=None)
    y = alt.Y(f"{column}:Q", title=None, scale=alt.Scale(zero=column == "units"))
    return alt.Chart(drawn).mark_line(strokeWidth=2).encode(x, y).properties(height=260)
