"""The guides an analyst may choose, by their NumPyro names: when to use each, what it costs, how it is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from numpyro.infer import autoguide


@dataclass(frozen=True)
class GuideSpec:
    """One guide: `build(model, rank)` makes it; `memory` is how its parameters grow with the number of unknowns D."""

    help: str
    build: Callable[[Callable[..., Any], int], autoguide.AutoGuide]
    memory: Literal["D", "rank x D", "D^2"] = "D"
    couples_products: bool = True
    """False where every product's parameters can live on a device of their own."""


GUIDES: dict[str, GuideSpec] = {
    "AutoNormal": GuideSpec(
        "Mean-field: every unknown an independent normal. Fast, means are good, intervals too narrow.",
        lambda model, rank: autoguide.AutoNormal(model),
        couples_products=False,
    ),
    "AutoDiagonalNormal": GuideSpec(
        "Mean-field over one long vector. The same family as AutoNormal.",
        lambda model, rank: autoguide.AutoDiagonalNormal(model),
    ),
    "AutoLowRankMultivariateNormal": GuideSpec(
        "Mean-field plus a few directions of correlation.",
        lambda model, rank: autoguide.AutoLowRankMultivariateNormal(model, rank=rank),
        memory="rank x D",
    ),
    "AutoMultivariateNormal": GuideSpec(
        "All correlations. For up to a few thousand unknowns.",
        lambda model, rank: autoguide.AutoMultivariateNormal(model),
        memory="D^2",
    ),
    "AutoIAFNormal": GuideSpec(
        "Inverse autoregressive flow: skewed and curved posteriors of small markets.",
        lambda model, rank: autoguide.AutoIAFNormal(model),
        memory="D^2",
    ),
    "AutoBNAFNormal": GuideSpec(
        "Block neural flow: as IAF, more flexible, slower.",
        lambda model, rank: autoguide.AutoBNAFNormal(model),
        memory="D^2",
    ),
    "AutoLaplaceApproximation": GuideSpec(
        "The posterior mode and its curvature. For up to a few thousand unknowns.",
        lambda model, rank: autoguide.AutoLaplaceApproximation(model),
        memory="D^2",
    ),
    "AutoDelta": GuideSpec(
        "The posterior mode only, no intervals: a quick look.",
        lambda model, rank: autoguide.AutoDelta(model),
        couples_products=False,
    ),
}
