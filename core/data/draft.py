"""Hold the checked columns of a file, row by row in codes, until they are turned into cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from core.data.roles import Roles


@dataclass(frozen=True)
class Names:
    """Texts by row, as codes."""

    codes: Int[np.ndarray, "row"]
    texts: list[str]


@dataclass(frozen=True)
class Periods:
    """Periods by row, as codes in time order into dates or names."""

    codes: Int[np.ndarray, "row"]
    values: pd.Index


@dataclass(frozen=True)
class Draft:
    """Checked columns of all rows of the file; which rows count is in the findings."""

    roles: Roles
    product: Names
    category: Names | None
    period: Periods | None
    store: Names | None
    price: Float[np.ndarray, "row"]
    units: Float[np.ndarray, "row"]
    covariates: dict[str, np.ndarray]


def listed(*columns: str | None) -> str:
    """The names of the columns there are."""
    return ", ".join(column for column in columns if column)
