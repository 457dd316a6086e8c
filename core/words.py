"""Put counts and other people's names into words. A leaf: every room may say a sentence."""

from __future__ import annotations

import unicodedata

LONGEST_NAME = 120
INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Unicode categories of signs that show nothing, or that steer what shows them."""


def plural(number: int, singular: str, several: str | None = None) -> str:
    """'1 product', '11,987 products'."""
    return f"{number:,} {singular if number == 1 else several or singular + 's'}"


def shown_name(text: str, fallback: str = "unnamed") -> str:
    """`text` as a name for screens and lists: one line, no control characters, at most 120 characters."""
    kept = "".join(" " if unicodedata.category(sign) in INVISIBLE else sign for sign in text)
    return " ".join(kept.split())[:LONGEST_NAME].strip() or fallback
