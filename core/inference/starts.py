"""Choose where a guide starts: first values, and widths where known, of every unknown, from the data or from draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from core.errors import Problem, UserError
from core.inference.dividing import pad_fillers
from core.inference.engines import ENGINES
from core.inference.fit import Draws, Watcher
from core.inference.plan import FitPlan
from core.model import sites
from core.model.demand import site_names
from core.model.plan import ModelPlan, Priors
from core.panel import Panel

DECENTRED = "_decentered"
"""What NumPyro appends to the name of a site that LocScaleReparam rewrites."""
START_DRAWS = 400
"""Draws of the structured engine behind a start: their sd is off by 4 %, which a few steps mend."""
NARROWEST = 1e-3
"""Least width a start gives an unknown."""
WIDEST_LEARNED = 3.0
"""Most sd of a scale's logarithm that a start passes on."""


@dataclass(frozen=True)
class Start:
    """First values by site, in the model's own space; widths by site, sd in NumPyro's unconstrained space."""

    loc: Mapping[str, np.ndarray]
    scale: Mapping[str, np.ndarray] = field(default_factory=dict)


def first_start(plan: FitPlan, panel: Panel, divided: Panel) -> Start:
    """Where a plan's guide starts. `panel` is the host panel, `divided` the same over the run's devices.

    Raises UserError when the structured engine, asked for a start, has none to give.
    """
    decentred = plan.svi.parameterisation == "noncentred"
    if plan.svi.start == "structured":
        start = draws_start(_structured_draws(plan, panel), panel, plan.model, decentred)
    else:
        start = data_start(panel, plan.model)
        if decentred:
            start = replace(start, loc=decentre(start.loc, panel, plan.model))
    return Start(_padded(start.loc, divided, 0.0), _padded(start.scale, divided, 1.0))


def data_start(panel: Panel, plan: ModelPlan) -> Start:
    """Levels at each series' own mean units, elasticities at their prior mean, spreads at what levels show."""
    priors = plan.priors
    level = np.asarray(panel.sums.log_mean)
    category = _category_of_series(panel)
    cells = np.bincount(category, minlength=panel.n_categories)
    by_category = np.bincount(category, level, panel.n_categories) / np.maximum(cells, 1)
    by_category = np.where(cells > 0, by_category, level.mean())
    elasticity = priors.elasticity_mean
    if plan.preset == "article":
        level = level - elasticity * np.asarray(panel.reference)
    values = {
        sites.GLOBAL: elasticity,
        sites.CATEGORY: np.full(panel.n_categories, elasticity),
        sites.PRODUCT: np.full(panel.n_products, elasticity),
        sites.LEVEL_GLOBAL: by_category.mean(),
        sites.LEVEL_CATEGORY: by_category,
        sites.LEVEL_SERIES: level,
        sites.TIME: np.zeros(_time_shape(panel, plan)),
        sites.COVARIATE_GLOBAL: np.zeros(panel.n_covariates),
        sites.COVARIATE_CATEGORY: np.zeros((panel.n_categories, panel.n_covariates)),
        sites.CONCENTRATION_GLOBAL: priors.concentration_mean,
        sites.CONCENTRATION_CATEGORY: np.full(panel.n_categories, priors.concentration_mean),
        **_first_scales(priors, float(np.std(level - by_category[category])), float(np.std(by_category))),
    }
    return Start({name: np.asarray(values[name], np.float32) for name in site_names(panel, plan)})


def draws_start(draws: Draws, panel: Panel, plan: ModelPlan, decentred: bool) -> Start:
    """Mean and sd of every site over another engine's draws. `panel` is the undivided host panel.

    With `decentred`, pooled sites become standardised distances from their parent, draw by draw.
    """
    values = draws_by_site(draws, panel, plan)
    if decentred:
        values = decentre(values, panel, plan)
    positive = {name for name in values if name in sites.SCALES}
    free = {name: np.log(value) if name in positive else value for name, value in values.items()}
    loc = {name: value.mean(axis=0) for name, value in free.items()}
    scale = {
        name: np.clip(value.std(axis=0), NARROWEST, WIDEST_LEARNED if name in positive else None)
        for name, value in free.items()
    }
    return Start(
        {name: np.asarray(np.exp(at) if name in positive else at, np.float32) for name, at in loc.items()},
        {name: np.asarray(width, np.float32) for name, width in scale.items()},
    )


