"""Refuse a fit that would not fit in memory before it starts, with figures and a way out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core.errors import Problem, UserError
from core.inference.guides import GUIDES
from core.inference.memory import (
    FLOAT,
    FreeMemory,
    MemoryEstimate,
    estimate_memory,
    free_memory,
    gigabytes,
    guide_parameters,
    unknowns_by_site,
)
from core.inference.plan import FEWEST_DRAWS, FitPlan, plan_with
from core.panel import Panel

ROOM = 0.8
"""Share of the free memory up to which mini-batches lie on the devices, where the plan leaves that open."""
EPOCHS = (10, 100, 1_000)
"""Mini-batches in an epoch that may be advised, the fewest that do."""


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


def _parts(estimate: MemoryEstimate) -> str:
    parts = {
        "data": estimate.data, "parameters": estimate.parameters, "optimiser": estimate.optimiser,
        "shared unknowns": estimate.head, "draws": estimate.draws, "mini-batches": estimate.mini_batches,
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
        fewer = (allowed - (estimate.total - estimate.draws)) // (FLOAT * unknowns)
        if fewer >= FEWEST_DRAWS:
            return f"Keep {fewer:,} draws instead of {plan.draws:,}."
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
