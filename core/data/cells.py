"""Turn checked rows into cells: net returns, add up repeats, look at products' prices, build the canonical table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from core.data.choices import Choices
from core.data.draft import Draft, Names, listed
from core.data.findings import Findings
from core.data.price_changes import check_price_changes
from core.data.roles import Roles
from core.data.sales import covariate_column
from core.errors import Problem


def cells_of(draft: Draft, choices: Choices, findings: Findings) -> pd.DataFrame:
    """The frame of a SalesTable: one row per cell. Leaves rows out and reports through `findings`."""
    cell = _cell_keys(draft)
    units = _net_returns(draft, cell, choices, findings)
    repeated = _report_repeats(draft, cell, units, choices, findings) if draft.period is not None else False
    if findings.failed or not findings.kept.any():
        _say_if_empty(findings)
        return pd.DataFrame()
    check_price_changes(draft, choices, findings)
    if findings.failed:
        return pd.DataFrame()
    rows = np.flatnonzero(findings.kept)
    every = rows.size == findings.kept.size
    taken: Any = slice(None) if every else rows
    prices, quantities = draft.price[taken], units[taken]
    covariates = {name: values[taken] for name, values in draft.covariates.items()}
    if repeated:
        first, prices, quantities, covariates = _aggregate(cell[taken], prices, quantities, covariates)
        taken = rows[first]
    return _frame(draft, taken, prices, quantities, covariates)


def _cell_keys(draft: Draft) -> Int[np.ndarray, "row"]:
    """One number per (product, store, period); without a period one per (product, store)."""
    key = draft.product.codes.astype(np.int64)
    if draft.store is not None:
        key = key * len(draft.store.texts) + draft.store.codes
    if draft.period is not None:
        key = key * max(len(draft.period.values), 1) + draft.period.codes
    return key


def _net_returns(draft: Draft, cell: np.ndarray, choices: Choices, findings: Findings) -> Float[np.ndarray, "row"]:
    """Units with returns taken off the sales of their cell, as far as there are any; returns are left out as rows."""
    units = draft.units
    if units.min() >= 0:
        return units
    returns = (units < 0) & findings.kept
    if not returns.any():
        return units
    stop, net = choices.negative_units == "stop", choices.negative_units == "net" and draft.period is not None
    treatment = "They are left out."
    if net:
        treatment = "They are taken off the sales of the same product, store and period; others are left out."
    findings.report(
        "units-negative", returns, "{rows} have negative units: returns or corrections",
        "Nothing, if returns should lower sales; else leave them out.", where=listed(draft.roles.units),
        spelt=lambda row: f"{units[row]:,.0f}", severity="error" if stop else "warning",
        treatment="" if stop else treatment, choice="negative_units",
        consequence="The model counts sales; a count is never below zero.",
    )  # fmt: skip
    if not net:
        findings.leave_out(returns, "negative units")
        return units
    sales = findings.kept & ~returns
    sold_cells, position = np.unique(cell[sales], return_inverse=True)
    place = np.minimum(np.searchsorted(sold_cells, cell), max(sold_cells.size - 1, 0))
    matched = returns & (sold_cells[place] == cell) if sold_cells.size else np.zeros_like(returns)
    sold = np.bincount(position, units[sales], sold_cells.size)
    returned = -np.bincount(place[matched], units[matched], sold_cells.size)
    share = np.where(sold > 0, np.maximum(sold - returned, 0) / np.where(sold > 0, sold, 1), 1.0)
    netted = units.copy()
    netted[sales] = _spread(units[sales], share[position], np.maximum(sold - returned, 0), position)
    findings.leave_out(matched, "returns netted")
    findings.leave_out(returns, "returns without a sale to net")
    _note_overdrawn(int((returned > sold).sum()), draft.roles, findings)
    return netted


def _spread(units: np.ndarray, share: np.ndarray, total: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Scale rows to their cell's total, whole numbers all the same: the first row of a cell takes the rest."""
    scaled = np.floor(units * share)
    rest = total - np.bincount(position, scaled, total.size)
    _, first = np.unique(position, return_index=True)
    scaled[first] += np.round(rest[position[first]])
    return scaled


def _note_overdrawn(cells: int, roles: Roles, findings: Findings) -> None:
    if cells:
        findings.say(
            Problem(
                "returns-exceed-sales",
                f"In {cells:,} product-periods more was returned than sold",
                "Nothing, if goods of earlier periods came back.",
                where=listed(roles.units),
                severity="note",
                treatment="They count as nothing sold.",
                consequence="Returns beyond the period's sales are not carried over.",
                choice="negative_units",
            )
        )


