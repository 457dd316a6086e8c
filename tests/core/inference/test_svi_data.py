"""SVI on the real sales files, against regressions that others published or that NumPy repeats here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.data.encoding import encode
from core.data.roles import Roles
from core.data.source import read_source
from core.data.validation import Choices, validate
from core.inference.engines import draw, fit
from core.inference.plan import FitPlan, plan_with
from core.panel import Panel
from core.panel_sums import sum_units

pytestmark = [pytest.mark.data, pytest.mark.slow]
TOLERANCE = 0.1
"""Of an elasticity: what the yardsticks are given to, priors and Monte-Carlo error included."""
PLAIN = {"dominicks": -3.25, "minute.maid": -3.81, "tropicana": -3.15}
WITH_FEATURE = {"dominicks": -2.67, "minute.maid": -2.78, "tropicana": -2.62}
STORES = {"1": -1.89, "2": -1.45, "3": -2.21}
PLAN = plan_with(FitPlan(engine="svi"), time_effects="none", likelihood="poisson")
ORANGE_JUICE = Roles(product="brand", price="price", units="sales", period=None, category=None, store=None)


@pytest.fixture(scope="module")
def orange_juice(shared_data):
    return read_source(shared_data / "dominicks_oj.csv")


def encoded(source, roles: Roles):
    return encode(validate(source, roles, Choices()).sales)


def elasticities(plan: FitPlan, panel: Panel) -> tuple[np.ndarray, np.ndarray]:
    """Mean and width of the 90 % interval of each product."""
    result = fit(plan, panel)
    assert result.outcome.usable, result.outcome.sentence
    found = draw(result, panel, 1_000).elasticity_product
    return found.mean(axis=0), np.diff(np.quantile(found, (0.05, 0.95), axis=0), axis=0)[0]


def by_product(panel: Panel) -> Panel:
    """The panel with an effect of its covariate for each product: one column per product, 0 elsewhere."""
    product = panel.product_of_series[panel.series_of_row]
    covariates = np.stack([panel.covariates[0] * (product == p)[:, None] for p in range(panel.n_products)])
    split = replace(panel, covariates=covariates.astype(np.float32))
    names = ("log_price", "weight", "units", "covariates", "period", "series_of_row", "product_of_series")
    maps = ("category_of_product", "n_categories", "n_periods")
    return replace(split, sums=sum_units(**{name: getattr(split, name) for name in names + maps}))


def test_orange_juice_elasticities_equal_poisson_regression_by_brand(orange_juice):
    panel, labels = encoded(orange_juice, ORANGE_JUICE)
    mean, _ = elasticities(PLAN, panel)
    np.testing.assert_allclose(mean, [PLAIN[name] for name in labels.products], atol=TOLERANCE)


def test_orange_juice_with_a_feature_effect_per_brand_equals_poisson_regression(orange_juice):
    panel, labels = encoded(orange_juice, replace(ORANGE_JUICE, covariates=("feat",)))
    split = panel if panel.n_covariates == panel.n_products else by_product(panel)
    mean, _ = elasticities(PLAN, split)
    np.testing.assert_allclose(mean, [WITH_FEATURE[name] for name in labels.products], atol=TOLERANCE)


def test_negative_binomial_intervals_are_at_least_three_times_wider_than_poissons(orange_juice):
    panel, _ = encoded(orange_juice, ORANGE_JUICE)
    _, poisson = elasticities(PLAN, panel)
    _, negbin = elasticities(plan_with(PLAN, likelihood="negbin"), panel)
    assert (negbin > 3 * poisson).all()


def test_store_sales_elasticities_equal_poisson_regression_with_store_effects(shared_data):
    roles = Roles(
        product="Product", price="Price", units="Weekly_Units_Sold", period="Date", category=None, store="Store"
    )
    panel, labels = encoded(read_source(shared_data / "store_sales.csv"), roles)
    mean, _ = elasticities(PLAN, panel)
    np.testing.assert_allclose(mean, [STORES[name] for name in labels.products], atol=TOLERANCE)
