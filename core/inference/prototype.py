"""Set up a guide and the first SVI state in one compilation; operation by operation, hundreds would each compile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.infer import SVI, autoguide, init_to_value

from core.panel import Panel


def first_state(
    svi: SVI,
    guide: autoguide.AutoGuide,
    seen: Panel,
    small: Panel,
    values: Mapping[str, np.ndarray],
    widths: Callable[[], dict[str, Any]],
    seed: int,
) -> Any:
    """The state before the first step; leaves `guide` set up at `values`, having seen the panel `seen`.

    `widths()` is asked, once the guide knows its sites, for the scale parameters a start sets. Hold TRACING_LOCK.
    """

    def set_up(key: Any, values: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        guide.init_loc_fn = init_to_value(values=values)
        with handlers.seed(rng_seed=0):
            guide._setup_prototype(seen)
        return guide._init_locs, svi.init(key, small, init_params=widths() or None)

    locs, first = jax.jit(set_up)(jax.random.PRNGKey(seed), {name: jnp.asarray(at) for name, at in values.items()})
    guide.init_loc_fn, guide._init_locs = init_to_value(values=values), locs
    if isinstance(guide, autoguide.AutoContinuous):
        guide._init_latent = jnp.concatenate([jnp.ravel(at) for at in locs.values()])
    return first
