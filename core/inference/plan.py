"""How to estimate it: engine, guide, objective, optimiser, steps, placement, seed. One declaration for every reader."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any

from core.declare import declared, violations
from core.errors import Problem, UserError
from core.inference.guides import GUIDES
from core.inference.objectives import OBJECTIVES
from core.inference.optimizers import OPTIMIZERS, SCHEDULES
from core.model.plan import ARTICLE_MODEL, ModelPlan

ENGINES = {
    "structured": "Seconds, with calibrated intervals. Start here.",
    "svi": "Stochastic variational inference: choose guide, loss and optimiser; mean-field intervals are too narrow.",
    "nuts": "Exact up to Monte-Carlo error, for small markets: minutes to hours.",
}
PARAMETERISATIONS = {
    "centred": "Sample effects themselves. Best where products have plenty of data.",
    "noncentred": "Sample standardised distances from the parent. Best where data are thin.",
}
STARTS = {
    "prior": "Near the prior means.",
    "structured": "At the structured engine's posterior: far fewer steps.",
}
DATA_HOMES = {
    "auto": "On the device where they fit, else in host memory.",
    "device": "All on the device: fastest.",
    "host": "In host memory, streamed to the device a mini-batch ahead: for data larger than the device.",
}
FEWEST_DRAWS = 100
"""Least number of posterior draws a plan may ask for; with fewer the ends of an interval are noise."""
PLACEMENT = re.compile(r"cpu|gpu|all-gpus|cpu:[1-9][0-9]*")


@dataclass(frozen=True)
class SviPlan:
    """Choices of stochastic variational inference."""

    guide: str = declared(
        "AutoNormal", "Guide", "Family of distributions that stands in for the posterior",
        choices={name: spec.help for name, spec in GUIDES.items()}, engines=("svi",),
    )  # fmt: skip
    rank: int = declared(
        10,
        "Rank",
        "Directions of correlation that a low-rank guide keeps",
        low=1,
        engines=("svi",),
        advanced=True,
    )
    loss: str = declared(
        "Trace_ELBO", "Loss", "Bound that is optimised",
        choices={name: spec.help for name, spec in OBJECTIVES.items()}, engines=("svi",),
    )  # fmt: skip
    alpha: float = declared(
        0.0,
        "Alpha",
        "Order of the Renyi bound; 0 is the importance-weighted bound",
        engines=("svi",),
        advanced=True,
    )
    particles: int = declared(1, "Particles", "Draws from the guide per step", low=1, high=1024, engines=("svi",))
    optimizer: str = declared(
        "clipped-adam", "Optimiser", "Rule that turns gradients into steps",
        choices={name: spec.help for name, spec in OPTIMIZERS.items()}, engines=("svi",),
    )  # fmt: skip
    learning_rate: float = declared(
        0.05, "Learning rate", "Size of the first steps", low=1e-6, high=10.0, engines=("svi",)
    )
    schedule: str = declared(
        "cosine", "Schedule", "How the learning rate falls",
        choices={name: spec.help for name, spec in SCHEDULES.items()}, engines=("svi",), advanced=True,
    )  # fmt: skip
    init_scale: float = declared(
        0.1, "First width", "Sd that the guide gives every unknown at first", low=1e-4, high=10.0,
        engines=("svi",), advanced=True,
    )  # fmt: skip
    steps: int = declared(2_000, "Steps", "Optimiser steps", low=1, high=10_000_000, engines=("svi",))
    parameterisation: str = declared(
        "centred", "Parameterisation", "How effects are written for the guide",
        choices=PARAMETERISATIONS, engines=("svi", "nuts"), advanced=True,
    )  # fmt: skip
    start: str = declared(
        "prior", "Starting point", "Where the guide starts", choices=STARTS, engines=("svi",), advanced=True
    )
    batch_products: int = declared(
        0, "Products per step", "Products in a mini-batch; 0 takes all of them in every step. A pass over the market "
        "is then several steps: allow more", low=0, engines=("svi",), advanced=True,
    )  # fmt: skip
    data_home: str = declared(
        "auto", "Data kept", "Where the rows of mini-batches lie until their step; the result is the same, bit for bit",
        choices=DATA_HOMES, engines=("svi",), advanced=True,
    )  # fmt: skip
    stop_at_plateau: bool = declared(
        False, "Stop at plateau", "End early once the loss is flat within its noise", engines=("svi",)
    )


@dataclass(frozen=True)
class StructuredPlan:
    """Choices of the structured engine."""

    max_iterations: int = declared(
        100,
        "Iterations",
        "Most outer iterations before giving up",
        low=1,
        engines=("structured",),
        advanced=True,
    )
    tolerance: float = declared(
        1e-3, "Tolerance", "Largest change of any elasticity, in its own sd, that counts as converged",
        low=1e-8, high=1.0, engines=("structured",), advanced=True,
    )  # fmt: skip


@dataclass(frozen=True)
class NutsPlan:
    """Choices of the No-U-Turn sampler."""

    warmup: int = declared(500, "Warm-up", "Steps that tune the sampler, not kept", low=10, engines=("nuts",))
    samples: int = declared(500, "Samples", "Draws kept per chain", low=10, engines=("nuts",))
    chains: int = declared(2, "Chains", "Independent chains, run one after another", low=1, high=16, engines=("nuts",))


@dataclass(frozen=True)
class FitPlan:
    """Everything that decides a fit, apart from the data. A plan that exists can run: it checks itself when built.

    Raises UserError naming every field that is off and the values that would do.
    """

    model: ModelPlan = field(default_factory=ModelPlan)
    engine: str = declared("structured", "Engine", "How the posterior is found", choices=ENGINES)
    svi: SviPlan = field(default_factory=SviPlan)
    structured: StructuredPlan = field(default_factory=StructuredPlan)
    nuts: NutsPlan = field(default_factory=NutsPlan)
    placement: str = declared(
        "cpu", "Device", "Where it runs: cpu, gpu, all-gpus, or cpu:N for N simulated devices (no speed-up)"
    )
    seed: int = declared(0, "Seed", "Start of the random numbers: same seed, same result", low=0, high=2**31 - 1)
    draws: int = declared(
        1_000, "Draws", "Posterior draws behind the tables", low=FEWEST_DRAWS, high=4_000, advanced=True
    )
    mass: float = declared(0.9, "Interval", "Posterior probability inside the intervals", low=0.5, high=0.99)

    def __post_init__(self) -> None:
        found = [what for part in (self, self.svi, self.structured, self.nuts) for what in violations(part)]
        if not PLACEMENT.fullmatch(self.placement):
            found.append(f"placement={self.placement!r} is not one of cpu, gpu, all-gpus, cpu:N")
        found += _unfit_for_batches(self.svi)
        if found:
            raise UserError(Problem("plan", what, "Change it and start again.", where="plan") for what in found)


def _unfit_for_batches(svi: SviPlan) -> list[str]:
    """Why an SVI plan cannot take a few products at a time, where it asks to."""
    if not svi.batch_products:
        if svi.data_home != "host":
            return []
        return ["data_home='host' streams mini-batches, and batch_products=0 has none: set batch_products"]
    found = []
    if svi.guide in GUIDES and GUIDES[svi.guide].couples_products:
        alone = ", ".join(name for name, spec in GUIDES.items() if not spec.couples_products)
        found.append(
            f"batch_products={svi.batch_products} needs a guide whose products stand alone, and {svi.guide} couples "
            f"them: use {alone}, or batch_products=0"
        )
    if svi.loss == "RenyiELBO" and svi.particles > 1:
        found.append(
            f"batch_products={svi.batch_products} does not go with RenyiELBO: the logarithm of a mean over particles "
            "is no sum over products; use Trace_ELBO, one particle, or batch_products=0"
        )
    return found


ARTICLE_SVI = SviPlan(
    guide="AutoNormal", loss="RenyiELBO", alpha=0.0, particles=4, optimizer="adamw", learning_rate=0.01,
    schedule="article", steps=1_000_000,
)  # fmt: skip
ARTICLE_PLAN = FitPlan(model=ARTICLE_MODEL, engine="svi", svi=ARTICLE_SVI)


def plan_with(plan: FitPlan, **values: Any) -> FitPlan:
    """A plan with fields replaced by name, however deep they lie. Raises UserError for unknown names."""
    unknown = set(values) - set(plan_values(plan))
    if unknown:
        raise UserError(
            Problem("plan", f"there is no choice '{name}'", "See --help for the choices.", where=name)
            for name in sorted(unknown)
        )
    return _replace_nested(plan, values)


def plan_values(plan: Any) -> dict[str, Any]:
    """Every declared choice of a plan by its own name, flat."""
    flat: dict[str, Any] = {}
    for f in fields(plan):
        value = getattr(plan, f.name)
        flat.update(plan_values(value) if is_dataclass(value) else {f.name: value})
    return flat


def plan_to_dict(plan: FitPlan) -> dict[str, Any]:
    """The plan as nested plain values, for the manifest."""
    return asdict(plan)


def _replace_nested(plan: Any, values: dict[str, Any]) -> Any:
    changed = {}
    for f in fields(plan):
        value = getattr(plan, f.name)
        if is_dataclass(value):
            changed[f.name] = _replace_nested(value, values)
        elif f.name in values:
            changed[f.name] = values[f.name]
    return replace(plan, **changed)
