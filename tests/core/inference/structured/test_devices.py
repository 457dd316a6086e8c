"""Dividing blocks over simulated devices changes nothing but rounding."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SAME = 1e-3
"""In posterior sd: fits stop when changes are below this."""
PROGRAM = """
import numpy as np
from core.inference.engines import ENGINES
from core.inference.fit import Watcher
from core.inference.plan import FitPlan
from core.model.plan import ModelPlan
from tests.core.panels import market_panel

panel = market_panel(products=20, categories=3, stores=2)
model = ModelPlan(likelihood="poisson", scales="fixed")
found = [
    ENGINES["structured"].fit(FitPlan(model=model, placement=place), panel, Watcher(), None)
    for place in ("cpu", "cpu:3")
]
draws = [ENGINES["structured"].draw(fit, panel, 70, 3).elasticity_product for fit in found]
found = [fit.diagnostics for fit in found]
print(np.abs((found[0]["mean"] - found[1]["mean"]) / found[0]["sd"]).max())
print(np.abs(found[0]["sd"] / found[1]["sd"] - 1).max())
print(np.abs((draws[0] - draws[1]) / found[0]["sd"]).max())
print(np.abs(found[0]["k_hat"] - found[1]["k_hat"]).max())
"""


@pytest.mark.slow
def test_three_devices_find_what_one_finds():
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "3"}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    different = [float(line) for line in run.stdout.split()]
    assert len(different) == 4
    assert max(different) < SAME, different
