"""Turn numbers into the words of tables, captions and alt texts."""

from __future__ import annotations

import math

from core.words import plural as plural

MISSING = "–"


def elasticity(mean: float, lower: float | None = None, upper: float | None = None) -> str:
    """'-1.92 [-2.08, -1.77]': two decimals, with the interval where it is given."""
    if not math.isfinite(mean):
        return MISSING
    if lower is None or upper is None:
        return _decimals(mean, 2)
    return f"{_decimals(mean, 2)} [{_decimals(lower, 2)}, {_decimals(upper, 2)}]"


def count(value: float) -> str:
    """'11,987': whole numbers with separators."""
    return f"{round(value):,}" if math.isfinite(value) else MISSING


def units(value: float) -> str:
    """Units sold: one decimal below a hundred, separators above."""
    if not math.isfinite(value):
        return MISSING
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:,.1f}"


def price(value: float) -> str:
    """A price in the file's currency: two decimals, four below ten cents."""
    if not math.isfinite(value):
        return MISSING
    return f"{value:,.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:,.4f}"


def share(value: float) -> str:
    """'96 %'; never 0 % or 100 % unless it is exact."""
    if not math.isfinite(value):
        return MISSING
    if 0 < value < 0.005:
        return "under 1 %"
    if 0.995 < value < 1:
        return "over 99 %"
    return f"{value:.0%}".replace("%", " %")


def seconds(value: float) -> str:
    """'0.3 s', '42 s', '2 min 5 s', '3 h 20 min', '2 d 4 h'."""
    if not math.isfinite(value):
        return MISSING
    if value < 0.1:
        return f"{value * 1_000:.0f} ms"
    if value < 9.95:
        return f"{value:.1f} s"
    total = round(value)
    for big, small, size in (("d", "h", 86_400), ("h", "min", 3_600), ("min", "s", 60)):
        if total >= size:
            return _two(total, size, {"d": 3_600, "h": 60, "min": 1}[big], big, small)
    return f"{total} s"


def loss(value: float) -> str:
    """A loss per observation, in nats: three decimals."""
    return f"{value:,.3f}" if math.isfinite(value) else "not a number"


def size(value: float) -> str:
    """Bytes in the unit that suits: '912 MB', '1.4 GB'."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 999.5:  # what would be rounded to 1000 is 1 of the next unit
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1_000
    return f"{value:,.1f} TB"


def _two(total: int, size: int, part: int, big: str, small: str) -> str:
    rest = (total % size) // part
    return f"{total // size} {big} {rest} {small}" if rest else f"{total // size} {big}"


def _decimals(value: float, places: int) -> str:
    """Without the sign of a rounded zero."""
    text = f"{value:,.{places}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text
