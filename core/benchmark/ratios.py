"""Turn records into what they are for: times faster than a named baseline, and whether what must hold does hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from core.benchmark.cases import BATCH_PRODUCTS, BATCH_SIZES, batch_variant
from core.benchmark.records import Record


@dataclass(frozen=True)
class Speedup:
    """How many times faster a record is than its baseline; `what` says of which `seconds`, the record's own."""

    record: Record
    baseline: Record
    times: float
    seconds: float
    what: str


BASELINES: dict[str, str] = {
    "step": "article",
    "scale": "article",
    "live": "numpyro-progress-bar",
    "posterior": "article-extrapolated",
}
"""The variant, on the CPU, that each case is measured against."""
WHOLE_RUNS = ("live", "posterior")
"""Cases whose seconds are those of the whole run, compilation included; elsewhere those of one step."""


def speedups(records: Sequence[Record]) -> tuple[Speedup, ...]:
    """Every record that did what its baseline did, in a step or in a whole run, against it. Baselines come out as 1."""
    found = []
    for record in records:
        baseline = _baseline(record, records)
        seconds, against = _seconds(record), _seconds(baseline)
        if baseline is not None and seconds and against:
            what = "whole run, compilation included" if record.case in WHOLE_RUNS else "one step"
            found.append(Speedup(record, baseline, against / seconds, seconds, what))
    return tuple(found)


def _baseline(record: Record, records: Sequence[Record]) -> Record | None:
    wanted = BASELINES.get(record.case)
    for other in records:
        same = other.case == record.case and other.n_obs == record.n_obs and other.placement.startswith("cpu")
        if not (same and other.success and other.variant == wanted):
            continue
        if record.case == "posterior" or (other.loss, other.particles) == (record.loss, record.particles):
            return other
    return None


def _seconds(record: Record | None) -> float | None:
    if record is None:
        return None
    if record.case in WHOLE_RUNS:
        return record.total_seconds
    return record.step_seconds.min if record.step_seconds else None


@dataclass(frozen=True)
class Target:
    """One thing that must hold: a ratio of two times in one report, and its bound."""

    name: str
    short: str
    """The same in a few words, where there is little room."""
    bound: float
    at_least: bool
    ratio: Callable[[Sequence[Record]], float | None]


@dataclass(frozen=True)
class Finding:
    """A target and what was measured; `value` is None where the report lacks one of the two sides."""

    target: Target
    value: float | None

    @property
    def holds(self) -> bool | None:
        if self.value is None:
            return None
        return self.value >= self.target.bound if self.target.at_least else self.value <= self.target.bound

    @property
    def sentence(self) -> str:
        bound = f"{'at least' if self.target.at_least else 'at most'} {self.target.bound:g}"
        if self.value is None:
            return f"{self.target.name}: not measured ({bound} wanted)"
        return f"{self.target.name}: {self.value:.3g} ({bound} wanted{'' if self.holds else ', missed'})"


def check_targets(records: Iterable[Record]) -> tuple[Finding, ...]:
    """What must hold, against what one report measured on the CPU."""
    cpu = tuple(record for record in records if record.success and record.placement == "cpu")
    return tuple(Finding(target, target.ratio(cpu)) for target in TARGETS)


def _step_ratio(loss: str, slow: str = "article", fast: str = "panel") -> Callable[[Sequence[Record]], float | None]:
    def ratio(records: Sequence[Record]) -> float | None:
        return _divided(_seconds(_find(records, "step", slow, loss)), _seconds(_find(records, "step", fast, loss)))

    return ratio


def _live_ratio(over: str, under: str, small: bool, whole: bool) -> Callable[[Sequence[Record]], float | None]:
    def ratio(records: Sequence[Record]) -> float | None:
        sizes = sorted({record.n_obs for record in records if record.case == "live"})
        if len(sizes) < 2:
            return None
        ours = [record for record in records if record.n_obs == sizes[0 if small else -1]]
        one, other = _find(ours, "live", over), _find(ours, "live", under)
        if one is None or other is None:
            return None
        if whole:
            return _divided(one.total_seconds, other.total_seconds)
        return _divided(one.run_seconds, other.run_seconds)

    return ratio


def _batch_ratio(variant: str, products: int) -> Callable[[Sequence[Record]], float | None]:
    def ratio(records: Sequence[Record]) -> float | None:
        ours = [record for record in records if record.n_products == products]
        one, other = (_find(ours, "devices", name) for name in (variant, "all-products"))
        return None if one is None or other is None else _divided(one.ns_per_obs_step, other.ns_per_obs_step)

    return ratio


def _fit_in_steps(variant: str) -> Callable[[Sequence[Record]], float | None]:
    def ratio(records: Sequence[Record]) -> float | None:
        whole = _find(records, "step", variant)
        step = _seconds(_find(records, "step", "article", "RenyiELBO"))
        return None if whole is None else _divided(whole.total_seconds, step)

    return ratio


def _find(records: Iterable[Record], case: str, variant: str, loss: str = "") -> Record | None:
    matches = (r for r in records if r.case == case and r.variant == variant and (not loss or r.loss == loss))
    return next(matches, None)


def _divided(one: float | None, other: float | None) -> float | None:
    return one / other if one and other else None


TARGETS: tuple[Target, ...] = (
    Target(
        "Panel step against the article's, Trace_ELBO, times faster",
        "Step, ELBO",
        12.0,
        True,
        _step_ratio("Trace_ELBO"),
    ),
    Target(
        "Panel step against the article's, RenyiELBO with 4 particles, times faster",
        "Step, Rényi x 4",
        15.0,
        True,
        _step_ratio("RenyiELBO"),
    ),
    Target(
        "Structured fit, scales learned, in article steps",
        "Fit, scales learned",
        60.0,
        False,
        _fit_in_steps("structured"),
    ),
    Target(
        "Structured fit, scales fixed, in article steps",
        "Fit, scales fixed",
        30.0,
        False,
        _fit_in_steps("structured-fixed"),
    ),
    Target(
        "Live loop against the fused one, small steps, times its seconds",
        "Live over fused, small",
        1.3,
        False,
        _live_ratio("live", "fused", True, False),
    ),
    Target(
        "Live loop against NumPyro's progress bar, small steps, whole run, times faster",
        "Live, whole run",
        5.0,
        True,
        _live_ratio("numpyro-progress-bar", "live", True, True),
    ),
    Target(
        "Live loop against the fused one, compute-bound, times its seconds",
        "Live over fused, large",
        1.05,
        False,
        _live_ratio("live", "fused", False, False),
    ),
    *(
        Target(
            f"Mini-batches of {BATCH_PRODUCTS[0]:,} of {products:,} products on the device against all products a "
            "step, per row read, times its seconds",
            f"Mini-batch of {products:,}",
            1.3,
            False,
            _batch_ratio(batch_variant("minibatch", BATCH_PRODUCTS[0]), products),
        )
        for products in BATCH_SIZES
    ),
)
"""What must hold on two cores at 1.88 million rows."""
