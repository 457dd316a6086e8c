"""Two processes on one machine, each with one device, fit what one process with two devices fits."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from core.cli import main

MARKET = ["--products", "15", "--periods", "20", "--categories", "3", "--seed", "5", "--likelihood", "poisson"]
FIT = ["--engine", "svi", "--steps", "300", "--draws", "1000"]
SAME = 1e-3
"""In sd: the same random numbers on as many devices; sums between processes are added in another order."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def started(words, devices: int) -> subprocess.Popen:
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": str(devices)}
    command = [sys.executable, "-m", "core", "fit", *words]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    path = tmp_path_factory.mktemp("market") / "sales.csv"
    assert main(["simulate", *MARKET, "--out", str(path)]) == 0
    return path


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--batch-products", "5"]], ids=["full", "mini-batches"])
def test_two_processes_find_what_one_finds_and_only_the_first_writes_and_talks(market, tmp_path, more):
    alone = started([str(market), *FIT, *more, "--placement", "cpu:2", "--out", str(tmp_path / "alone")], devices=2)
    assert alone.wait(timeout=300) == 0, alone.stderr.read()[-3000:]
    team = ["--coordinator", f"127.0.0.1:{free_port()}", "--processes", "2"]
    both = [
        started([str(market), *FIT, *more, *team, "--process-id", str(k), "--out", str(tmp_path / str(k))], devices=1)
        for k in range(2)
    ]
    said = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said[0][-3000:] + said[1][-3000:]
    assert "All 300 steps done." in said[0] and "steps" not in said[1]
    assert not (tmp_path / "1").exists()
    one, two = (pd.read_parquet(tmp_path / name / "elasticities.parquet") for name in ("alone", "0"))
    assert (np.abs(one["mean"] - two["mean"]) < SAME * one["sd"]).all()
    np.testing.assert_allclose(two["sd"], one["sd"], rtol=SAME)


@pytest.mark.slow
def test_processes_that_were_given_different_plans_refuse(market, tmp_path):
    team = ["--coordinator", f"127.0.0.1:{free_port()}", "--processes", "2", "--out", str(tmp_path / "out")]
    both = [started([str(market), *FIT, *team, "--process-id", str(k), "--seed", str(k)], devices=1) for k in range(2)]
    said = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [2, 2], said
    assert all("do not have the same" in one for one in said)


@pytest.mark.parametrize("words, said", [
    (["--coordinator", "here", "--engine", "svi"], "not HOST:PORT"),
    (["--coordinator", "a:1", "--processes", "2", "--process-id", "2", "--engine", "svi"], "no process 2 of 2"),
    (["--coordinator", "a:1", "--engine", "structured"], "runs in one process"),
    (["--coordinator", "a:1", "--engine", "svi", "--store"], "belongs to one process"),
])  # fmt: skip
def test_a_team_that_cannot_be_is_refused_before_it_starts(market, tmp_path, capsys, words, said):
    assert main(["fit", str(market), "--out", str(tmp_path / "out"), *words]) == 2
    assert said in capsys.readouterr().err
