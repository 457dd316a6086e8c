"""What a market cell runs on, made untimed: the simulated market, encoded, and the memory it is measured against."""

from __future__ import annotations

import gc
from dataclasses import dataclass

import numpy as np

from core.benchmark.cases import Cell
from core.benchmark.memory import forget_peak, peak_bytes
from core.data.markets import panel_of_market
from core.environment import free_memory_bytes, resident_bytes
from core.panel import Panel, PanelLabels
from core.simulation import MarketPlan, simulate

CATEGORIES = 10
MARKET_SEED = 20_260_101
SIMULATION_BYTES = 160
"""Host memory that drawing and encoding a market takes at its peak, per row, in bytes; measured at 10^6 rows."""


@dataclass(frozen=True)
class Setting:
    """What a market cell runs on."""

    panel: Panel
    labels: PanelLabels
    elasticity: np.ndarray
    """True product elasticities."""
    resident: int
    """Host memory held before the market was made, in bytes."""


def set_up(cell: Cell) -> Setting:
    """Draw the cell's market and encode it; from here on the peak of memory is counted anew."""
    resident = resident_bytes()
    market = simulate(
        MarketPlan(
            products=cell.products,
            periods=cell.periods,
            categories=min(CATEGORIES, cell.products),
            likelihood=cell.likelihood,
            seed=MARKET_SEED,
        )
    )
    panel, labels = panel_of_market(market)
    truth = market.truth.elasticity_product
    del market
    gc.collect()
    forget_peak()
    return Setting(panel, labels, truth, resident)


def too_large(cell: Cell) -> str:
    """Why the cell's market does not fit into free memory; empty where it does."""
    needed, free = cell.n_obs * SIMULATION_BYTES, free_memory_bytes()
    if needed <= free:
        return ""
    return f"Not run: {cell.n_obs:,} rows need about {needed / 2**30:.1f} GB of memory; {free / 2**30:.1f} GB are free."


def memory_of(setting: Setting, n_obs: int) -> dict[str, float]:
    """Peak of host memory since the market was made, in bytes, and what it grew by for each row."""
    peak = peak_bytes()
    return {"peak_bytes": float(peak), "bytes_per_row": (peak - setting.resident) / n_obs}
