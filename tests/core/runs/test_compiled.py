"""Compiled programs outlive the process: the next one finds them, and a spoilt one is compiled anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.runs.compiled import FOLDER, OWN_FOLDER

PROGRAM = """
import sys
from pathlib import Path
import jax
from core.runs.compiled import keep_compiled
from core.settings import Settings

hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event))
keep_compiled(Settings(data_dir=Path(sys.argv[1])))

from core.data.markets import panel_of_market
from core.inference.engines import fit
from core.inference.plan import FitPlan
from core.simulation import MarketPlan, simulate

panel, _ = panel_of_market(simulate(MarketPlan(products=12, periods=26, categories=3)))
done = fit(FitPlan(), panel)
print(hits.count("/jax/compilation_cache/cache_hits"), done.losses.tobytes().hex())
"""


def fit_in_a_process(data_dir: Path, **environ: str) -> tuple[int, str]:
    """Programs found instead of compiled, and every bit of the objectives."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(data_dir)],
        env={**os.environ, **environ}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    hits, losses = ran.stdout.split()
    return int(hits), losses


@pytest.mark.slow
def test_the_next_process_finds_what_the_first_compiled_and_gets_the_same_bits(tmp_path):
    hits, losses = fit_in_a_process(tmp_path)
    assert hits == 0 and losses
    kept = [file for file in (tmp_path / FOLDER).iterdir() if file.stat().st_size > 1_000]
    assert kept
    hits, again = fit_in_a_process(tmp_path)
    assert hits == len(kept) and again == losses
    for file in kept:
        file.write_bytes(file.read_bytes()[:500])
    hits, mended = fit_in_a_process(tmp_path)
    assert hits == 0 and mended == losses


@pytest.mark.slow
def test_a_folder_of_the_users_own_decides(tmp_path):
    fit_in_a_process(tmp_path / "store", **{OWN_FOLDER: str(tmp_path / "own")})
    assert not (tmp_path / "store").exists()
