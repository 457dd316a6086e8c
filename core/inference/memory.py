"""Say what memory a fit will take before it starts, and refuse one that would not fit, with figures and a way out."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from core.environment import free_memory_bytes
from core.errors import Problem, UserError
from core.inference.batches import count_batches
from core.inference.guides import GUIDES
from core.inference.placement import free_on_devices, site_of
from core.inference.plan import FitPlan
from core.model import sites
from core.model.demand import site_names
from core.model.plan import ModelPlan
from core.panel import Panel

FLOAT = 4
IAF_WEIGHTS = 3 * 3
"""Square weight matrices of the inverse autoregressive flow: three flows of three layers."""
BNAF_WEIGHTS = 2 * 8 + 8 * 8
"""Square blocks of weights of the block neural flow with two hidden layers of 8 units per unknown."""
WORK_PANELS = 3
"""Panels of float32 that one step writes: log demand, its exponential, a product with the price."""
OPTIMISER_COPIES = 3
"""Gradient and two moments of Adam per parameter; the parameter itself is counted apart."""


@dataclass(frozen=True)
class FreeMemory:
    """Bytes that a fit could still take. `device` is of that with least among the `devices` that share the work;
    None where they are processors, which use the host's."""

    host: int
    device: int | None = None
    devices: int = 1


def free_memory(placement: str) -> FreeMemory:
    """What is free now where a plan of this placement would run. Starts JAX's backends for GPUs alone."""
    host = free_memory_bytes()
    if placement.startswith("cpu"):
        return FreeMemory(host)
    try:
        site = site_of(placement)
    except UserError:
        # A placement that is not there is refused by whoever starts the fit, with its reason.
        return FreeMemory(host)
    return FreeMemory(host, free_on_devices(site), site.shards)


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes by what they are for."""

    data: int
    """The panel and what one pass over it writes."""
    parameters: int
    optimiser: int
    draws: int

    @property
    def total(self) -> int:
        return self.data + self.parameters + self.optimiser + self.draws

    def on_host(self, panel: Panel, free: FreeMemory) -> MemoryEstimate:
        """The part in host memory: all of it on processors; beside a GPU the panel, a copy of the state, the draws."""
        if free.device is None:
            return self
        return MemoryEstimate(panel.nbytes, self.parameters, 0, self.draws)

    def on_device(self, free: FreeMemory) -> MemoryEstimate:
        """The part on each GPU; draws are made in pieces and leave at once."""
        data, parameters, optimiser = (part // free.devices for part in (self.data, self.parameters, self.optimiser))
        return MemoryEstimate(data, parameters, optimiser, 0)


def unknowns_by_site(panel: Panel, plan: ModelPlan) -> dict[str, int]:
    """Number of unknowns of each site."""
    sizes = {
        "category": panel.n_categories, "product": panel.n_products, "series": panel.n_series,
        "period": panel.n_periods, "covariate": panel.n_covariates,
    }  # fmt: skip

    def size(name: str) -> int:
        if name not in sites.SITES:
            return 1
        axes = sites.SITES[name].axes
        if name == sites.TIME and plan.time_effects == "shared":
            axes = ("period",)
        return prod(sizes[axis] for axis in axes)

    return {name: size(name) for name in site_names(panel, plan)}


def estimate_memory(plan: FitPlan, panel: Panel) -> MemoryEstimate:
    """What `plan` will take on `panel`, draws included, to within about a third."""
    unknowns = sum(unknowns_by_site(panel, plan.model).values())
    batches = count_batches(panel.n_products, plan.svi.batch_products) if plan.engine == "svi" else 1
    data = panel.nbytes + WORK_PANELS * panel.n_rows * panel.n_slots * FLOAT // batches
    draws = _draws_held(plan) * unknowns * FLOAT
    if plan.engine != "svi":
        return MemoryEstimate(data, 4 * unknowns * FLOAT, _shared_block(panel, plan.model), draws)
    parameters = guide_parameters(plan.svi.guide, unknowns, plan.svi.rank) * FLOAT
    return MemoryEstimate(data, parameters, OPTIMISER_COPIES * parameters, draws)


def _draws_held(plan: FitPlan) -> int:
    """Draws in memory at once. NUTS keeps every sample of every chain, beside those chosen for the posterior."""
    return plan.draws + (plan.nuts.chains * plan.nuts.samples if plan.engine == "nuts" else 0)


def guide_parameters(guide: str, unknowns: int, rank: int) -> int:
    """Number of parameters of a guide over `unknowns`; of the Laplace guide, its curvature."""
    square = unknowns * unknowns
    return {
        "AutoNormal": 2 * unknowns,
        "AutoDiagonalNormal": 2 * unknowns,
        "AutoLowRankMultivariateNormal": (rank + 2) * unknowns,
        "AutoMultivariateNormal": unknowns + square,
        "AutoIAFNormal": IAF_WEIGHTS * square,
        "AutoBNAFNormal": BNAF_WEIGHTS * square,
        "AutoLaplaceApproximation": unknowns + 2 * square,
        "AutoDelta": unknowns,
    }[guide]


def refuse_if_too_big(
    plan: FitPlan, panel: Panel, free: FreeMemory | None = None, share: float = 1.0
) -> MemoryEstimate:
    """The estimate; raises UserError with the figures and an alternative where it does not fit into `share` of the free
    memory, on the host or on a device. An installation's share is `Settings.memory_share`."""
    estimate = estimate_memory(plan, panel)
    free = free_memory(plan.placement) if free is None else free
    needs = [("free memory", estimate.on_host(panel, free), free.host)]
    if free.device is not None:
        needs.append(("free GPU memory", estimate.on_device(free), free.device))
    problems = [
        _refusal(plan, panel, where, need, have, int(share * have))
        for where, need, have in needs
        if need.total > int(share * have)
    ]
    if problems:
        raise UserError(problems)
    return estimate


