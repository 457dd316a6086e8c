"""Is the structured posterior the exact one? Fit small markets with both engines and put them side by side.

`python -m core.benchmark.against_nuts docs/studies` is the committed study; it takes some minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.data.markets import panel_of_market
from core.inference.compare import Comparison, compare_with_nuts
from core.inference.engines import fit
from core.inference.plan import FitPlan, NutsPlan
from core.model.plan import ModelPlan
from core.simulation import MarketPlan, simulate


@dataclass(frozen=True)
class Case:
    """A market, what of the model is learned, and what is asked of means (in sd) and of ratios of sd."""

    likelihood: str
    scales: str
    mean_units: float
    products: int
    periods: int
    categories: int
    shift: float
    ratio: tuple[float, float]


POISSON = (0.05, (0.95, 1.05))
NEGBIN = (0.25, (0.88, 1.12))
CASES = (
    Case("poisson", "fixed", 40.0, 30, 20, 3, *POISSON),
    Case("poisson", "fixed", 3.0, 30, 20, 3, *POISSON),
    Case("poisson", "fixed", 1.0, 30, 20, 3, *POISSON),
    Case("negbin", "learned", 20.0, 64, 26, 8, *NEGBIN),
)
LEVELS = ("global", "category", "product")
SAMPLES = {"fixed": 5_000, "learned": 4_000}
WARMUP = 500


def study(cases: Iterable[Case] = CASES) -> Iterator[tuple[Case, Comparison]]:
    """Each case with both engines' estimates."""
    for case in cases:
        market = MarketPlan(
            products=case.products, periods=case.periods, categories=case.categories,
            likelihood=case.likelihood, mean_units=case.mean_units, seed=11,
        )  # fmt: skip
        panel, _ = panel_of_market(simulate(market))
        plan = FitPlan(
            model=ModelPlan(likelihood=case.likelihood, scales=case.scales),
            nuts=NutsPlan(warmup=WARMUP, samples=SAMPLES[case.scales], chains=2),
        )
        yield case, compare_with_nuts(fit(plan, panel), panel)


def rows(case: Case, found: Comparison) -> Iterator[str]:
    """A line of the table per level: largest shift, range of sd ratios, and the noise of the sampler itself."""
    levels = np.array(found.level)
    ess = found.nuts_fit.diagnostics["smallest_ess"]
    for level in LEVELS:
        at = levels == level
        ratio = found.sd_ratio[at]
        yield (
            f"| {case.likelihood}, {case.scales} scales | {case.mean_units:g} | {level} | "
            f"{np.abs(found.shift[at]).max():.3f} | {ratio.min():.3f} to {ratio.max():.3f} | {np.median(ratio):.3f} | "
            f"{case.shift:g} | {case.ratio[0]:g} to {case.ratio[1]:g} | {ess:,.0f} |"
        )


HEADER = f"""# The structured engine beside NUTS

    python -m core.benchmark.against_nuts docs/studies

The same model and data, two chains of NUTS with {SAMPLES["fixed"]:,} (fixed scales) or {SAMPLES["learned"]:,} (learned)
draws each; 4,000 draws of the structured posterior. *Shift* is the largest difference of means in NUTS' sd, *ratio* the
range of the structured sd over NUTS'. Both engines' numbers are of draws: with n effective draws a mean is known to
1/sqrt(n) sd and a ratio to about sqrt(1/(2n) + 1/8000), which the extremes over dozens of products show.

| model | mean units | level | shift | ratio | median ratio | asked of shift | asked of ratio | least effective draws |
|---|---|---|---|---|---|---|---|---|"""


def main() -> None:
    """Run the study and write nuts.md into the folder given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    out: Path = parser.parse_args().out
    lines = [HEADER]
    for case, found in study():
        lines += rows(case, found)
        (out / "nuts.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print("\n".join(lines[-3:]), flush=True)


if __name__ == "__main__":
    main()
