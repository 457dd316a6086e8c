"""Small markets without categories: every product answers to covariates in its own way."""

import numpy as np
import pandas as pd
import pytest

from core.data.encoding import encode
from core.data.own_effects import FEW_PRODUCTS, own_columns
from core.data.roles import Roles
from core.data.sales import RowAccount, SalesTable

PRODUCT = np.repeat([0, 1, 2], 4)
FLAG = np.tile([0.0, 1.0, 0.0, 1.0], 3)


def test_each_column_is_its_product_s_covariate_and_zero_elsewhere():
    columns = own_columns(FLAG[None], PRODUCT, 3)
    assert columns.shape == (3, 12)
    np.testing.assert_array_equal(columns.sum(axis=0), FLAG)
    for number, column in enumerate(columns):
        assert (column[number != PRODUCT] == 0).all()


def test_numbers_are_centred_within_their_product():
    values = np.arange(12.0)
    columns = own_columns(values[None], PRODUCT, 3)
    np.testing.assert_allclose(columns.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(columns[1][PRODUCT == 1], values[4:8] - 5.5)


def table(n_products: int, category: bool) -> SalesTable:
    frame = pd.DataFrame(
        {
            "product": pd.Categorical([f"p{number}" for number in range(n_products) for _ in range(2)]),
            "price": np.tile([1.0, 2.0], n_products),
            "units": 3.0,
            "promo": np.tile([0.0, 1.0], n_products),
        }
    )
    if category:
        frame["category"] = pd.Categorical(["one"] * len(frame))
    roles = Roles("product", "price", "units", category="category" if category else None, covariates=("promo",))
    return SalesTable(frame, RowAccount(len(frame), len(frame)), roles, "t", "0" * 64)


@pytest.mark.parametrize(
    ("n_products", "category", "columns"), [(3, False, 3), (3, True, 1), (FEW_PRODUCTS + 1, False, 1)]
)
def test_only_few_products_without_categories_have_effects_of_their_own(n_products, category, columns):
    panel, labels = encode(table(n_products, category))
    assert panel.n_covariates == len(labels.covariates) == columns
