"""The guides an analyst may choose, by their NumPyro names: when to use each, what it costs, how it is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
from numpyro.infer import autoguide


@dataclass(frozen=True)
class GuideOptions:
    """What a guide is built with, apart from the model."""

    init_loc: Callable[..., Any]
    """NumPyro init strategy: where the guide is centred at first."""
    init_scale: float = 0.1
    """First sd of each unknown, unconstrained."""
    rank: int = 10


Build = Callable[[Callable[..., Any], GuideOptions], autoguide.AutoGuide]


@dataclass(frozen=True)
class GuideSpec:
    """One guide: `build(model, options)` makes it; `memory` says how it grows with the number of unknowns D."""

    help: str
    build: Build
    memory: Literal["D", "rank x D", "D^2"] = "D"
    couples_products: bool = True
    """False where every product's parameters can live on a device of their own."""


def _scaled(kind: type[autoguide.AutoGuide], **more: Callable[[GuideOptions], Any]) -> Build:
    def build(model: Callable[..., Any], options: GuideOptions) -> autoguide.AutoGuide:
        chosen = {name: value(options) for name, value in more.items()}
        return kind(model, init_loc_fn=options.init_loc, init_scale=options.init_scale, **chosen)

    return build


def _unscaled(kind: type[autoguide.AutoGuide]) -> Build:
    return lambda model, options: kind(model, init_loc_fn=options.init_loc)


def _curvature(function: Callable[[Any], Any], at: Any) -> Any:
    """Hessian a few columns at a time: all at once would write a panel per unknown."""

    def column(direction: Any) -> Any:
        return jax.jvp(jax.grad(function), (at,), (direction,))[1]

    return jax.lax.map(column, jnp.eye(at.size, dtype=at.dtype), batch_size=8)


GUIDES: dict[str, GuideSpec] = {
    "AutoNormal": GuideSpec(
        "Mean-field: every unknown an independent normal. Fast, means are good, intervals too narrow.",
        _scaled(autoguide.AutoNormal),
        couples_products=False,
    ),
    "AutoDiagonalNormal": GuideSpec(
        "Mean-field over one long vector. The same family as AutoNormal.",
        _scaled(autoguide.AutoDiagonalNormal),
    ),
    "AutoLowRankMultivariateNormal": GuideSpec(
        "Mean-field plus a few directions of correlation.",
        _scaled(autoguide.AutoLowRankMultivariateNormal, rank=lambda options: options.rank),
        memory="rank x D",
    ),
    "AutoMultivariateNormal": GuideSpec(
        "All correlations. For up to a few thousand unknowns.",
        _scaled(autoguide.AutoMultivariateNormal),
        memory="D^2",
    ),
    "AutoIAFNormal": GuideSpec(
        "Inverse autoregressive flow: skewed and curved posteriors of small markets.",
        _unscaled(autoguide.AutoIAFNormal),
        memory="D^2",
    ),
    "AutoBNAFNormal": GuideSpec(
        "Block neural flow: as IAF, more flexible, slower.",
        _unscaled(autoguide.AutoBNAFNormal),
        memory="D^2",
    ),
    "AutoLaplaceApproximation": GuideSpec(
        "The posterior mode and its curvature, for up to a few thousand unknowns. Fix the scales, or go non-centred: "
        "the mode of a learned spread is zero.",
        lambda model, options: autoguide.AutoLaplaceApproximation(
            model, init_loc_fn=options.init_loc, hessian_fn=_curvature
        ),
        memory="D^2",
    ),
    "AutoDelta": GuideSpec(
        "The posterior mode only, no intervals: a quick look. Fix the scales, or go non-centred: the mode of a learned "
        "spread is zero.",
        _unscaled(autoguide.AutoDelta),
        couples_products=False,
    ),
}
