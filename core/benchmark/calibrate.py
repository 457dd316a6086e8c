"""Do the intervals mean what they say? Simulate markets with known elasticities, fit each, and count how often 90 % and
50 % intervals hold the truth. A line per market is written as it comes; the report is made from the lines.

`python -m core calibrate --markets 20 --out docs/studies` is the committed study.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from time import perf_counter

import numpy as np

from core.data.markets import panel_of_market
from core.declare import declared, violations
from core.errors import Problem, UserError
from core.inference.engines import draw, fit
from core.inference.fit import Draws
from core.inference.plan import ENGINES, FitPlan
from core.model.plan import LIKELIHOODS, SCALES, ModelPlan
from core.posterior.accuracy import share_inside
from core.simulation import Market, MarketPlan, simulate

MASSES = (0.9, 0.5)
BINS = np.linspace(-4, 4, 33)
"""Edges of the histogram of z scores."""
MEAN_UNITS = (0.3, 50.0)
"""Mean units of the first and of the last market; even steps of the logarithm between them."""
GOALS = {
    "product_90": (0.885, 0.915),
    "product_50": (0.485, 0.515),
    "category_90": (0.85, 0.95),
    "global_90": (0.85, 0.95),
}
"""Shares of truths inside, pooled over markets, that the project holds itself to."""


@dataclass(frozen=True)
class Calibration:
    """One market: what was drawn and fitted, the share of truths inside each interval, and the z scores' histogram."""

    likelihood: str
    seed: int
    mean_units: float
    products: int
    categories: int
    product_90: float
    product_50: float
    category_90: float
    category_50: float
    global_90: float
    global_50: float
    z_mean: float
    z_sd: float
    bias: float
    """Mean of estimate less truth, in elasticity."""
    spread: float
    """Estimated spread of products around their category; drawn with 0.5."""
    poor: float
    """Share of products whose k-hat is above 0.7."""
    seconds: float
    outcome: str
    histogram: tuple[int, ...]


@dataclass(frozen=True)
class CalibrationPlan:
    """How many markets of each likelihood, how large, and which engine."""

    markets: int = declared(20, "Markets", "Markets of each likelihood, from few to many units", low=1)
    products: int = declared(1_000, "Products", "Products of each market", low=1)
    periods: int = declared(104, "Periods", "Weeks of each market", low=1)
    categories: int = declared(10, "Categories", "Categories of each market", low=1)
    likelihoods: str = declared("poisson,negbin", "Likelihoods", "Which to study, with commas between")
    scales: str = declared("learned", "Scales", "Learn the hierarchy's spreads or fix them", choices=SCALES)
    engine: str = declared("structured", "Engine", "Whose intervals are studied", choices=ENGINES)
    seed: int = declared(1, "Seed", "Start of the random numbers; markets differ by it", low=0)

    def __post_init__(self) -> None:
        found = violations(self)
        unknown = [name for name in self.likelihood_names if name not in LIKELIHOODS]
        found += [f"likelihood '{name}' is not one of {', '.join(LIKELIHOODS)}" for name in unknown]
        if found:
            raise UserError(
                Problem("calibrate", what, "Change it and start again.", where="calibrate") for what in found
            )

    @property
    def likelihood_names(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.likelihoods.split(",") if name.strip())


def run_calibration(
    plan: CalibrationPlan, out: Path | None = None, on_market: Callable[[Calibration], None] = lambda market: None
) -> tuple[Calibration, ...]:
    """Fit all markets of the plan. With `out`, writes calibration.csv line by line and calibration.md at the end."""
    found: list[Calibration] = []
    for market in _markets(plan):
        found.append(calibrate_market(market, plan))
        on_market(found[-1])
        if out is not None:
            write_lines(out / "calibration.csv", found)
    if out is not None:
        write_report(out, plan, found)
    return tuple(found)


