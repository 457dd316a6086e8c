"""Read numbers as people write them: decimal comma or point, thousands separators, currency signs, minus at the end."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

Mark = Literal["point", "comma"]

MISSING = frozenset(
    {"", "-", "--", ".", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing", "#value!", "#ref!", "#div/0!"}
)
"""Cells of a column of numbers or dates that say there is nothing, in lower case. Names of products are not read so."""

_CLUTTER = str.maketrans("", "", " \t\u00a0\u2009\u202f'\u2019_€$£¥₹₽₩₺₪฿")
_CURRENCY = re.compile(r"^(?:[A-Z]{3}|R\$|kr\.?|zł|Kč|Fr\.?)(?=[\d+-])|(?:[A-Z]{3}|kr\.?|zł|Kč|Fr\.?)$")
_PLAIN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_POINT = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+\.\d*|[+-]?\d{1,3}(?:,\d{3}){2,}|[+-]?\d*\.(?:\d{0,2}|\d{4,})")
_COMMA = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+,\d*|[+-]?\d{1,3}(?:\.\d{3}){2,}|[+-]?\d*,(?:\d{0,2}|\d{4,})|[+-]?0,\d+")
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
_ALL_PLAIN = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:\n[+-]?[0-9]+(?:\.[0-9]*)?)*+")
_EITHER_POINT = re.compile(r"^[+-]?[1-9][0-9]{0,2}\.[0-9]{3}$", re.MULTILINE)
_THOUSANDS = {
    "point": re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?"),
    "comma": re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+(?:,\d*)?"),
}


@dataclass(frozen=True)
class Numbers:
    """Texts read as numbers: NaN where missing or unreadable. Infinities count as unreadable."""

    values: Float[np.ndarray, "text"]
    missing: Bool[np.ndarray, "text"]
    unreadable: Bool[np.ndarray, "text"]


def read_numbers(texts: Iterable[str], mark: Mark = "point") -> Numbers:
    """Read each text under one decimal mark for all of them."""
    texts = list(texts)
    if mark == "point" and texts and _ALL_PLAIN.fullmatch("\n".join(texts)):
        nothing = np.zeros(len(texts), dtype=bool)
        return Numbers(np.array(texts, dtype=object).astype(np.float64), nothing, nothing)
    values, missing, unreadable = [], [], []
    for text in texts:
        value, empty = _read(text, mark)
        values.append(value)
        missing.append(empty)
        unreadable.append(not empty and not np.isfinite(value))
    array = np.array(values, dtype=np.float64)
    array[~np.isfinite(array)] = np.nan
    return Numbers(array, np.array(missing, dtype=bool), np.array(unreadable, dtype=bool))


def mark_votes(texts: Iterable[str]) -> tuple[int, int, int]:
    """How many texts can only have a decimal point, only a decimal comma, and how many could have either."""
    texts = list(texts)
    together = "\n".join(texts)
    if _ALL_PLAIN.fullmatch(together):
        either = len(_EITHER_POINT.findall(together))
        return together.count(".") - either, 0, either
    point = comma = either = 0
    for text in texts:
        if "," not in text and "." not in text:
            continue
        bare = bare_number(text)
        if _EITHER.fullmatch(bare):
            either += 1
        elif _COMMA.fullmatch(bare):
            comma += 1
        elif _POINT.fullmatch(bare):
            point += 1
    return point, comma, either


def bare_number(text: str) -> str:
    """The text without spaces, currency and typographic minus; a minus at the end or brackets become a sign."""
    bare = _CURRENCY.sub("", text.replace("\u2212", "-").translate(_CLUTTER))
    if bare.startswith("(") and bare.endswith(")"):
        return "-" + bare[1:-1]
    if bare.endswith("-") and len(bare) > 1:
        return "-" + bare[:-1]
    return bare


def _read(text: str, mark: Mark) -> tuple[float, bool]:
    if mark == "point" and _PLAIN.fullmatch(text):
        return float(text), False
    if text.strip().lower() in MISSING:
        return np.nan, True
    bare = bare_number(text)
    if _THOUSANDS[mark].fullmatch(bare):
        bare = bare.replace("," if mark == "point" else ".", "")
    elif mark == "comma" and "." in bare and "," in bare:
        return np.nan, False
    bare = bare.replace(",", ".") if mark == "comma" else bare
    return (float(bare), False) if _PLAIN.fullmatch(bare) else (np.nan, False)
