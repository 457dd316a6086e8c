"""One colour for one thing on every page, light and dark: Okabe and Ito's palette, told apart by colour-blind readers.

Source: Okabe & Ito 2008, Color Universal Design. Dark variants are the lighter ones of each hue; yellow and orange are
darkened on white, where the originals are too pale for small marks. Verdicts differ by marker as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Theme = Literal["light", "dark"]


@dataclass(frozen=True)
class Shade:
    """A colour on light and on dark ground, as #RRGGBB."""

    light: str
    dark: str


COLOURS: dict[str, Shade] = {
    "elastic": Shade("#0072B2", "#56B4E9"),
    "inelastic": Shade("#D55E00", "#F08A4B"),
    "rises": Shade("#7D3C98", "#C39BD3"),
    "uncertain": Shade("#7A7A7A", "#B0B0B0"),
    "no variation": Shade("#8C7400", "#F0E442"),
    "global": Shade("#17212B", "#E7ECF1"),
    "category": Shade("#009E73", "#2BBE93"),
    "product": Shade("#B0568C", "#CC79A7"),
    "prior": Shade("#8FA3B5", "#8FA3B5"),
    "truth": Shade("#B97A00", "#E69F00"),
    "ink": Shade("#17212B", "#E7ECF1"),
    "quiet": Shade("#5B6875", "#9FADBA"),
    "grid": Shade("#D9E0E7", "#2E3A46"),
}
SYMBOLS: dict[str, str] = {
    "elastic": "circle",
    "inelastic": "diamond",
    "rises": "triangle-up",
    "uncertain": "circle-open",
    "no variation": "x-thin-open",
}


def colour(thing: str, theme: Theme = "light") -> str:
    """The colour of a thing, as #RRGGBB. Raises KeyError for a thing without one."""
    shade = COLOURS[thing]
    return shade.dark if theme == "dark" else shade.light


def faint(thing: str, theme: Theme = "light", opacity: float = 0.2) -> str:
    """The colour of a thing, see-through, for bands: rgba(...)."""
    code = colour(thing, theme).removeprefix("#")
    red, green, blue = (int(code[at : at + 2], 16) for at in (0, 2, 4))
    return f"rgba({red},{green},{blue},{opacity:g})"
