"""Say what memory a fit will take before it starts, and what is free."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from core.environment import free_memory_bytes
from core.errors import UserError
from core.inference.batches import CELLS, count_batches
from core.inference.placement import free_on_devices, site_of
from core.inference.plan import FitPlan
from core.inference.structured.columns import columns_of
from core.inference.structured.integrate import LINE, MOST_CELLS
from core.model import sites
from core.model.demand import site_names
from core.model.plan import ModelPlan
from core.panel import Panel

FLOAT, DOUBLE = 4, 8
IAF_WEIGHTS = 3 * 3
"""Square weight matrices of the inverse autoregressive flow: three flows of three layers."""
BNAF_WEIGHTS = 2 * 8 + 8 * 8
"""Square blocks of weights of the block neural flow with two hidden layers of 8 units per unknown."""
WORK_PANELS = 3
"""Panels of float32 that one step writes: log demand, its exponential, a product with the price."""
OPTIMISER_COPIES = 3
"""Gradient and two moments of Adam per parameter; the parameter itself is counted apart."""
AXES = 3
"""Scales that points lie along at most: of products, series and periods."""
HEAD_COPIES = 9
"""Dense blocks beside the points' covariances while the structured engine solves for what products share: the leaves'
part on the device and the covariance there, the message, its precision with priors, and of inverting that the scaled
matrices, the inverses one by one and together, and two that undo the scaling."""
HEAD_COPIES_ON_DEVICE = 3
"""Of these on each device: what the leaves add up to, as carried and as given out, and the covariance."""
BLOCKS = 2
"""Mini-batches on the devices at a time where they stream: one in use, one on its way."""
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
    head: int = 0
    """Dense blocks of the unknowns that products share, which the structured engine solves for on the host."""
    head_on_device: int = 0
    """Those of them that each device holds too."""
    mini_batches: int = 0
    """The market cut into mini-batches, on the host: until they lie on the devices, or as long as they stream."""
    data_home: str = "device"
    """Where rows lie until their step: 'device', or 'host' where mini-batches stream."""

    @property
    def total(self) -> int:
        return self.data + self.parameters + self.optimiser + self.head + self.draws + self.mini_batches

    @property
    def remark(self) -> str:
        """That mini-batches stream, in a sentence; '' where they do not."""
        return STREAMED if self.data_home == "host" else ""

    def on_host(self, panel: Panel, free: FreeMemory) -> MemoryEstimate:
        """The part in host memory: all of it on processors; beside a GPU the panel, a copy of the state, the head, the
        draws."""
        if free.device is None:
            return self
        return replace(self, data=panel.nbytes, optimiser=0, mini_batches=0)

    def on_device(self, free: FreeMemory) -> MemoryEstimate:
        """The part on each GPU; draws are made in pieces and leave at once."""
        data, parameters, optimiser = (part // free.devices for part in (self.data, self.parameters, self.optimiser))
        return MemoryEstimate(data, parameters, optimiser, 0, head=self.head_on_device, data_home=self.data_home)


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
        block = _head_block(panel, plan.model)
        head, on_device = (_points(panel, plan.model) + HEAD_COPIES) * block, HEAD_COPIES_ON_DEVICE * block
        return MemoryEstimate(data, 4 * unknowns * FLOAT, 0, draws, head, on_device)
    parameters = guide_parameters(plan.svi.guide, unknowns, plan.svi.rank) * FLOAT
    cut, home = (panel.nbytes if batches > 1 else 0), ("host" if streamed else "device")
    own = MemoryEstimate(data, parameters, OPTIMISER_COPIES * parameters, draws, mini_batches=cut, data_home=home)
    if plan.svi.start == "structured":
        # One fit after the other: what the first took is free again for the second.
        first = replace(estimate_memory(replace(plan, engine="structured"), panel), data_home=home)
        return max(own, first, key=lambda one: one.total)
    return own


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


def gigabytes(count: int) -> str:
    """Bytes in words: '0.9 GB', or '12 MB' below a tenth of one."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.0f} MB"


def _head_block(panel: Panel, plan: ModelPlan) -> int:
    """Bytes of one covariance of what each category's series share, [category, column, column] in float64."""
    return DOUBLE * panel.n_categories * columns_of(panel, plan).size ** 2


def _points(panel: Panel, plan: ModelPlan) -> int:
    """Most points of the mixture over learned scales, each of which keeps its covariance: on a line, or on a star of
    the scales of products, series and periods.

    Measured peaks of fits on 2 cores, Poisson, over blocks of `_head_block`: 200 products x 400 periods in 30
    categories (39 MB a block) took 10.5 with scales fixed, where 1 point makes 10, and 14.5 learned, where they needed
    5 points and 7 make 16; 400 x 260 in 40 (22 MB) took 11.9, and 22.3 with 7 points: freed blocks that small stay with
    the process.
    """
    most = 1 + max(len(LINE), 2 * AXES)
    return most if plan.scales == "learned" and most * panel.n_rows * panel.n_slots <= MOST_CELLS else 1