def _report_repeats(draft: Draft, cell: np.ndarray, units: np.ndarray, choices: Choices, findings: Findings) -> bool:
    """Whether several rows share a cell; says so, and leaves copies out where chosen."""
    kept = findings.kept
    keys = cell if kept.all() else cell[kept]
    if keys.size < 2 or bool((keys[1:] > keys[:-1]).all()):
        return False
    repeats, copies = _repeats(keys), np.zeros(keys.size, dtype=bool)
    if not repeats.any():
        return False
    rows = np.flatnonzero(kept)
    columns = {"cell": keys, "price": draft.price[rows], "units": units[rows]}
    columns |= {f"covariate {name}": values[rows] for name, values in draft.covariates.items()}
    touched = np.flatnonzero(np.isin(keys, keys[repeats]))
    copies[touched] = pd.DataFrame({name: values[touched] for name, values in columns.items()}).duplicated().to_numpy()
    dropped = choices.duplicates == "drop-copies"
    on_rows = np.zeros(kept.size, dtype=bool)
    on_rows[rows[repeats]] = True
    stop = choices.duplicates == "stop"
    findings.report(
        "repeated-cells", on_rows,
        f"{{rows}} repeat product, store and period of an earlier row; {int(copies.sum()):,} of them are exact copies",
        "Nothing, if each row is a sale of its own; leave copies out if the export doubled them.",
        where=listed(draft.roles.product, draft.roles.store, draft.roles.period),
        severity="error" if stop else "warning" if copies.any() else "note", choice="duplicates",
        treatment="" if stop else "Exact copies are left out, then units are added up and prices weighted by units."
        if dropped else "Units are added up and prices weighted by units.",
        consequence="The model sees one row for each product, store and period.",
    )  # fmt: skip
    if dropped and copies.any():
        copied = np.zeros(kept.size, dtype=bool)
        copied[rows[copies]] = True
        findings.leave_out(copied, "exact copies of another row")
        return bool((repeats & ~copies).any())
    return True


def _repeats(keys: Int[np.ndarray, "row"]) -> np.ndarray:
    """True on every row whose key an earlier row has."""
    order = np.argsort(keys, kind="stable")
    same = np.diff(keys[order]) == 0
    repeats = np.zeros(keys.size, dtype=bool)
    repeats[order[1:][same]] = True
    return repeats


def _aggregate(
    cell: np.ndarray, price: np.ndarray, units: np.ndarray, covariates: dict[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """First row, price, units and covariates of each cell, cells in key order.

    Units are added; the price is weighted by units (plain mean where nothing was sold); a 0/1 covariate is 1 where any
    row has 1, others take their mean.
    """
    _, first, position, rows = np.unique(cell, return_index=True, return_inverse=True, return_counts=True)
    total = np.bincount(position, units)
    weighted = np.bincount(position, units * price)
    plain = np.bincount(position, price) / rows
    one_price = np.maximum.reduceat(price[np.argsort(position, kind="stable")], np.cumsum(rows) - rows)
    mean = np.where(total > 0, weighted / np.where(total > 0, total, 1), plain)
    mean = np.where(np.isclose(mean, one_price, rtol=1e-12, atol=0), one_price, mean)
    together = {}
    for name, values in covariates.items():
        averaged = np.bincount(position, values) / rows
        together[name] = np.ceil(averaged) if np.isin(values, (0.0, 1.0)).all() else averaged
    return first, mean, total, together


def _say_if_empty(findings: Findings) -> None:
    if not findings.failed:
        findings.say(
            Problem("no-rows-left", "No row is left", "Mend the file, or choose other treatments.", where="file")
        )


def _frame(
    draft: Draft, taken: Any, price: np.ndarray, units: np.ndarray, covariates: dict[str, np.ndarray]
) -> pd.DataFrame:
    columns: dict[str, Any] = {"product": _categorical(draft.product, taken)}
    if draft.category is not None:
        columns["category"] = _categorical(draft.category, taken)
    if draft.period is not None:
        codes, values = draft.period.codes[taken], draft.period.values
        if isinstance(values, pd.DatetimeIndex):
            columns["period"] = values.to_numpy("datetime64[s]")[codes]
        else:
            columns["period"] = pd.Categorical.from_codes(codes, values, ordered=True)
    if draft.store is not None:
        columns["store"] = _categorical(draft.store, taken)
    columns |= {"price": price, "units": units}
    columns |= {covariate_column(name): values for name, values in covariates.items()}
    return pd.DataFrame(columns, copy=False)


def _categorical(names: Names, taken: Any) -> pd.Categorical:
    """Texts by row; the same text under two codes becomes one."""
    unique = list(dict.fromkeys(names.texts))
    codes = names.codes[taken]
    if len(unique) != len(names.texts):
        place = {text: position for position, text in enumerate(unique)}
        codes = np.array([place[text] for text in names.texts])[codes]
    return pd.Categorical.from_codes(codes, pd.Index(unique, dtype="str"), validate=False)
