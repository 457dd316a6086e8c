"""Turn the options of a benchmark into cells: each one variant of one case, measured in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from core.benchmark.options import BenchmarkOptions
from core.benchmark.records import Record
from core.errors import Problem, UserError
from core.inference.plan import ARTICLE_SVI

LOSSES = (("Trace_ELBO", 1), (ARTICLE_SVI.loss, ARTICLE_SVI.particles))
"""Loss and particles of the step case: the plain bound, and the article's."""

BATCH_PRODUCTS = (6_000, 3_000, 1_500)


class BatchKind(NamedTuple):
    """Where the data of a mini-batch lie until its step."""

    data_home: str
    told: str


BATCH_KINDS = {
    "minibatch": BatchKind("device", "all data on the device"),
    "streamed": BatchKind("host", "data in host memory until their step"),
}
"""The kinds of mini-batches, by the beginning of their variants."""


def batch_variant(kind: str, size: int) -> str:
    """Name of the variant that takes `size` products a step."""
    return f"{kind}-{size}"


VARIANTS: dict[str, str] = {
    "article": "The article's recipe: one row an observation, one call of a compiled step each, as SVI.run does",
    "article-fused": "The article's steps in one compiled loop: its layout at its best",
    "article-extrapolated": "The article's recipe at the million steps it asks for: its rate here times a million",
    "panel": "The same model, guide, loss and optimiser on the panel, in our live loop and from our start",
    "structured": "The structured engine, from panel to summaries, scales learned",
    "structured-fixed": "The structured engine, from panel to summaries, scales fixed",
    "svi": "Our SVI, default plan, mean-field guide",
    "svi-lowrank": "Our SVI, default plan, low-rank guide",
    "all-products": "Our SVI, default model and mean-field guide, all products in every step",
    **{
        batch_variant(kind, size): f"The same with {size:,} products a step, {home.told}"
        for kind, home in BATCH_KINDS.items()
        for size in BATCH_PRODUCTS
    },
    "nuts": "NUTS, exact up to Monte-Carlo error, on a small market",
    "live": "Our live loop, publishing losses at least four times a second",
    "fused": "Our loop in one piece, nothing published",
    "numpyro-progress-bar": "NumPyro's SVI.run with its progress bar",
    "numpyro-scan": "NumPyro's SVI.run without progress bar, one scan",
}
"""What each variant is, in a sentence."""


@dataclass(frozen=True)
class Cell:
    """One thing to measure, as plain values that travel to the process that measures it."""

    case: str
    variant: str
    placement: str = "cpu"
    loss: str = ""
    particles: int = 0
    guide: str = ""
    products: int = 0
    periods: int = 0
    rows: int = 0
    """Of a regression; 0 where a market is fitted."""
    columns: int = 0
    batch_products: int = 0
    """Products a step; 0 takes all of them."""
    data_home: str = "auto"
    likelihood: str = "poisson"
    steps: int = 0
    """Steps to run; 0: as many as fit in `seconds`."""
    seconds: float = 4.0
    """Measuring time, compilation apart."""

    @property
    def n_obs(self) -> int:
        return self.rows or self.products * self.periods

    @property
    def title(self) -> str:
        """The cell in words, for progress."""
        size = f"{self.n_obs:,} rows"
        method = f" {self.loss}" if self.loss else ""
        return f"{self.case}: {self.variant}{method} on {self.placement}, {size}"


def cells_of(options: BenchmarkOptions) -> tuple[Cell, ...]:
    """All cells of a run, in the order of the cases asked for. Raises UserError for an unknown case."""
    unknown = [case for case in options.case_names if case not in CASES]
    if unknown:
        raise UserError(Problem("benchmark", f"there is no case '{unknown[0]}'", f"Use {', '.join(CASES)}."))
    return tuple(replace(cell, seconds=options.seconds) for case in options.case_names for cell in CASES[case](options))


def _step(options: BenchmarkOptions) -> Iterator[Cell]:
    for place in options.real_placements:
        base = Cell("step", "", place, products=options.products, periods=options.periods)
        for loss, particles in LOSSES:
            recipe = replace(base, loss=loss, particles=particles, guide=ARTICLE_SVI.guide)
            yield from (replace(recipe, variant=variant) for variant in ("article", "article-fused", "panel"))
        yield from (replace(base, variant=variant) for variant in ("structured", "structured-fixed"))


SMALL_REGRESSION = Cell("live", "", "", "Trace_ELBO", 1, "AutoNormal", rows=100, columns=3, steps=20_000)
"""The small case of NumPyro's own change to its progress bar."""
COMPUTE_BOUND = replace(SMALL_REGRESSION, rows=100_000, columns=20, steps=2_000)
"""A regression whose steps take so long that the loop around them should not matter."""


def _live(options: BenchmarkOptions) -> Iterator[Cell]:
    for place in options.real_placements:
        for problem in (SMALL_REGRESSION, COMPUTE_BOUND):
            for variant in ("fused", "live", "numpyro-progress-bar", "numpyro-scan"):
                yield replace(problem, variant=variant, placement=place)


