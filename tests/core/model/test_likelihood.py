"""The fused pass equals NumPyro's log_prob summed cell by cell, in value and gradients, whatever the layout."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import distributions as dist
from scipy.special import gammaln

from core.model.dispersion import dispersion_term
from core.model.likelihood import Predictor, _clear_of, linear_predictor, log_likelihood
from core.panel import Panel
from tests.core.panels import market_panel, replicate_panel

CLIP = (-0.5, 2.0)
VALUE_RTOL = 2e-6
"""Float32 sums of a few hundred terms, against float64."""
GRADIENT_TOLERANCE = 2e-5
"""Of the largest gradient: float32 margins of differences."""
KINDS = [("poisson", None), ("poisson", CLIP), ("negbin", None)]
PANELS = {
    "gaps": lambda: market_panel(),
    "stores and promotions": lambda: market_panel(stores=2, covariate=True),
    "packed": lambda: market_panel("packed", filled=0.3, covariate=True),
    "no periods": lambda: replicate_panel(),
}


def predictor_of(panel: Panel, likelihood: str, seed: int = 0) -> Predictor:
    random = np.random.default_rng(seed)

    def normal(*shape: int, mean: float = 0.0, sd: float = 0.3) -> jax.Array:
        return jnp.asarray(random.normal(mean, sd, shape), jnp.float32)

    return Predictor(
        level=normal(panel.n_series, mean=1.0),
        elasticity=normal(panel.n_products, mean=-2.0),
        time=normal(panel.n_categories, panel.n_periods) if panel.n_periods else None,
        covariate=normal(panel.n_categories, panel.n_covariates) if panel.n_covariates else None,
        log_concentration=normal(panel.n_categories, mean=1.0) if likelihood == "negbin" else None,
    )


def cell_by_cell(predictor: Predictor, panel: Panel, likelihood: str, clip) -> jax.Array:
    """The same number the plain way: gather every unknown per cell, add up NumPyro's log_prob of observed cells."""
    row, slot = np.nonzero(np.asarray(panel.weight))
    series = panel.series_of_row[row]
    product = panel.product_of_series[series]
    category = panel.category_of_product[product]
    eta = predictor.level[series] + predictor.elasticity[product] * panel.log_price[row, slot]
    if predictor.time is not None:
        eta += predictor.time[category, slot if panel.period is None else panel.period[row, slot]]
    if predictor.covariate is not None:
        eta += (predictor.covariate[category] * panel.covariates[:, row, slot].T).sum(axis=1)
    mean = jnp.exp(eta if clip is None else jnp.clip(eta, *clip))
    if likelihood == "poisson":
        return dist.Poisson(mean).log_prob(panel.units[row, slot]).sum()
    phi = jnp.exp(predictor.log_concentration)[category]
    return dist.NegativeBinomial2(mean, phi).log_prob(panel.units[row, slot]).sum()


def in_float64(tree):
    return jax.tree.map(lambda a: np.asarray(a, np.float64) if np.issubdtype(a.dtype, np.floating) else a, tree)


@pytest.mark.parametrize("name", PANELS)
@pytest.mark.parametrize(("likelihood", "clip"), KINDS)
def test_value_and_gradients_equal_numpyros_cell_by_cell(name, likelihood, clip):
    panel = PANELS[name]()
    predictor = predictor_of(panel, likelihood)
    value, gradients = jax.value_and_grad(log_likelihood)(predictor, panel, likelihood, clip)
    with jax.enable_x64(True):
        wide = jax.tree.map(jnp.asarray, in_float64(predictor))
        expected, slopes = jax.value_and_grad(cell_by_cell)(wide, in_float64(panel), likelihood, clip)
    np.testing.assert_allclose(value, expected, rtol=VALUE_RTOL)
    for found, wanted in zip(jax.tree.leaves(gradients), jax.tree.leaves(slopes), strict=True):
        np.testing.assert_allclose(found, wanted, atol=GRADIENT_TOLERANCE * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("name", PANELS)
def test_a_clip_that_no_cell_reaches_changes_nothing(name):
    panel = PANELS[name]()
    predictor = predictor_of(panel, "poisson")
    free, value = (
        jax.value_and_grad(log_likelihood)(predictor, panel, "poisson", clip) for clip in (None, (-40.0, 40.0))
    )
    compiled_differently = {"rtol": VALUE_RTOL, "atol": 1e-4}
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, **compiled_differently), free, value)


