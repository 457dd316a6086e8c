"""How much effort a compilation is worth: little on little data, XLA's own measure on more."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from core.benchmark.measure_live import RUNS, regression_data, regression_program
from core.inference.chunks import LIGHT, LITTLE_BYTES, _effort

STEPS = 500


def test_programs_on_little_data_are_compiled_lightly():
    little, much = jnp.zeros(LITTLE_BYTES // 8), jnp.zeros(LITTLE_BYTES // 4)
    assert _effort(jnp.float32(0), little) == LIGHT
    assert _effort(jnp.float32(0), much) is None
    assert _effort(much, little) is None


@pytest.mark.parametrize("rows", [100, 5_000])
def test_either_way_the_losses_are_those_of_numpyro(rows):
    data = tuple(jnp.asarray(part) for part in regression_data(rows, 3))
    assert (sum(part.nbytes for part in data) < LITTLE_BYTES) == (rows == 100)
    program = regression_program(data)
    losses = [RUNS[name](program, data)(STEPS).losses for name in ("live", "numpyro-scan")]
    np.testing.assert_allclose(*losses, rtol=1e-5)