def calibrate_market(plan: MarketPlan, calibration: CalibrationPlan) -> Calibration:
    """Fit one market with the likelihood it was drawn from."""
    market = simulate(plan)
    panel, _ = panel_of_market(market)
    model = ModelPlan(likelihood=plan.likelihood, scales=calibration.scales)
    began = perf_counter()
    found = fit(FitPlan(model=model, engine=calibration.engine, seed=plan.seed), panel)
    draws = draw(found, panel, 1_000, plan.seed)
    seconds = perf_counter() - began
    poor = float(np.mean(np.asarray(found.diagnostics.get("k_hat", np.zeros(1))) > 0.7))
    return _summary(market, draws, seconds, poor, found.outcome.ending.name.lower())


def _markets(plan: CalibrationPlan) -> Iterable[MarketPlan]:
    levels = np.geomspace(*MEAN_UNITS, plan.markets)
    for likelihood in plan.likelihood_names:
        for number, mean_units in enumerate(levels):
            yield MarketPlan(
                products=plan.products,
                periods=plan.periods,
                categories=plan.categories,
                likelihood=likelihood,
                mean_units=round(float(mean_units), 3),
                seed=plan.seed * 1_000 + number + (500 if likelihood == "negbin" else 0),
                elasticity_mean=round(float(np.random.default_rng(number).normal(-2.0, 0.5)), 3),
            )


def _summary(market: Market, draws: Draws, seconds: float, poor: float, outcome: str) -> Calibration:
    truth, plan = market.truth, market.plan
    inside = {
        f"{level}_{int(100 * mass)}": share_inside(values, target, mass)
        for level, values, target in (
            ("product", draws.elasticity_product, truth.elasticity_product),
            ("category", draws.elasticity_category, truth.elasticity_category),
            ("global", draws.elasticity_global, np.asarray(truth.elasticity_global)),
        )
        for mass in MASSES
    }
    mean = draws.elasticity_product.mean(axis=0)
    z = (truth.elasticity_product - mean) / draws.elasticity_product.std(axis=0)
    scale = draws.others.get("elasticity_product_scale", np.array([np.nan]))
    return Calibration(
        likelihood=plan.likelihood, seed=plan.seed, mean_units=plan.mean_units, products=plan.products,
        categories=plan.categories, **inside, z_mean=float(z.mean()), z_sd=float(z.std()),
        bias=float(np.mean(mean - truth.elasticity_product)), spread=float(np.mean(scale)), poor=poor,
        seconds=seconds, outcome=outcome, histogram=tuple(np.histogram(np.clip(z, -3.99, 3.99), BINS)[0].tolist()),
    )  # fmt: skip


def write_lines(path: Path, found: list[Calibration]) -> None:
    """All markets so far as CSV, the histogram as a list in one column."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([f.name for f in fields(Calibration)])
        for market in found:
            values = asdict(market) | {"histogram": json.dumps(market.histogram)}
            writer.writerow([round(v, 5) if isinstance(v, float) else v for v in values.values()])


def pooled(found: Iterable[Calibration]) -> dict[str, float]:
    """Share inside over all markets, every product (category, market) counting once."""
    found = list(found)
    weights = {"product": [m.products for m in found], "category": [m.categories for m in found]}
    shares = {}
    for level in ("product", "category", "global"):
        for mass in MASSES:
            name = f"{level}_{int(100 * mass)}"
            values = [getattr(m, name) for m in found]
            shares[name] = float(np.average(values, weights=weights.get(level)))
    return shares


def write_report(out: Path, plan: CalibrationPlan, found: list[Calibration]) -> None:
    """calibration.md: pooled shares beside their goals, a line per market, and the z scores' histogram as SVG."""
    (out / "calibration.svg").write_text(histogram_svg(found), encoding="utf-8")
    (out / "calibration.md").write_text("\n".join(_report(plan, found)) + "\n", encoding="utf-8")


