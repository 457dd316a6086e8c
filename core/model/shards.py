"""Say along which axis each array of a panel is divided over devices, and look up across levels within a shard."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import PartitionSpec
from jaxtyping import Float, Int

from core.panel import Panel

AXIS = "shard"
"""Name of the mesh axis over which products are divided."""


def panel_specs(panel: Panel) -> Panel:
    """A panel of PartitionSpecs: rows, series, products and blocks divided, market-wide sums on every device."""
    divided, whole = PartitionSpec(AXIS), PartitionSpec()
    specs = jax.tree.map(lambda _: divided, panel)
    return replace(
        specs,
        covariates=PartitionSpec(None, AXIS),
        sums=replace(
            jax.tree.map(lambda _: whole, panel.sums),
            series=divided,
            product_price=divided,
            observations=divided,
            log_mean=divided,
        ),
    )


def product_values_by_series(values: Float[Array, "product"], panel: Panel) -> Float[Array, "series"]:
    """The value of each series' product. Indices count within a shard, so the look-up is done shard by shard."""
    return _lookup(values, panel.product_of_series, panel.shards)


def category_of_series(panel: Panel) -> Int[Array, "series"]:
    """Category of each series, counted over the whole market."""
    return _lookup(panel.category_of_product, panel.product_of_series, panel.shards)


def _lookup(values: Array, index: Array, shards: int) -> Array:
    if shards == 1:
        return jnp.asarray(values)[index]
    local = jax.vmap(lambda v, i: v[i])(values.reshape(shards, -1), index.reshape(shards, -1))
    return local.reshape(-1)