SVI_STEPS = (300, 1_000, 3_000)
"""Step counts at which SVI's error is measured."""
SMALL_MARKET = Cell("posterior", "", products=60, periods=26)
"""A market small enough for NUTS."""


def _posterior(options: BenchmarkOptions) -> Iterator[Cell]:
    for place in options.real_placements:
        base = Cell("posterior", "", place, products=options.products, periods=options.periods)
        yield replace(base, variant="structured")
        yield from (_svi(base, steps) for steps in SVI_STEPS)
        yield replace(_svi(base, SVI_STEPS[1]), variant="svi-lowrank", guide="AutoLowRankMultivariateNormal")
        recipe = replace(base, loss=ARTICLE_SVI.loss, particles=ARTICLE_SVI.particles, guide=ARTICLE_SVI.guide)
        yield replace(recipe, variant="panel", steps=SVI_STEPS[-1])
        yield from (replace(recipe, variant=variant) for variant in ("article", "article-extrapolated"))
    yield from (replace(SMALL_MARKET, variant=variant) for variant in ("structured", "nuts"))
    yield _svi(SMALL_MARKET, SVI_STEPS[-1])


def _svi(base: Cell, steps: int) -> Cell:
    return replace(base, variant="svi", loss="Trace_ELBO", particles=1, guide="AutoNormal", steps=steps)


DEVICE_MARKET = Cell("devices", "", products=2_000, periods=104)
BATCH_MARKET = replace(DEVICE_MARKET, periods=157, loss="Trace_ELBO", particles=1, guide="AutoNormal")
BATCH_SIZES = {12_000: BATCH_PRODUCTS, 100_000: BATCH_PRODUCTS[:1]}
"""Products of the markets cut into mini-batches, and how many a step takes: 235,500 rows of 1,500 products."""


def _devices(options: BenchmarkOptions) -> Iterator[Cell]:
    for place in options.placement_names:
        base = replace(DEVICE_MARKET, placement=place)
        recipe = replace(base, loss="Trace_ELBO", particles=1, guide=ARTICLE_SVI.guide)
        yield replace(recipe, variant="panel", steps=200)
        yield replace(base, variant="structured")
        yield replace(recipe, variant="article", steps=20)
    yield from (
        replace(cell, placement=place)
        for place in options.real_placements
        for products, sizes in BATCH_SIZES.items()
        for cell in batch_cells(products, sizes)
    )


def batch_cells(products: int, sizes: Sequence[int] = BATCH_PRODUCTS) -> Iterator[Cell]:
    """All products in every step, and mini-batches of each size with their data in either place."""
    market = replace(BATCH_MARKET, products=products)
    yield replace(market, variant="all-products")
    for kind, (home, _) in BATCH_KINDS.items():
        for size in sizes:
            yield replace(market, variant=batch_variant(kind, size), batch_products=size, data_home=home)


SCALE_PERIODS = 156
SCALE_PRODUCTS = (64, 256, 1_024, 4_096, 16_384, 65_536, 100_000, 262_144, 1_000_000)
"""Four times as many products each: 10^4 to 4 x 10^7 rows, and the article's own 15.6 and 156 million."""
HALF_A_YEAR = 26
"""Periods of a market with the most products whose rows fit where three years of them do not."""
SCALE_MARKETS = (*((products, SCALE_PERIODS) for products in SCALE_PRODUCTS), (SCALE_PRODUCTS[-1], HALF_A_YEAR))
ARTICLE_SCALE_LIMIT = 16_384
"""Largest market on which the article's steps are timed too; beyond, they only cost time."""


def _scale(options: BenchmarkOptions) -> Iterator[Cell]:
    for place in options.real_placements:
        for products, periods in SCALE_MARKETS:
            base = Cell("scale", "structured", place, products=products, periods=periods)
            recipe = replace(base, loss="Trace_ELBO", particles=1, guide=ARTICLE_SVI.guide)
            yield base
            yield replace(recipe, variant="panel")
            if products <= ARTICLE_SCALE_LIMIT:
                yield replace(recipe, variant="article")


CASES: Mapping[str, Callable[[BenchmarkOptions], Iterator[Cell]]] = {
    "step": _step,
    "live": _live,
    "posterior": _posterior,
    "devices": _devices,
    "scale": _scale,
}
"""The cells of each case, by its name."""


def blank(cell: Cell) -> Record:
    """The record of a cell before anything is known but what it is."""
    return Record(
        case=cell.case,
        variant=cell.variant,
        placement=cell.placement,
        devices=1,
        loss=cell.loss,
        particles=cell.particles,
        guide=cell.guide,
        n_products=cell.products,
        n_obs=cell.n_obs,
    )


def not_run(cell: Cell, reason: str) -> Record:
    """A cell that could not be measured: a row with its reason."""
    return replace(blank(cell), success=False, error=reason)