def test_the_way_round_the_clip_is_taken_only_where_no_cell_reaches_it():
    panel = PANELS["stores and promotions"]()
    predictor = predictor_of(panel, "poisson")
    eta = np.asarray(linear_predictor(predictor, panel))[np.asarray(panel.weight) > 0]
    assert bool(_clear_of((-40.0, 40.0), predictor, panel))
    for clip in ((float(eta.min()) + 1e-3, 40.0), (-40.0, float(eta.max()) - 1e-3)):
        assert not bool(_clear_of(clip, predictor, panel))


@pytest.mark.parametrize(("likelihood", "clip"), KINDS)
def test_packed_and_dense_layouts_agree(likelihood, clip):
    dense, packed = (market_panel(layout, filled=0.3, covariate=True) for layout in ("dense", "packed"))
    predictor = predictor_of(dense, likelihood)
    one, other = (jax.value_and_grad(log_likelihood)(predictor, p, likelihood, clip) for p in (dense, packed))
    assert packed.n_slots < dense.n_slots
    for found, wanted in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("likelihood", "clip"), KINDS)
def test_padding_rows_add_nothing(likelihood, clip):
    panel = market_panel()
    predictor = predictor_of(panel, likelihood)
    last = panel.n_rows - panel.block_rows
    padded = replace(
        panel,
        log_price=np.vstack([panel.log_price, np.zeros_like(panel.log_price[last:])]),
        weight=np.vstack([panel.weight, np.zeros_like(panel.weight[last:])]),
        units=np.vstack([panel.units, np.zeros_like(panel.units[last:])]),
        covariates=np.zeros((0, panel.n_rows + panel.block_rows, panel.n_slots), np.float32),
        series_of_row=np.append(panel.series_of_row, np.repeat(panel.series_of_row[-1:], panel.block_rows)),
        category_of_block=np.append(panel.category_of_block, panel.category_of_block[-1]),
    )
    one, other = (jax.value_and_grad(log_likelihood)(predictor, p, likelihood, clip) for p in (panel, padded))
    for found, wanted in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_particles_by_vmap_equal_particles_one_by_one():
    panel = market_panel(covariate=True)
    each = [predictor_of(panel, "negbin", seed) for seed in range(3)]
    together = jax.tree.map(lambda *parts: jnp.stack(parts), *each)
    run = jax.value_and_grad(lambda predictor: log_likelihood(predictor, panel, "negbin"))
    values, gradients = jax.vmap(run)(together)
    for number, predictor in enumerate(each):
        value, gradient = run(predictor)
        np.testing.assert_allclose(values[number], value, rtol=1e-6)
        for found, wanted in zip(jax.tree.leaves(gradients), jax.tree.leaves(gradient), strict=True):
            np.testing.assert_allclose(found[number], wanted, rtol=1e-4, atol=1e-4)


def test_negative_binomial_becomes_poisson_as_concentration_grows():
    panel = market_panel(mean_units=500.0)
    predictor = predictor_of(panel, "negbin")
    predictor = replace(predictor, level=jnp.asarray(panel.sums.log_mean), elasticity=0.1 * predictor.elasticity)
    large = replace(predictor, log_concentration=jnp.full(panel.n_categories, 25.0))
    value, gradients = jax.value_and_grad(log_likelihood)(large, panel, "negbin")
    poisson = log_likelihood(replace(predictor, log_concentration=None), panel, "poisson")
    np.testing.assert_allclose(value, poisson, rtol=1e-4)
    assert np.isfinite(gradients.log_concentration).all()


@pytest.mark.parametrize("level", [-60.0, 30.0])
def test_extreme_means_keep_negative_binomial_gradients_finite(level):
    panel = market_panel()
    predictor = replace(predictor_of(panel, "negbin"), level=jnp.full(panel.n_series, level))
    value, gradients = jax.value_and_grad(log_likelihood)(predictor, panel, "negbin")
    assert np.isfinite(value)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))


@pytest.mark.parametrize("units", [1.0, 50.0, 1e6])
@pytest.mark.parametrize("log_phi", [-4.0, 0.0, 3.0, 9.0, 20.0])
def test_dispersion_term_equals_log_gammas_in_float64(units, log_phi):
    histogram = market_panel().sums.histogram
    one = replace(histogram, units=np.float32([units]), cells=np.float32([1]), category=np.int32([0]))
    found = dispersion_term(jnp.float32([log_phi]), one)
    phi = np.exp(np.float64(log_phi))
    expected = gammaln(units + phi) - gammaln(phi) - units * log_phi
    cancelled = np.finfo(np.float64).eps * abs(gammaln(phi + units))
    np.testing.assert_allclose(found, expected, rtol=3e-6, atol=2e-5 + 8 * cancelled)