def draws_by_site(draws: Draws, panel: Panel, plan: ModelPlan) -> dict[str, np.ndarray]:
    """Draws under the names of the model's sites, draw first; what the draws do not hold is left out."""
    level = draws.level_series
    if plan.preset == "article":
        level = level - draws.elasticity_product[:, np.asarray(panel.product_of_series)] * np.asarray(panel.reference)
    held = {
        sites.GLOBAL: draws.elasticity_global,
        sites.CATEGORY: draws.elasticity_category,
        sites.PRODUCT: draws.elasticity_product,
        sites.LEVEL_SERIES: level,
        **draws.others,
    }
    return {name: np.asarray(held[name]) for name in site_names(panel, plan) if name in held}


def decentre(values: Mapping[str, np.ndarray], panel: Panel, plan: ModelPlan) -> dict[str, np.ndarray]:
    """Pooled sites as (value - parent) / scale; an axis of draws may come first. Others pass through."""
    changed = dict(values)
    for name in sites.POOLED:
        if name not in values:
            continue
        scale_name = sites.SITES[name].scale
        scale = np.asarray(values.get(scale_name, getattr(plan.priors, scale_name)))
        parent = _parent(name, values, panel)
        extra = np.ndim(values[name]) - np.ndim(scale)
        distance = np.asarray(values[name]) - parent
        changed[name + DECENTRED] = distance / scale.reshape(scale.shape + (1,) * extra)
        del changed[name]
    return changed


def _parent(name: str, values: Mapping[str, np.ndarray], panel: Panel) -> np.ndarray:
    if name in (sites.CATEGORY, sites.LEVEL_CATEGORY):
        return np.asarray(values[sites.GLOBAL if name == sites.CATEGORY else sites.LEVEL_GLOBAL])[..., None]
    if name == sites.PRODUCT:
        return np.asarray(values[sites.CATEGORY])[..., np.asarray(panel.category_of_product)]
    if name == sites.LEVEL_SERIES and sites.LEVEL_CATEGORY in values:
        return np.asarray(values[sites.LEVEL_CATEGORY])[..., _category_of_series(panel)]
    if name == sites.COVARIATE_CATEGORY:
        return np.asarray(values[sites.COVARIATE_GLOBAL])[..., None, :]
    return np.float32(0)  # type: ignore[return-value]


def _first_scales(priors: Priors, level_spread: float, category_spread: float) -> dict[str, float]:
    """Spreads to start from: half the prior's, and for levels what the data's own levels show."""
    halves = {scale: 0.5 * getattr(priors, scale) for scale in sites.SCALES}
    return {
        **halves,
        "level_series_scale": max(level_spread, 0.1),
        "level_category_scale": max(category_spread, 0.1),
    }


def _time_shape(panel: Panel, plan: ModelPlan) -> tuple[int, ...]:
    return (panel.n_categories, panel.n_periods) if plan.time_effects == "category" else (panel.n_periods,)


def _category_of_series(panel: Panel) -> np.ndarray:
    return np.asarray(panel.category_of_product)[np.asarray(panel.product_of_series)]


def _padded(values: Mapping[str, np.ndarray], divided: Panel, fill: float) -> dict[str, np.ndarray]:
    """Values of products and series in the divided panel's order, fillers at `fill`."""
    real = {sites.PRODUCT: divided.real_product, sites.LEVEL_SERIES: divided.real_series}
    return {
        name: pad_fillers(value, np.asarray(real[site]), fill)
        if (site := name.removesuffix(DECENTRED)) in real
        else value
        for name, value in values.items()
    }


def _structured_draws(plan: FitPlan, panel: Panel) -> Draws:
    engine = ENGINES["structured"]
    found = engine.fit(replace(plan, engine="structured"), panel, Watcher(), None)
    if not found.outcome.usable:
        raise UserError(
            Problem(
                "start",
                f"the structured engine gave no start: {found.outcome.sentence}",
                "Set start=prior.",
                where="start",
            )
        )
    return engine.draw(found, panel, START_DRAWS, plan.seed)
