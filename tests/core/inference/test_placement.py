"""Where runs take place: what is available, division by whole products, and answers that do not depend on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from core.errors import UserError
from core.inference.dividing import cut_fillers, divide, pad_fillers
from core.inference.placement import available_placements, site_of
from tests.core.panels import market_panel, replicate_panel

LOSS_RTOL = 1e-5
"""Loss at fixed parameters across device counts: float32 sums in another order."""
MEAN_TOLERANCE = 0.1
"""In sd: what two optimisers with different random numbers may differ by at their end."""
SD_TOLERANCE = 0.05
STRUCTURED_TOLERANCE = 1e-4
"""In sd: fits stop at changes of 1e-6 sd; sums in another order are all that differs."""
PANELS = {"plain": market_panel, "stores": lambda: market_panel(stores=3, covariate=True), "strips": replicate_panel}


@pytest.fixture(scope="module")
def facts() -> dict:
    """What `devices.py` reports from a process with eight simulated devices."""
    environ = {**os.environ, "JAX_NUM_CPU_DEVICES": "8"}
    command = [sys.executable, "-m", "tests.core.inference.devices"]
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=900, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return json.loads(ended.stdout.splitlines()[-1])


def test_every_mode_is_available_or_says_why_not():
    modes = available_placements()
    assert modes["cpu"] == ""
    if not any(device.platform == "gpu" for device in jax.devices()):
        assert "no GPU" in modes["gpu"]
        assert modes["all-gpus"] == "two GPUs needed; this machine has none"


def test_an_unavailable_mode_is_refused_with_the_modes_that_are_available():
    with pytest.raises(UserError, match="Choose one of cpu"):
        site_of("cpu:4096")


@pytest.mark.parametrize("name", PANELS)
@pytest.mark.parametrize("shards", [2, 3, 5])
def test_division_keeps_every_cell_with_its_product_on_one_device(name, shards):
    panel = PANELS[name]()
    divided = divide(panel, shards)
    assert divided.n_rows % shards == 0 and divided.n_series % shards == 0 and divided.n_products % shards == 0
    np.testing.assert_array_equal(_cells(divided), _cells(panel))
    np.testing.assert_array_equal(cut_fillers(divided.sums.series, divided.real_series), panel.sums.series)
    np.testing.assert_array_equal(
        cut_fillers(divided.category_of_product, divided.real_product), panel.category_of_product
    )


@pytest.mark.parametrize("shards", [2, 3, 5])
def test_blocks_of_a_divided_panel_never_straddle_categories(shards):
    divided = divide(market_panel(stores=3), shards)
    product = divided.product_of_series.reshape(shards, -1)
    category = divided.category_of_product.reshape(shards, -1)
    rows = divided.series_of_row.reshape(shards, -1)
    of_row = np.take_along_axis(category, np.take_along_axis(product, rows, 1), 1).ravel()
    real = divided.weight.any(axis=1)
    of_block = np.repeat(divided.category_of_block, divided.block_rows)
    np.testing.assert_array_equal(of_row[real], of_block[real])


def test_rows_are_balanced_over_devices():
    divided = divide(market_panel(products=100), 4)
    rows = divided.weight.any(axis=1).reshape(4, -1).sum(axis=1)
    assert rows.max() - rows.min() <= 2


def test_padding_and_cutting_fillers_undo_each_other():
    real = np.array([True, False, True, True, False])
    values = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(cut_fillers(pad_fillers(values, real), real), values)


@pytest.mark.slow
def test_likelihood_and_gradients_do_not_depend_on_the_number_of_devices(facts):
    for fact in facts["likelihoods"]:
        assert fact["other"] == pytest.approx(fact["value"], rel=LOSS_RTOL)
        assert fact["gradient_error"] < LOSS_RTOL


@pytest.mark.slow
def test_the_mean_likelihood_of_an_epoch_on_several_devices_is_the_markets(facts):
    for fact in facts["batches"]:
        assert fact["mean"] == pytest.approx(fact["value"], rel=LOSS_RTOL), fact


@pytest.mark.slow
def test_fillers_add_exactly_nothing_to_loss_and_gradients(facts):
    for choices, fact in facts["fillers"].items():
        assert fact["moved"] == fact["value"], choices
        assert fact["gradient"] == 0.0, choices


@pytest.mark.slow
def test_fits_agree_over_devices_full_and_by_mini_batches(facts):
    one = {name: np.array(value) for name, value in facts["fits"]["cpu"].items() if name != "outcome"}
    for placement, found in facts["fits"].items():
        assert "All" in found["outcome"], placement
        assert (np.abs(np.array(found["mean"]) - one["mean"]) < MEAN_TOLERANCE * one["sd"]).all(), placement
        assert (np.abs(np.array(found["sd"]) / one["sd"] - 1) < SD_TOLERANCE).all(), placement
        np.testing.assert_allclose(found["level"], one["level"], atol=0.02)


@pytest.mark.slow
def test_the_structured_engine_finds_the_same_on_any_number_of_devices(facts):
    one = {name: np.array(value) for name, value in facts["structured"]["cpu"].items()}
    for placement, found in facts["structured"].items():
        assert (np.abs(np.array(found["mean"]) - one["mean"]) < STRUCTURED_TOLERANCE * one["sd"]).all(), placement
        np.testing.assert_allclose(found["sd"], one["sd"], rtol=STRUCTURED_TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["", ", batches"])
@pytest.mark.parametrize("devices", [2, 4, 8])
def test_each_device_holds_about_its_share(facts, devices, kind):
    assert facts["memory"][f"{devices}{kind}"] < facts["memory"][f"1{kind}"] / devices * 1.25


@pytest.mark.slow
def test_shared_unknowns_that_would_divide_evenly_stay_whole_from_chunk_to_chunk(facts):
    assert facts["even"] == "All 20 steps done."


@pytest.mark.slow
@pytest.mark.parametrize("placement", ["cpu:2", "cpu:4"])
def test_streamed_to_several_devices_a_run_is_the_resident_one_bit_for_bit(facts, placement):
    assert facts["streamed"][placement] == {"home": "host", "steps": 50, "losses": True, "state": True}


@pytest.mark.slow
def test_a_guide_that_couples_products_is_refused_on_several_devices(facts):
    assert "couples all products" in facts["refusal"] and "AutoNormal" in facts["refusal"]


def _cells(panel) -> np.ndarray:
    """Every observed cell as (product, series, slot, log price, units, covariates), sorted."""
    shards = panel.shards
    row, slot = np.nonzero(panel.weight)
    shard = row // (panel.n_rows // shards)
    real_series, real_product = (np.cumsum(real) - 1 for real in (panel.real_series, panel.real_product))
    series = panel.series_of_row[row] + shard * (panel.n_series // shards)
    product = panel.product_of_series[series] + shard * (panel.n_products // shards)
    columns = [real_product[product], real_series[series], slot, panel.log_price[row, slot], panel.units[row, slot]]
    columns += list(panel.covariates[:, row, slot])
    table = np.stack(columns, axis=1)
    return table[np.lexsort(table.T[::-1])]
