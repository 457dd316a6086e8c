"""Turn a plan and a panel's shape into NumPyro's SVI: model, guide, objective and optimiser, with its first state.

What is set up here sees only the panel's small arrays: a guide keeps what it first saw for as long as it lives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import PartitionSpec
from numpyro import distributions as dist
from numpyro import handlers
from numpyro.infer import SVI, autoguide, init_to_value
from numpyro.infer.reparam import LocScaleReparam
from numpyro.primitives import Messenger

from core.inference.guides import GUIDES, GuideOptions
from core.inference.objectives import OBJECTIVES
from core.inference.optimizers import OPTIMIZERS, SCHEDULES
from core.inference.plan import FitPlan
from core.inference.prototype import first_state
from core.inference.starts import DECENTRED, Start
from core.model import sites
from core.model.demand import demand
from core.model.shards import AXIS
from core.panel import Panel

Model = Callable[[Panel], None]
OWN_SITES = (sites.PRODUCT, sites.LEVEL_SERIES)
"""Sites of which every device keeps its own part."""
OWN_PARAMETERS = tuple(f"{site}{end}_auto_" for site in OWN_SITES for end in ("", DECENTRED))


@dataclass(frozen=True)
class Program:
    """An SVI ready to run, all products in every step; `first` is the state before any."""

    svi: SVI
    guide: autoguide.AutoGuide
    small: Panel
    """The market without its cells, for calls that want the model's argument and not its data."""
    first: Any

    def step(self, state: Any, panel: Panel, at: Array | None = None) -> tuple[Any, Array]:
        """The state after one step and the loss; as it was, and not a number, where loss or slopes are not finite.

        `at`, a step's place in its chunk, changes nothing here: mini-batches take another batch by it.
        """
        return self.svi.stable_update(state, panel)

    def params(self, state: Any) -> dict[str, Array]:
        """The guide's parameters by name."""
        return self.svi.get_params(state)


def build_program(plan: FitPlan, panel: Panel, start: Start) -> Program:
    """Set up SVI for a divided panel (host or device arrays). Hold TRACING_LOCK: it runs the model once.

    The guide's prototype is the market without its cells, except for the Laplace guide, whose curvature needs them.
    """
    model, svi_plan, small = model_of(plan), plan.svi, without_cells(panel)
    curved = svi_plan.guide == "AutoLaplaceApproximation"
    guide = GUIDES[svi_plan.guide].build(model_of(plan, fused=not curved), guide_options(plan, start))
    objective = OBJECTIVES[svi_plan.loss].build(svi_plan.particles, svi_plan.alpha)
    schedule = SCHEDULES[svi_plan.schedule].build(svi_plan.learning_rate, svi_plan.steps)
    svi = SVI(model, _own_parts(guide), OPTIMIZERS[svi_plan.optimizer].build(schedule), objective)
    seen = panel if curved else small
    first = first_state(svi, guide, seen, small, start.loc, lambda: _widths(guide, start), plan.seed)
    return Program(svi, guide, small, first)


def model_of(plan: FitPlan, fused: bool = True) -> Model:
    """The demand model in the plan's parameterisation: NumPyro heeds only a reparam that wraps the model."""
    model = partial(demand, plan=plan.model, fused=fused)
    if plan.svi.parameterisation == "centred":
        return model
    return handlers.reparam(model, config={name: Decentred() for name in sites.POOLED})


def guide_options(plan: FitPlan, start: Start) -> GuideOptions:
    """Start and rank as a guide's builder takes them."""
    values = {name: jnp.asarray(value) for name, value in start.loc.items()}
    return GuideOptions(init_to_value(values=values), plan.svi.init_scale, plan.svi.rank)


def without_cells(panel: Panel) -> Panel:
    """The same market with no slots: every unknown, no data. Its likelihood is 0 and costs nothing."""
    rows = panel.n_rows
    nothing = np.zeros((rows, 0), np.float32)
    return replace(
        panel,
        log_price=nothing,  # type: ignore[arg-type]
        weight=nothing,  # type: ignore[arg-type]
        units=nothing,  # type: ignore[arg-type]
        covariates=np.zeros((panel.n_covariates, rows, 0), np.float32),  # type: ignore[arg-type]
        period=None,
    )


def is_own(name: str) -> bool:
    """Whether a site or one of its guide's parameters belongs to products or series, not to what they share."""
    return name.removesuffix(DECENTRED) in OWN_SITES or name.startswith(OWN_PARAMETERS)


def state_specs(state: Any) -> Any:
    """A tree of PartitionSpecs like `state`: leaves of products and series are divided by their first axis."""

    def spec(path: Any, leaf: Any) -> PartitionSpec:
        own = any(is_own(str(getattr(entry, "key", ""))) for entry in path)
        return PartitionSpec(AXIS) if own and np.ndim(leaf) else PartitionSpec()

    return jax.tree_util.tree_map_with_path(spec, state)


class Decentred(LocScaleReparam):
    """Write a site as a standardised distance from its parent, masked as the site itself is."""

    def __init__(self) -> None:
        super().__init__(centered=0.0)

    def __call__(self, name: str, fn: Any, obs: Any) -> Any:
        if isinstance(fn, dist.MaskedDistribution):
            with handlers.mask(mask=fn._mask):
                return super().__call__(name, fn.base_dist, obs)
        return super().__call__(name, fn, obs)


class _OwnParts(Messenger):
    """Does to sites of products and series in the guide what `own_part` does to them in the model."""

    def __init__(self, panel: Panel):
        super().__init__(None)
        real = {sites.PRODUCT: panel.real_product, sites.LEVEL_SERIES: panel.real_series}
        self.masks = {name + end: mask for name, mask in real.items() for end in ("", DECENTRED)}
        self.times = panel.batches

    def process_message(self, msg: dict[str, Any]) -> None:
        if msg["type"] == "sample" and msg["name"] in self.masks:
            msg["fn"] = msg["fn"].mask(self.masks[msg["name"]])
            msg["scale"] = self.times * (1 if msg.get("scale") is None else msg["scale"])


def _own_parts(guide: autoguide.AutoGuide) -> Callable[[Panel], Any]:
    """The guide; of a divided panel or a mini-batch, with fillers masked and own parts scaled."""

    def masked(panel: Panel) -> Any:
        if not panel.filled:
            return guide(panel)
        with _OwnParts(panel):
            return guide(panel)

    return masked


def _widths(guide: autoguide.AutoGuide, start: Start) -> dict[str, Any]:
    """First values of the guide's scale parameters, as far as the start knows them and the guide has them."""
    if not start.scale:
        return {}
    if isinstance(guide, autoguide.AutoNormal):
        return {f"{name}_auto_scale": jnp.asarray(width) for name, width in start.scale.items()}
    if isinstance(guide, autoguide.AutoDiagonalNormal | autoguide.AutoLowRankMultivariateNormal):
        widths = [
            jnp.broadcast_to(start.scale.get(name, guide._init_scale), jnp.shape(at)).ravel()
            for name, at in guide._init_locs.items()
        ]
        return {"auto_scale": jnp.concatenate(widths)}
    return {}
