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
DRAWS = ["--draws", "1000"]
SVI = ["--engine", "svi", "--steps", "300", *DRAWS]
SAME = 1e-3
"""In sd: the same random numbers on as many devices; sums between processes are added in another order."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


RUNNING: list[subprocess.Popen] = []


@pytest.fixture(autouse=True)
def none_left():
    """A test that fails leaves no fit behind."""
    yield
    while RUNNING:
        RUNNING[-1].kill()
        RUNNING.pop().wait()


def started(words, devices: int) -> subprocess.Popen:
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": str(devices)}
    command = [sys.executable, "-m", "core", "fit", *words]
    RUNNING.append(
        subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    )
    return RUNNING[-1]


def both_started(words) -> list[subprocess.Popen]:
    team = ["--coordinator", f"127.0.0.1:{free_port()}", "--processes", "2"]
    return [started([*words(k), *team, "--process-id", str(k)], devices=1) for k in range(2)]


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    path = tmp_path_factory.mktemp("market") / "sales.csv"
    assert main(["simulate", *MARKET, "--out", str(path)]) == 0
    return path


@pytest.mark.slow
@pytest.mark.parametrize("fit, end", [
    (DRAWS, "Converged after"),
    ([*SVI, "--start", "structured"], "All 300 steps done."),
    ([*SVI, "--batch-products", "5"], "All 300 steps done."),
], ids=["structured", "svi from the structured posterior", "mini-batches"])  # fmt: skip
def test_two_processes_find_what_one_finds_and_only_the_first_writes_and_talks(market, tmp_path, fit, end):
    alone = started([str(market), *fit, "--placement", "cpu:2", "--out", str(tmp_path / "alone")], devices=2)
    assert alone.wait(timeout=300) == 0, alone.stderr.read()[-3000:]
    both = both_started(lambda k: [str(market), *fit, "--out", str(tmp_path / str(k))])
    said = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said[0][-3000:] + said[1][-3000:]
    assert end in said[0] and "steps" not in said[1]
    assert not (tmp_path / "1").exists()
    one, two = (pd.read_parquet(tmp_path / name / "elasticities.parquet") for name in ("alone", "0"))
    assert (np.abs(one["mean"] - two["mean"]) < SAME * one["sd"]).all()
    np.testing.assert_allclose(two["sd"], one["sd"], rtol=SAME)


@pytest.mark.slow
def test_processes_that_were_given_different_plans_refuse(market, tmp_path):
    both = both_started(lambda k: [str(market), *SVI, "--out", str(tmp_path / "out"), "--seed", str(k)])
    said = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [2, 2], said
    assert all("do not have the same" in one for one in said)


@pytest.mark.slow
def test_a_process_that_is_killed_ends_the_fit_of_the_others_with_a_sentence(market, tmp_path):
    endless = ["--engine", "svi", "--steps", "10000000", *DRAWS]
    first, second = both_started(lambda k: [str(market), *endless, "--out", str(tmp_path / "out")])
    assert any("step " in line for line in first.stderr), "it never began"
    second.kill()
    said = first.communicate(timeout=100)[1]
    assert first.returncode == 1, said[-3000:]
    assert "the line to another process broke" in said, said[-3000:]
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()
    second.communicate()


@pytest.mark.slow
def test_where_the_first_cannot_write_both_say_why_they_end(market, tmp_path):
    (tmp_path / "0" / "elasticities.parquet" / "in the way").mkdir(parents=True)
    both = both_started(lambda k: [str(market), *DRAWS, "--out", str(tmp_path / str(k))])
    said = [process.communicate(timeout=100)[1] for process in both]
    assert [process.returncode for process in both] == [2, 2], said[0][-3000:] + said[1][-3000:]
    assert "Is a directory" in said[0]
    assert "the first process could not write the results" in said[1]
    assert "Traceback" not in said[0] + said[1]


@pytest.mark.parametrize("words, said", [
    (["--coordinator", "here", "--engine", "svi"], "not HOST:PORT"),
    (["--coordinator", "a:1", "--processes", "2", "--process-id", "2", "--engine", "svi"], "no process 2 of 2"),
    (["--coordinator", "a:1", "--engine", "nuts"], "runs in one process"),
    (["--coordinator", "a:1", "--engine", "svi", "--store"], "belongs to one process"),
])  # fmt: skip
def test_a_team_that_cannot_be_is_refused_before_it_starts(market, tmp_path, capsys, words, said):
    assert main(["fit", str(market), "--out", str(tmp_path / "out"), *words]) == 2
    assert said in capsys.readouterr().err
