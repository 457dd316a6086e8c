"""The panel holds the cells of the table, whatever the order of its rows and the names in it."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.data.encoding import ONE_CATEGORY, encode
from core.data.markets import market_frame, panel_of_market
from core.data.naming import natural_key
from core.data.placing import TALLEST_BLOCK, block_height, strip_width
from core.data.roles import Roles
from core.data.sales import RowAccount, SalesTable
from core.panel import Panel
from core.simulation import MarketPlan, simulate

SMALL = MarketPlan(products=37, periods=12, categories=5, stores=2, covariate=True, filled=0.7, seed=8)
SINGLE = {"rtol": 2e-6, "atol": 2e-6}
"""A few units in the last place of single precision."""


def table(frame: pd.DataFrame, covariates: tuple[str, ...] = ()) -> SalesTable:
    roles = Roles("product", "price", "units", covariates=covariates)
    return SalesTable(frame, RowAccount(len(frame), len(frame)), roles, "test", "0" * 64)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return market_frame(simulate(SMALL))


def undated(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns=["period"])


def same(left: Panel, right: Panel) -> bool:
    leaves = zip(jax.tree_util.tree_leaves(left), jax.tree_util.tree_leaves(right), strict=True)
    return all(np.array_equal(a, b) for a, b in leaves)


def cells_by_name(sales: SalesTable, layout: str = "auto") -> pd.DataFrame:
    """The panel read back: one row per cell, by name, with every number that the model reads."""
    panel, labels = encode(sales, layout)  # type: ignore[arg-type]
    row, slot = np.nonzero(panel.weight)
    series = panel.series_of_row[row]
    product = panel.product_of_series[series]
    columns = {
        "product": np.array(labels.products)[product],
        "category": np.array(labels.categories)[panel.category_of_product[product]],
        "log_price": panel.log_price[row, slot] + panel.reference[series],
        "units": panel.units[row, slot],
    }
    if labels.stores:
        columns["store"] = np.array(labels.stores)[np.array(labels.store_of_series)[series]]
    if labels.periods:
        period = slot if panel.period is None else panel.period[row, slot]
        columns["period"] = np.array(labels.periods)[period]
    for k, name in enumerate(labels.covariates):
        columns[name] = panel.covariates[k, row, slot]
    table = pd.DataFrame(columns)
    return table.sort_values([c for c in ("product", "store", "period") if c in table]).reset_index(drop=True)


def test_every_cell_of_the_table_is_in_the_panel_once(frame: pd.DataFrame) -> None:
    read = cells_by_name(table(frame, ("promotion",)))
    expected = frame.assign(
        product=frame["product"].astype(str), store=frame["store"].astype(str), period=frame["period"].astype(str)
    ).sort_values(["product", "store", "period"])
    assert len(read) == len(frame)
    for name in ("product", "store", "period", "units", "promotion"):
        assert read[name].tolist() == expected[name].tolist()
    assert read["category"].tolist() == expected["category"].astype(str).tolist()
    assert np.allclose(read["log_price"], np.log(expected["price"]), **SINGLE)


def test_shuffled_rows_give_the_same_panel(frame: pd.DataFrame) -> None:
    shuffled = frame.sample(frac=1.0, random_state=1)
    for make in (lambda f: f, undated):
        assert same(encode(table(make(frame), ("promotion",)))[0], encode(table(make(shuffled), ("promotion",)))[0])


def test_plain_text_and_categories_give_the_same_panel(frame: pd.DataFrame) -> None:
    plain = frame.assign(**{name: frame[name].astype(str) for name in ("product", "category", "store")})
    (panel, labels), (other, others) = encode(table(frame)), encode(table(plain))
    assert same(panel, other)
    assert labels.products == others.products and labels.stores == others.stores


def test_renaming_only_relabels(frame: pd.DataFrame) -> None:
    """Names in reverse order: the panel's products come the other way round, their numbers do not change."""
    names = sorted(frame["product"].cat.categories)
    renamed = dict(zip(names, [f"renamed {len(names) - i:03d}" for i in range(len(names))], strict=True))
    back = {new: old for old, new in renamed.items()}
    read = cells_by_name(table(frame.assign(product=frame["product"].astype(str).map(renamed))))
    read["product"] = read["product"].map(back)
    read = read.sort_values(["product", "store", "period"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(read, cells_by_name(table(frame)))


def test_dense_and_packed_layouts_hold_the_same_cells_and_sums(frame: pd.DataFrame) -> None:
    sales = table(frame, ("promotion",))
    pd.testing.assert_frame_equal(cells_by_name(sales, "dense"), cells_by_name(sales, "packed"))
    dense, packed = encode(sales, "dense")[0], encode(sales, "packed")[0]
    assert dense.period is None and packed.period is not None
    for one, other in zip(jax.tree_util.tree_leaves(dense.sums), jax.tree_util.tree_leaves(packed.sums), strict=True):
        assert np.allclose(one, other, rtol=1e-5, atol=1e-3)


def test_sparse_markets_are_packed_and_full_ones_are_not() -> None:
    sparse = simulate(replace(SMALL, periods=200, filled=0.03))
    assert panel_of_market(sparse)[0].period is not None
    assert panel_of_market(sparse)[0].n_slots < 100
    assert panel_of_market(simulate(SMALL))[0].period is None


def test_the_short_way_gives_the_panel_of_the_long_way(frame: pd.DataFrame) -> None:
    market = simulate(SMALL)
    panel, labels = panel_of_market(market)
    named, names = encode(table(market_frame(market, shop=False), ("promotion",)))
    assert same(panel, named)
    assert labels.products == names.products and labels.periods == names.periods
    assert np.array_equal(panel.category_of_product, market.category_of_product)


def test_prices_are_centred_on_their_series_mean(frame: pd.DataFrame) -> None:
    panel, labels = encode(table(frame))
    sums = np.bincount(panel.series_of_row, panel.log_price.sum(axis=1))
    assert np.allclose(sums, 0.0, atol=1e-4)
    by_series = frame.groupby(["product", "store"], observed=True)["price"]
    geometric = by_series.apply(lambda price: np.exp(np.log(price).mean()))
    at = (labels.products[panel.product_of_series[3]], labels.stores[labels.store_of_series[3]])
    assert labels.reference_price[3] == pytest.approx(geometric[at], rel=1e-6)


def test_labels_count_cells_and_price_variation(frame: pd.DataFrame) -> None:
    _, labels = encode(table(frame))
    by_product = frame.groupby("product", observed=True)
    assert labels.n_obs.tolist() == [len(by_product.get_group(name)) for name in labels.products]
    centred = np.log(frame["price"]) - np.log(frame["price"]).groupby(
        [frame["product"], frame["store"]], observed=True
    ).transform("mean")
    expected = centred.pow(2).groupby(frame["product"], observed=True).mean().pow(0.5)
    assert np.allclose(labels.price_sd, [expected[name] for name in labels.products], atol=1e-9)


def test_a_price_that_never_changes_has_no_spread_at_all() -> None:
    frame = pd.DataFrame({"product": ["a"] * 7 + ["b"] * 2, "price": [0.1 + 0.2] * 7 + [1.0, 2.0], "units": 1.0})
    panel, labels = encode(table(frame))
    assert labels.price_sd[0] == 0.0
    assert (panel.log_price[panel.series_of_row == 0] == 0.0).all()


def test_covariates_are_centred_unless_they_are_flags(frame: pd.DataFrame) -> None:
    warm = frame.assign(warmth=np.arange(len(frame)) / 7.0)
    panel, _ = encode(table(warm, ("promotion", "warmth")))
    flags = panel.covariates[0][panel.weight > 0]
    assert set(np.unique(flags)) == {0.0, 1.0}
    assert panel.covariates[1].sum(dtype=np.float64) / len(frame) == pytest.approx(0.0, abs=1e-4)


def test_blocks_never_straddle_categories(frame: pd.DataFrame) -> None:
    for sales in (table(frame), table(undated(frame))):
        panel, _ = encode(sales)
        category = panel.category_of_product[panel.product_of_series[panel.series_of_row]]
        blocks = category.reshape(panel.n_blocks, panel.block_rows)
        assert (blocks == panel.category_of_block[:, None]).all()
        assert (np.diff(category) >= 0).all() and (np.diff(panel.series_of_row) >= 0).all()


def test_padding_carries_no_weight_units_or_price(frame: pd.DataFrame) -> None:
    panel, _ = encode(table(frame, ("promotion",)))
    missing = panel.weight == 0
    assert missing.any()
    assert not panel.units[missing].any() and not panel.log_price[missing].any()
    assert not panel.covariates[:, missing].any()


def test_block_heights_fit_many_tiny_categories_and_few_large_ones() -> None:
    rows = np.full(1_000, 3)
    assert block_height(rows) == 3
    assert 200 <= block_height(np.array([1_000_000])) <= TALLEST_BLOCK
    for rows in (np.array([7]), np.arange(1, 60), np.array([11_987 // 10] * 10)):
        height = block_height(rows)
        assert (-(-rows // height) * height).sum() <= 1.3 * rows.sum() + 8


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=30))
def test_strips_waste_little(counts: list[int]) -> None:
    n_obs = np.array(counts)
    width = strip_width(n_obs)
    assert (-(-n_obs // width) * width).sum() <= 2 * n_obs.sum() + 8 * n_obs.size


def test_replicates_fill_strips_of_one_series() -> None:
    frame = pd.DataFrame({"product": ["a"] * 1000 + ["b"] * 30, "price": np.arange(1, 1031) / 100, "units": 2.0})
    panel, labels = encode(table(frame))
    assert panel.n_periods == 0 and labels.periods == () and labels.categories == (ONE_CATEGORY,)
    assert panel.n_series == 2 and panel.n_rows > 2
    assert panel.weight.sum() == 1030 and panel.sums.series.tolist() == [2000, 60]


def test_panels_are_single_precision_numpy(frame: pd.DataFrame) -> None:
    panel, _ = encode(table(frame))
    for field in fields(panel):
        leaf = getattr(panel, field.name)
        if isinstance(leaf, np.ndarray):
            assert leaf.dtype in (np.float32, np.int32, np.bool_), field.name
    assert all(isinstance(leaf, np.ndarray | np.generic) for leaf in jax.tree_util.tree_leaves(panel))


def test_only_periods_that_occur_are_columns(frame: pd.DataFrame) -> None:
    gap = frame[frame["period"].isin(sorted(frame["period"].unique())[::3])]
    panel, labels = encode(table(gap))
    assert panel.n_periods == len(labels.periods) == 4
    assert list(labels.periods) == sorted(labels.periods)


def test_products_come_in_natural_order_within_their_category() -> None:
    names = ["item 10", "item 9", "Item 9a", "007", "7"]
    assert sorted(names, key=natural_key) == ["007", "7", "item 9", "Item 9a", "item 10"]
    frame = pd.DataFrame({"product": ["p10", "p9", "p1"], "category": ["c2", "c10", "c10"], "price": 1.0, "units": 1.0})
    assert encode(table(frame))[1].products == ("p10", "p1", "p9")


def test_a_table_that_validation_would_not_pass_is_refused(frame: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="occurs on two rows"):
        encode(table(pd.concat([frame, frame.iloc[[0]]])))
    torn = frame.assign(category=["x"] + ["y"] * (len(frame) - 1))
    with pytest.raises(ValueError, match="two categories"):
        encode(table(torn))


@pytest.mark.data
def test_the_real_files_encode_to_the_sizes_they_have(shared_data: Path) -> None:
    from core.data.guessing import guess_roles
    from core.data.source import read_source
    from core.data.validation import validate

    expected = {
        "dominicks_oj.csv": (28_947, 3, 3, 1, 0),
        "store_sales.csv": (3_861, 3, 27, 1, 143),
        "retail_price.csv": (676, 52, 52, 9, 20),
    }
    for name, (rows, products, series, categories, periods) in expected.items():
        source = read_source(shared_data / name)
        checked = validate(source, guess_roles(source))
        assert checked.sales is not None and checked.errors == ()
        panel, _ = encode(checked.sales)
        assert (panel.n_products, panel.n_series) == (products, series)
        assert (panel.n_categories, panel.n_periods) == (categories, periods)
        assert panel.weight.sum() == rows == checked.sales.account.read
