"""The losses keep NumPyro's values, and their bits do not depend on the process."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import Trace_ELBO

from core.inference.objectives import OBJECTIVES

ROUNDING = 1e-6
"""Float32 sums of a dozen sites in another order."""
SITES = tuple("abcdefghijkl")

SCRIPT = """
import jax
from tests.core.inference.test_objectives import loss
for name in ("Trace_ELBO", "TraceMeanField_ELBO", "RenyiELBO"):
    print(name, float(loss(name)).hex())
"""


def model(x: np.ndarray) -> None:
    parts = [numpyro.sample(name, dist.Normal(0.1 * n, 0.37 * 1.9**n)) for n, name in enumerate(SITES)]
    numpyro.sample("seen", dist.Normal(sum(parts), 1.0).expand(x.shape).to_event(1), obs=x)


def guide(x: np.ndarray) -> None:
    for name in SITES:
        numpyro.sample(name, dist.Normal(numpyro.param(f"{name}_loc", 0.3), 0.1))


def loss(name: str, particles: int = 2) -> jax.Array:
    x = np.linspace(-1.0, 1.0, 7, dtype=np.float32)
    params = {f"{site}_loc": 0.3 for site in SITES}
    return OBJECTIVES[name].build(particles, 0.0).loss(jax.random.key(0), params, model, guide, x)


@pytest.mark.parametrize("particles", [1, 3])
def test_sites_summed_by_name_give_numpyros_bound(particles: int):
    x = np.linspace(-1.0, 1.0, 7, dtype=np.float32)
    params = {f"{site}_loc": 0.3 for site in SITES}
    theirs = Trace_ELBO(num_particles=particles).loss(jax.random.key(0), params, model, guide, x)
    assert np.isclose(loss("Trace_ELBO", particles), theirs, rtol=ROUNDING)


def test_every_process_finds_the_same_bits():
    """Sets of texts have another order under another hash seed; a resumed run must not notice."""
    found = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True,
            check=True, cwd=Path(__file__).parents[3],
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(found) == 1
