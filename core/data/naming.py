"""Turn columns of names into codes, and put names in the order in which people count them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Int

LONGEST_NUMBER = 20
"""Digits up to which numbers in names sort as numbers."""
_DIGITS = re.compile(r"[0-9]+")


@dataclass(frozen=True)
class NameCodes:
    """A column of names as codes, and the natural order of those that occur."""

    codes: Int[np.ndarray, "row"]
    texts: list[str]
    order: list[int]
    """Codes that occur, in natural order of their texts."""

    @classmethod
    def of(cls, column: pd.Series) -> NameCodes:
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes = column.cat.codes.to_numpy()
            texts = [str(name) for name in column.cat.categories.to_numpy(object)]
        else:
            codes, unique = pd.factorize(column.astype(str))
            texts = [str(name) for name in unique]
        present = np.zeros(len(texts), bool)
        present[codes] = True
        order = sorted(np.flatnonzero(present).tolist(), key=lambda code: natural_key(texts[code]))
        return cls(codes, texts, order)

    @property
    def ordered(self) -> tuple[str, ...]:
        return tuple(self.texts[code] for code in self.order)

    def ranks(self) -> Int[np.ndarray, "row"]:
        """Each row's place in the natural order."""
        return ranks_of(self.order, len(self.texts))[self.codes]


def ranks_of(order: list[int], n_texts: int) -> Int[np.ndarray, "text"]:
    ranks = np.zeros(n_texts, np.int32)
    ranks[order] = np.arange(len(order))
    return ranks


def natural_key(name: str) -> tuple[str, str]:
    """Sort key under which 'item 9' comes before 'item 10', and spelling decides between equals."""
    return _DIGITS.sub(_padded, name.casefold()), name


def _padded(digits: re.Match[str]) -> str:
    return digits[0].zfill(LONGEST_NUMBER)
