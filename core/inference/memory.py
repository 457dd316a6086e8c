"""Say what memory a fit will take before it starts, and refuse one that would not fit, with figures and a way out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod

from core.environment import free_memory_bytes
from core.errors import Problem, UserError
from core.inference.batches import CELLS, count_batches
from core.inference.guides import GUIDES
from core.inference.placement import free_on_devices, site_of
from core.inference.plan import FitPlan, plan_with
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
BLOCKS = 2
"""Mini-batches on the devices at a time where they stream: one in use, one on its way."""
ROOM = 0.8
"""Share of the free memory up to which mini-batches lie on the devices, where the plan leaves that open."""
EPOCHS = (10, 100, 1_000)
"""Mini-batches in an epoch that may be advised, the fewest that do."""
STREAMED = "The rows stay in host memory, and two mini-batches at a time are on the device."


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
    """The panel, or as much of it as lies on the devices at a time, and what one pass over that writes."""
    parameters: int
    optimiser: int
    draws: int
    mini_batches: int = 0
    """The market cut into mini-batches, on the host: until they lie on the devices, or as long as they stream."""
    data_home: str = "device"
    """Where rows lie until their step: 'device', or 'host' where mini-batches stream."""

    @property
    def total(self) -> int:
        return self.data + self.parameters + self.optimiser + self.draws + self.mini_batches

    @property
    def remark(self) -> str:
        """That mini-batches stream, in a sentence; '' where they do not."""
        return STREAMED if self.data_home == "host" else ""

    def on_host(self, panel: Panel, free: FreeMemory) -> MemoryEstimate:
        """The part in host memory: all of it on processors; beside a GPU the panel, a copy of the state, the draws."""
        if free.device is None:
            return self
        return replace(self, data=panel.nbytes, optimiser=0, mini_batches=0)

    def on_device(self, free: FreeMemory) -> MemoryEstimate:
        """The part on each GPU; draws are made in pieces and leave at once."""
        data, parameters, optimiser = (part // free.devices for part in (self.data, self.parameters, self.optimiser))
        return replace(self, data=data, parameters=parameters, optimiser=optimiser, draws=0, mini_batches=0)


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
    """What `plan` will take on `panel`, draws included, to within about a third; with all data on the device where the
    plan leaves open where they lie."""
    unknowns = sum(unknowns_by_site(panel, plan.model).values())
    batches = count_batches(panel.n_products, plan.svi.batch_products) if plan.engine == "svi" else 1
    streamed = batches > 1 and plan.svi.data_home == "host"
    data = _bytes_streamed(panel, batches) if streamed else panel.nbytes
    data += WORK_PANELS * panel.n_rows * panel.n_slots * FLOAT // batches
    draws = _draws_held(plan) * unknowns * FLOAT
    if plan.engine != "svi":
        return MemoryEstimate(data, 4 * unknowns * FLOAT, _shared_block(panel, plan.model), draws)
    parameters = guide_parameters(plan.svi.guide, unknowns, plan.svi.rank) * FLOAT
    cut, home = (panel.nbytes if batches > 1 else 0), ("host" if streamed else "device")
    return MemoryEstimate(data, parameters, OPTIMISER_COPIES * parameters, draws, cut, home)


def _bytes_streamed(panel: Panel, batches: int) -> int:
    """What of a panel lies on the devices while its mini-batches stream: cells of two of them, the rest whole."""
    held = [getattr(panel, name) for name in CELLS]
    cells = sum(leaf.nbytes for leaf in held if leaf is not None)
    return panel.nbytes - cells + BLOCKS * cells // batches


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
    memory, on the host or on a device. An installation's share is `Settings.memory_share`.

    Mini-batches of a plan that leaves open where their data lie stream where they would not all fit on the devices.
    """
    free = free_memory(plan.placement) if free is None else free

    def short(plan: FitPlan, share: float = share) -> list[Shortage]:
        return _shortages(estimate_memory(plan, panel), panel, free, share)

    if plan.engine == "svi" and plan.svi.batch_products and plan.svi.data_home == "auto":
        plan = plan_with(plan, data_home="host" if short(plan, min(share, ROOM)) else "device")
    if found := short(plan):
        way_out = _way_out(plan, panel, found[0], lambda other: not short(other))
        raise UserError(Problem("memory", str(one), way_out, where="memory") for one in found)
    return estimate_memory(plan, panel)


@dataclass(frozen=True)
class Shortage:
    """What a fit would take in one kind of memory, and why it may not: `have` bytes are free, `allowed` may be used."""

    kind: str
    need: MemoryEstimate
    have: int
    allowed: int

    def __str__(self) -> str:
        return (
            f"this fit would take about {gigabytes(self.need.total)} ({_parts(self.need)}); {gigabytes(self.allowed)} "
            f"of {gigabytes(self.have)} {self.kind} may be used"
        )


def _shortages(estimate: MemoryEstimate, panel: Panel, free: FreeMemory, share: float) -> list[Shortage]:
    needs = [Shortage("free memory", estimate.on_host(panel, free), free.host, int(share * free.host))]
    if free.device is not None:
        needs.append(Shortage("free GPU memory", estimate.on_device(free), free.device, int(share * free.device)))
    return [one for one in needs if one.need.total > one.allowed]


def gigabytes(count: int) -> str:
    """Bytes in words: '0.9 GB', or '12 MB' below a tenth of one."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.0f} MB"


def _parts(estimate: MemoryEstimate) -> str:
    parts = {
        "data": estimate.data, "parameters": estimate.parameters, "optimiser": estimate.optimiser,
        "draws": estimate.draws, "mini-batches": estimate.mini_batches,
    }  # fmt: skip
    return ", ".join(f"{name} {gigabytes(count)}" for name, count in parts.items() if count)


def _way_out(plan: FitPlan, panel: Panel, shortage: Shortage, fits: Callable[[FitPlan], bool]) -> str:
    estimate, allowed = shortage.need, shortage.allowed
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
    advice = next((words for words, other in _streaming(plan, panel) if fits(other)), "")
    less = f"fit fewer products or periods (about {fewer:,} of these products would fit), or use a larger machine."
    return f"{advice}, or {less}" if advice else less.capitalize()


def _streaming(plan: FitPlan, panel: Panel) -> Iterator[tuple[str, FitPlan]]:
    """Plans that stream what `plan` keeps on the device, each in words: its own mini-batches, or smaller ones."""
    svi, engine = plan.svi, "" if plan.engine == "svi" else "engine=svi, "
    if svi.batch_products and not engine:
        yield "Stream the rows from host memory (data_home=host)", plan_with(plan, data_home="host")
    needed = {"guide": "AutoNormal"} if GUIDES[svi.guide].couples_products else {}
    if svi.loss == "RenyiELBO" and svi.particles > 1:
        needed["loss"] = "Trace_ELBO"
    also = "".join(f", {name}={value}" for name, value in needed.items())
    for batches in EPOCHS:
        products = max(1, panel.n_products // batches)
        if engine or not 0 < svi.batch_products <= products:
            yield (
                f"Take mini-batches, which stream from host memory ({engine}batch_products={products}{also})",
                plan_with(plan, engine="svi", batch_products=products, data_home="host", **needed),
            )


def _shared_block(panel: Panel, plan: ModelPlan) -> int:
    """Bytes of the dense blocks of shared unknowns that the structured engine factorises."""
    shared = 2 + panel.n_covariates + (panel.n_periods if plan.time_effects != "none" else 0)
    return 3 * FLOAT * panel.n_categories * shared * shared