def _refusal(plan: FitPlan, panel: Panel, where: str, need: MemoryEstimate, have: int, allowed: int) -> Problem:
    return Problem(
        "memory",
        f"this fit would take about {gigabytes(need.total)} ({_parts(need)}); {gigabytes(allowed)} of "
        f"{gigabytes(have)} {where} may be used",
        _way_out(plan, panel, need, allowed),
        where="memory",
    )


def gigabytes(count: int) -> str:
    """Bytes in words: '0.9 GB', or '12 MB' below a tenth of one."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.0f} MB"


def _parts(estimate: MemoryEstimate) -> str:
    parts = {
        "data": estimate.data, "parameters": estimate.parameters, "optimiser": estimate.optimiser,
        "draws": estimate.draws,
    }  # fmt: skip
    return ", ".join(f"{name} {gigabytes(count)}" for name, count in parts.items() if count)


def _way_out(plan: FitPlan, panel: Panel, estimate: MemoryEstimate, allowed: int) -> str:
    unknowns = sum(unknowns_by_site(panel, plan.model).values())
    if plan.engine == "svi" and GUIDES[plan.svi.guide].memory == "D^2":
        low_rank = 4 * FLOAT * guide_parameters("AutoLowRankMultivariateNormal", unknowns, plan.svi.rank)
        rest = estimate.data + estimate.draws
        guide, needed = ("AutoLowRankMultivariateNormal", low_rank + rest)
        if needed > allowed:
            guide, needed = "AutoNormal", 8 * FLOAT * unknowns + rest
        return (
            f"{plan.svi.guide} grows with the square of {unknowns:,} unknowns: use {guide} (about {gigabytes(needed)}) "
            "or the structured engine, which keeps the correlations that matter."
        )
    if estimate.draws > estimate.total // 2:
        if plan.engine == "nuts":
            return f"Sample fewer chains or draws than {plan.nuts.chains} x {plan.nuts.samples:,}, or fewer products."
        fewer = max(100, (allowed - (estimate.total - estimate.draws)) // (FLOAT * unknowns))
        return f"Keep {min(fewer, plan.draws):,} draws instead of {plan.draws:,}."
    fewer = panel.n_products * allowed // max(estimate.total, 1)
    return f"Fit fewer products or periods (about {fewer:,} of these products would fit), or use a larger machine."


def _shared_block(panel: Panel, plan: ModelPlan) -> int:
    """Bytes of the dense blocks of shared unknowns that the structured engine factorises."""
    shared = 2 + panel.n_covariates + (panel.n_periods if plan.time_effects != "none" else 0)
    return 3 * FLOAT * panel.n_categories * shared * shared
