"""Find SVI defaults by measurement: `python -m core.benchmark.svi_study` fits one market by many plans.

The market is the newcomer's: 500 products x 104 periods, negative binomial, elasticities known. What counts is the RMSE
of product elasticities; the best that SVI reaches is taken from the longest runs. Prints a table.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import dataclass, replace

import numpy as np

from core.data.markets import panel_of_market
from core.inference.engines import draw, fit
from core.inference.plan import FitPlan, SviPlan
from core.posterior.accuracy import of_draws
from core.simulation import MarketPlan, simulate

RATES = (0.03, 0.1)
STEPS = (1_000, 4_000, 10_000)
LONG = 20_000
DRAWS = 400


@dataclass(frozen=True)
class Row:
    """One plan's result. `coverage` is the share of product elasticities inside their 90 % intervals."""

    name: str
    steps: int
    seconds: float
    compile_seconds: float
    loss: float
    rmse: float
    coverage: float
    ending: str


def candidates() -> list[tuple[str, SviPlan]]:
    """Plans to compare: rates and lengths; parameterisations, widths and objectives around the default."""
    base = SviPlan()
    grid = [
        (f"{schedule}, rate {rate:g}", replace(base, schedule=schedule, learning_rate=rate, steps=steps))
        for schedule, rate, steps in [*itertools.product(("cosine",), RATES, STEPS), ("constant", 0.03, 3_000)]
    ]
    around = [
        ("non-centred", replace(base, parameterisation="noncentred")),
        ("first width 0.02", replace(base, init_scale=0.02)),
        ("first width 0.3", replace(base, init_scale=0.3)),
        ("4 particles", replace(base, particles=4)),
        ("Renyi, 4 particles", replace(base, loss="RenyiELBO", particles=4)),
        ("closed-form divergences", replace(base, loss="TraceMeanField_ELBO")),
    ]
    long = [
        ("long, centred", replace(base, steps=LONG, learning_rate=0.01)),
        ("long, non-centred", replace(base, steps=LONG, learning_rate=0.01, parameterisation="noncentred")),
        ("long, 4 particles", replace(base, steps=LONG, learning_rate=0.01, particles=4)),
    ]
    return [("default", base), *grid, *around, *long]


def measure(name: str, svi: SviPlan, market_plan: MarketPlan) -> Row:
    """Fit the market by one plan and hold its draws against the truth."""
    market = simulate(market_plan)
    panel, _ = panel_of_market(market)
    result = fit(FitPlan(engine="svi", svi=svi), panel)
    if not result.outcome.usable:
        return Row(name, svi.steps, 0, 0, np.nan, np.nan, np.nan, result.outcome.ending.name)
    found = of_draws(draw(result, panel, DRAWS, 1), market.truth.elasticity_product)
    return Row(
        name=name,
        steps=svi.steps,
        seconds=result.timing.run_seconds,
        compile_seconds=result.timing.compile_seconds,
        loss=float(np.nanmean(result.losses[-100:])),
        rmse=found["rmse_to_truth"],
        coverage=found["coverage90"],
        ending=result.outcome.ending.name.lower(),
    )


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table, best RMSE first."""
    best = min(row.rmse for row in rows if np.isfinite(row.rmse))
    lines = [
        "| plan | steps | run s | compile s | last loss | RMSE | times best | 90 % intervals cover | ending |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: row.rmse if np.isfinite(row.rmse) else np.inf):
        lines.append(
            f"| {row.name} | {row.steps:,} | {row.seconds:.1f} | {row.compile_seconds:.1f} | {row.loss:,.0f} "
            f"| {row.rmse:.4f} | {row.rmse / best:.3f} | {row.coverage:.0%} | {row.ending} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the study and print its table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--products", type=int, default=500)
    options.add_argument("--periods", type=int, default=104)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", default="", help="only plans whose name contains this")
    given = options.parse_args()
    market = MarketPlan(products=given.products, periods=given.periods, seed=given.seed)
    rows = []
    for name, svi in candidates():
        if given.only in name:
            rows.append(measure(name, svi, market))
            print(table(rows[-1:]).splitlines()[-1], flush=True)
    print("\n" + table(rows))


if __name__ == "__main__":
    main()
