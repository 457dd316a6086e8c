"""Turn the markets of a calibration study into lines of CSV, a report beside its goals, and a picture of z scores."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from core.benchmark.calibration import BINS, MASSES, MEAN_UNITS, Calibration, CalibrationPlan
from core.benchmark.options import options_typed
from core.inference.structured.psis import GOOD

GOALS = {
    "product_90": (0.885, 0.915),
    "product_50": (0.485, 0.515),
    "category_90": (0.85, 0.95),
    "global_90": (0.85, 0.95),
}
"""Shares of truths inside, pooled over markets, that the project holds itself to."""


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
    yield f"    {' '.join(filter(None, ('python -m core calibrate', options_typed(plan), '--out docs/studies')))}"
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
        f"spread (true 0.5) | k-hat > {GOOD:g} | seconds | outcome |"
    )
    yield "|" + "---|" * 13
    for m in found:
        yield (
            f"| {m.likelihood} | {m.seed} | {m.mean_units:g} | {_percent(m.product_90)} | {_percent(m.product_50)} | "
            f"{_percent(m.category_90)} | {m.z_mean:+.2f} | {m.z_sd:.2f} | {m.bias:+.3f} | {_known(m.spread, '.2f')} | "
            f"{_percent(m.poor)} | {m.seconds:.1f} | {m.outcome} |"
        )


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100 * share:.1f} %"


def _known(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)


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
