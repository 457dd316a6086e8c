"""Hold a validated sales table: canonical columns, and an account of every row of the file it came from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import pandas as pd

from core.data.roles import Roles

CANONICAL = ("product", "category", "period", "store", "price", "units")


@dataclass(frozen=True)
class RowAccount:
    """Where the rows of a file went: read = used + left out, by reason. Raises ValueError when that does not hold."""

    read: int
    used: int
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.read != self.used + sum(self.left_out.values()):
            raise ValueError(f"{self.read} rows read are not {self.used} used and {dict(self.left_out)} left out")

    def __str__(self) -> str:
        left_out = sum(self.left_out.values())
        reasons = ", ".join(f"{rows:,} {reason}" for reason, rows in self.left_out.items())
        text = f"{self.read:,} rows read = {self.used:,} used + {left_out:,} left out"
        return f"{text} ({reasons})" if reasons else text


@dataclass(frozen=True)
class SalesTable:
    """One row per cell: a product (in a store) in a period, or one replicate where there is no period.

    Columns of `frame`: product, category, store as categories of text spelt as in the file; period as datetime64 or
    ordered category of text; price (currency per unit, > 0) and units (whole numbers) as float64; then one numeric
    column per covariate, see `covariate_column`. Optional columns are absent where the file has none.
    """

    frame: pd.DataFrame
    account: RowAccount
    roles: Roles
    name: str
    sha256: str

    @property
    def covariates(self) -> tuple[str, ...]:
        """Names of the covariates, as in the file."""
        return self.roles.covariates


NOT_CHOSEN = "not among the chosen products"


def of_products(sales: SalesTable, products: Collection[str]) -> SalesTable:
    """The market of `products` alone; rows of all others are left out and accounted for. Unknown names are no error:
    the table may come out empty."""
    kept = sales.frame["product"].isin(set(products)).to_numpy()
    frame = sales.frame[kept].reset_index(drop=True)
    for name in frame.columns:
        if isinstance(frame[name].dtype, pd.CategoricalDtype):
            frame[name] = frame[name].cat.remove_unused_categories()
    account, others = sales.account, int((~kept).sum())
    left_out = {**account.left_out, NOT_CHOSEN: others} if others else account.left_out
    return replace(sales, frame=frame, account=RowAccount(account.read, len(frame), left_out))


def covariate_column(name: str) -> str:
    """Column of `SalesTable.frame` that holds covariate `name`: its own name, unless a canonical column has it."""
    return f"{name} (covariate)" if name in CANONICAL else name