def _report(plan: CalibrationPlan, found: list[Calibration]) -> Iterable[str]:
    yield "# Do the intervals mean what they say?"
    yield ""
    yield f"    python -m core calibrate --markets {plan.markets} --out docs/studies"
    yield ""
    yield (
        f"{plan.markets} simulated markets of each likelihood, mean units per product and week from {MEAN_UNITS[0]:g} "
        f"to {MEAN_UNITS[1]:g}; {plan.products:,} products, {plan.periods} weeks and {plan.categories} categories "
        f"each. Every market is fitted with the `{plan.engine}` engine, scales {plan.scales}, default priors, and "
        "1,000 draws. *Inside* is the share of true elasticities inside the interval."
    )
    yield ""
    yield "| markets | level | inside 90 % | inside 50 % | goal at 90 % | goal at 50 % |"
    yield "|---|---|---|---|---|---|"
    for name in (*plan.likelihood_names, "all"):
        shares = pooled([m for m in found if name in (m.likelihood, "all")])
        for level in ("product", "category", "global"):
            yield (
                f"| {name} | {level} | {_percent(shares[f'{level}_90'])} | {_percent(shares[f'{level}_50'])} | "
                f"{_goal(f'{level}_90')} | {_goal(f'{level}_50')} |"
            )
    yield ""
    yield (
        "Shares of one market move together with its estimated spread: where data are thin, a spread that came out too "
        "small by chance makes all its intervals too narrow at once. The pooled share is the calibration."
    )
    yield ""
    yield "![z scores of product elasticities: (truth - mean) / sd, beside the standard normal](calibration.svg)"
    yield ""
    yield (
        "| likelihood | seed | mean units | product 90 % | product 50 % | category 90 % | z mean | z sd | bias | "
        "spread (true 0.5) | k-hat > 0.7 | seconds | outcome |"
    )
    yield "|" + "---|" * 13
    for m in found:
        yield (
            f"| {m.likelihood} | {m.seed} | {m.mean_units:g} | {_percent(m.product_90)} | {_percent(m.product_50)} | "
            f"{_percent(m.category_90)} | {m.z_mean:+.2f} | {m.z_sd:.2f} | {m.bias:+.3f} | {m.spread:.2f} | "
            f"{_percent(m.poor)} | {m.seconds:.1f} | {m.outcome} |"
        )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _goal(name: str) -> str:
    if name not in GOALS:
        return ""
    low, high = GOALS[name]
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def histogram_svg(found: Iterable[Calibration]) -> str:
    """Density of z scores by likelihood, as steps, with the standard normal beside them."""
    width, height, margin = 640, 260, 30
    markets = list(found)
    colours = {"poisson": "#1f6f8b", "negbin": "#c8553d"}
    top = 0.5

    def place(z: float, density: float) -> str:
        x = margin + (z + 4) / 8 * (width - 2 * margin)
        return f"{x:.1f},{height - margin - density / top * (height - 2 * margin):.1f}"

    normal = " ".join(place(z, np.exp(-z * z / 2) / np.sqrt(2 * np.pi)) for z in np.linspace(-4, 4, 161))
    parts = [f'<polyline points="{normal}" fill="none" stroke="#888" stroke-width="2" stroke-dasharray="4 3"/>']
    for number, likelihood in enumerate(dict.fromkeys(m.likelihood for m in markets)):
        counts = np.sum([m.histogram for m in markets if m.likelihood == likelihood], axis=0)
        density = counts / counts.sum() / (BINS[1] - BINS[0])
        steps = [place(z, d) for i, d in enumerate(density) for z in (BINS[i], BINS[i + 1])]
        colour = colours.get(likelihood, "#444")
        parts.append(f'<polyline points="{" ".join(steps)}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<text x="{margin}" y="{24 + 16 * number}" fill="{colour}">{likelihood}</text>')
    for z in range(-4, 5):
        x, y = place(z, 0).split(",")
        parts.append(f'<text x="{x}" y="{float(y) + 16:.1f}" text-anchor="middle" fill="#555">{z}</text>')
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )
