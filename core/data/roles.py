"""Say which column of a file plays which part in the model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Roles:
    """Column names of a file by the part they play; None where a file has no such column."""

    product: str | None = None
    price: str | None = None
    units: str | None = None
    period: str | None = None
    category: str | None = None
    store: str | None = None
    covariates: tuple[str, ...] = ()
