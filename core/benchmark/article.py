"""Turn a panel into the article's own recipe: one row an observation, mean-field guide, Renyi loss, decaying AdamW.

The baseline of every timing, written from the article's facts. Each observation gathers its product's and its
category-period's parameters by index, so that gradients come back as scatters: the layout whose cost the panel avoids.
Its log density equals that of our article preset, so that the two time the same model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Int
from numpyro.infer import SVI
from numpyro.infer.autoguide import AutoNormal

from core.inference.objectives import OBJECTIVES
from core.inference.optimizers import OPTIMIZERS, SCHEDULES
from core.inference.plan import ARTICLE_SVI
from core.model.plan import ARTICLE_PRIORS
from core.model.tracing import TRACING_LOCK
from core.panel import Panel

LOG_DEMAND_RANGE = (-4.0, 20.0)
"""The article clips log demand to these bounds, in log units; beyond them the gradient is 0."""


def _static() -> Any:
    return field(metadata={"static": True})


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Observations:
    """The market as the article holds it: parallel columns, one entry an observation, order of products kept."""

    product: Int[Array, "observation"]
    category_period: Int[Array, "observation"]
    """category x n_periods + period."""
    log_price: Float[Array, "observation"]
    """Log of the price itself, not centred."""
    units: Int[Array, "observation"]
    real: Bool[Array, "observation"] | None
    """False where an entry only fills up a device; None where none does."""
    category_of_product: Int[Array, "product"]
    n_products: int = _static()
    n_categories: int = _static()
    n_category_periods: int = _static()

    @property
    def n_obs(self) -> int:
        """Length of the columns, fillers included."""
        return int(self.product.shape[0])


def observations_of(panel: Panel) -> Observations:
    """List a host panel's observed cells. Raises ValueError where it has several series a product or no period."""
    if panel.n_series != panel.n_products or panel.n_periods == 0 or panel.n_covariates:
        raise ValueError("the article's model knows one series a product, a period, and no covariates")
    row, slot = np.nonzero(np.asarray(panel.weight))
    period = slot if panel.period is None else np.asarray(panel.period)[row, slot]
    series = np.asarray(panel.series_of_row)[row]
    product = np.asarray(panel.product_of_series)[series]
    category = np.asarray(panel.category_of_product)[product]
    log_price = np.asarray(panel.log_price)[row, slot] + np.asarray(panel.reference)[series]
    arrays: dict[str, Any] = {
        "product": product.astype(np.int32),
        "category_period": (category * panel.n_periods + period).astype(np.int32),
        "log_price": log_price.astype(np.float32),
        "units": np.asarray(panel.units)[row, slot].astype(np.int32),
        "category_of_product": np.asarray(panel.category_of_product, np.int32),
    }
    return Observations(
        **arrays,
        real=None,
        n_products=panel.n_products,
        n_categories=panel.n_categories,
        n_category_periods=panel.n_categories * panel.n_periods,
    )


def pad(observations: Observations, devices: int) -> Observations:
    """Fill up the columns so that their length divides by `devices`; fillers are masked, where the article's -1 is
    an index that silently reads the last product."""
    missing = -observations.n_obs % devices
    if missing == 0:
        return observations
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(observations, name), np.zeros(missing, getattr(observations, name).dtype)])
        for name in ("product", "category_period", "log_price", "units")
    }
    columns["real"] = np.arange(observations.n_obs + missing) < observations.n_obs
    return replace(observations, **columns)


def place_by_observation(observations: Observations, devices: list[Any]) -> Observations:
    """Put the observations on devices as the article does: columns divided, everything else replicated."""
    padded = pad(observations, len(devices))
    mesh = jax.make_mesh((len(devices),), ("observation",), (jax.sharding.AxisType.Auto,), devices=devices)
    divided = jax.sharding.NamedSharding(mesh, jax.P("observation"))
    whole = jax.sharding.NamedSharding(mesh, jax.P())
    return jax.tree.map(
        lambda leaf: jax.device_put(leaf, divided if leaf.shape[0] == padded.n_obs else whole),
        padded,
    )


def article_model(observations: Observations) -> None:
    """The article's model. Sites are named as in our own; `time_effect` is flat, [category x period]."""
    priors = ARTICLE_PRIORS
    market = numpyro.sample("elasticity_global", dist.Normal(priors.elasticity_mean, priors.elasticity_sd))
    with numpyro.plate("category", observations.n_categories):
        category = numpyro.sample("elasticity_category", dist.Normal(market, priors.elasticity_category_scale))
    with numpyro.plate("product", observations.n_products):
        centre = category[observations.category_of_product]
        elasticity = numpyro.sample("elasticity_product", dist.Normal(centre, priors.elasticity_product_scale))
        level = numpyro.sample("level_series", dist.Normal(0.0, priors.level_series_scale))
    with numpyro.plate("category_period", observations.n_category_periods):
        season = numpyro.sample("time_effect", dist.Normal(0.0, priors.time_scale))
    log_demand = (
        level[observations.product]
        + elasticity[observations.product] * observations.log_price
        + season[observations.category_period]
    )
    demand = jnp.exp(jnp.clip(log_demand, *LOG_DEMAND_RANGE))
    mask = True if observations.real is None else observations.real
    with numpyro.plate("observation", observations.n_obs), numpyro.handlers.mask(mask=mask):
        numpyro.sample("units", dist.Poisson(demand), obs=observations.units)


def article_svi(loss: str = ARTICLE_SVI.loss, particles: int = ARTICLE_SVI.particles) -> SVI:
    """The article's SVI: mean-field guide, AdamW on its schedule, and the loss asked for."""
    plan = ARTICLE_SVI
    schedule = SCHEDULES[plan.schedule].build(plan.learning_rate, plan.steps)
    objective = OBJECTIVES[loss].build(particles, plan.alpha)
    return SVI(article_model, AutoNormal(article_model), OPTIMIZERS[plan.optimizer].build(schedule), objective)


Advance = Callable[[Any, int], tuple[Any, Array]]
"""`advance(state, n) -> (state, last loss)`; the state given is used up."""


def first_state(svi: SVI, observations: Observations, seed: int = 0) -> Any:
    """The state before the first step."""
    with TRACING_LOCK:
        return svi.init(jax.random.key(seed), observations)


def stepwise(svi: SVI, state: Any, observations: Observations) -> Advance:
    """Steps as the article takes them: one call of a compiled step each, the data closed over as SVI.run does."""

    def update(state: Any) -> tuple[Any, Array]:
        return svi.update(state, observations)

    with TRACING_LOCK:
        step = jax.jit(update, donate_argnums=0).lower(state).compile()

    def advance(state: Any, n: int) -> tuple[Any, Array]:
        loss = jnp.float32(jnp.nan)
        for _ in range(n):
            state, loss = step(state)
        return state, loss

    return advance


def fused(svi: SVI, state: Any, observations: Observations) -> Advance:
    """The same steps in one compiled loop, the data an argument: what the layout costs with nothing in between."""

    def loop(state: Any, data: Observations, n: Array) -> tuple[Any, Array]:
        return jax.lax.fori_loop(0, n, lambda _, carry: svi.update(carry[0], data), (state, jnp.float32(0.0)))

    with TRACING_LOCK:
        compiled = jax.jit(loop, donate_argnums=0).lower(state, observations, jnp.int32(1)).compile()
    return lambda state, n: compiled(state, observations, jnp.int32(n))


def elasticities(svi: SVI, state: Any) -> Mapping[str, Float[np.ndarray, "product"]]:
    """Mean and sd of the product elasticities in the guide's normals."""
    params = svi.get_params(state)
    return {
        "mean": np.asarray(params["elasticity_product_auto_loc"]),
        "sd": np.asarray(params["elasticity_product_auto_scale"]),
    }
