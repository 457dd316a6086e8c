"""Say in words what each prior expects before it has seen data, so that it can be judged without statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, hypot
from statistics import NormalDist

from core.declare import declarations
from core.model.plan import ModelPlan, Priors

MOST = 0.9
"""Prior probability that 'most' stands for."""
REACH = NormalDist().inv_cdf((1 + MOST) / 2)
"""Standard deviations on either side that hold that probability under a normal distribution."""


@dataclass(frozen=True)
class Reading:
    """One prior: its field, label, value, and what the value says. `used` is False where the model has no such part."""

    name: str
    label: str
    value: float
    sentence: str
    used: bool


def readings(model: ModelPlan) -> tuple[Reading, ...]:
    """A reading for every prior of `model`, in the order of the declaration."""
    return tuple(
        Reading(field.name, rule.label, getattr(model.priors, field.name), SENTENCES[field.name](model.priors), used)
        for field, rule in declarations(Priors)
        for used in [_used(field.name, model)]
    )


def _used(name: str, model: ModelPlan) -> bool:
    if name.startswith("concentration"):
        return model.likelihood == "negbin"
    if name == "time_scale":
        return model.time_effects != "none"
    if name in ("level_sd", "level_category_scale"):
        return model.preset != "article"
    return True


def product_spread(priors: Priors) -> float:
    """Prior standard deviation of one product's elasticity, all levels together.

    E[tau^2] = scale^2 under a half-normal, so the same formula holds for learned and fixed scales.
    """
    return hypot(priors.elasticity_sd, priors.elasticity_category_scale, priors.elasticity_product_scale)


def _between(mean: float, sd: float) -> str:
    return f"between {_number(mean - REACH * sd)} and {_number(mean + REACH * sd)}"


def _factor(scale: float) -> str:
    return f"{_number(exp(REACH * scale))} times"


def _swing(scale: float) -> str:
    return f"{_number(100 * (exp(-REACH * scale) - 1), 0)} % and +{_number(100 * (exp(REACH * scale) - 1), 0)} %"


def _scatter(priors: Priors) -> str:
    low, high = (
        100 * exp(-(priors.concentration_mean + sign * REACH * priors.concentration_sd) / 2) for sign in (1, -1)
    )
    return f"{_number(low, 0)} % and {_number(high, 0)} %"


def _number(value: float, decimals: int = 1) -> str:
    return f"{value:,.{decimals}f}"


SENTENCES: dict[str, Callable[[Priors], str]] = {
    "elasticity_mean": lambda p: f"+1 % price: {_number(p.elasticity_mean)} % units, across the market.",
    "elasticity_sd": lambda p: f"The market most likely lies {_between(p.elasticity_mean, p.elasticity_sd)}.",
    "elasticity_category_scale": lambda p: (
        f"Most categories lie within {_number(REACH * p.elasticity_category_scale)} of the market."
    ),
    "elasticity_product_scale": lambda p: (
        f"Most products lie within {_number(REACH * p.elasticity_product_scale)} of their category, "
        f"and {_between(p.elasticity_mean, product_spread(p))} in all."
    ),
    "level_sd": lambda p: f"The market's usual units are known to within {_factor(p.level_sd)} up or down.",
    "level_category_scale": lambda p: (
        f"Most categories sell within {_factor(p.level_category_scale)} the market's usual units, up or down."
    ),
    "level_series_scale": lambda p: (
        f"Most products sell within {_factor(p.level_series_scale)} their category's usual units, up or down."
    ),
    "time_scale": lambda p: f"Most periods move units by between {_swing(p.time_scale)}.",
    "covariate_sd": lambda p: f"One unit of a covariate moves units by between {_swing(p.covariate_sd)}.",
    "covariate_scale": lambda p: f"Categories differ from that by between {_swing(p.covariate_scale)}.",
    "concentration_mean": lambda p: (
        f"Beyond chance, units scatter by about {_number(100 * exp(-p.concentration_mean / 2), 0)} % of their mean."
    ),
    "concentration_sd": lambda p: f"That scatter most likely lies between {_scatter(p)}.",
    "concentration_scale": lambda p: (
        f"Most categories scatter within {_factor(p.concentration_scale / 2)} the market's, up or down."
    ),
}
