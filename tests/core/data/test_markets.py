"""A simulated market goes through the same edge as an upload, its truth beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.data.encoding import encode
from core.data.guessing import guess_roles
from core.data.markets import demo_market, market_frame, market_source, truth_frame, write_market, write_truth
from core.data.overview import VERDICTS, overview
from core.data.source import read_source
from core.data.validation import validate
from core.errors import UserError
from core.simulation import MarketPlan, simulate
from tests.core.data.tables import GOOD, check

MARKET = simulate(MarketPlan(products=30, periods=15, categories=3, seed=5))


def test_the_demo_market_is_clean_and_matches_its_truth() -> None:
    source, truth = demo_market()
    checked = validate(source, guess_roles(source))
    assert checked.sales is not None
    assert {problem.code for problem in checked.problems} == {"price-constant"}
    panel, labels = encode(checked.sales)
    assert (panel.n_products, panel.n_periods, panel.n_categories) == (500, 104, 10)
    known = truth[truth["level"] == "product"]
    assert tuple(known["product"]) == labels.products
    assert np.isfinite(truth["elasticity"]).all() and len(truth) == 511


def test_product_names_are_distinct_at_every_size() -> None:
    for products, categories in ((1, 1), (2_000, 3), (3_000, 25)):
        market = simulate(MarketPlan(products=products, periods=1, categories=categories))
        truth = truth_frame(market)
        named = truth[truth["level"] == "product"]
        assert named["product"].nunique() == products
        assert named["category"].nunique() == categories


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_written_market_reads_back_as_the_same_panel(tmp_path: Path, suffix: str) -> None:
    write_market(MARKET, tmp_path / f"market{suffix}")
    write_truth(MARKET, tmp_path / f"truth{suffix}")
    source = read_source(tmp_path / f"market{suffix}")
    assert source.columns == ("product", "category", "period", "price", "units")
    direct, written = (validate(s, guess_roles(s)).sales for s in (market_source(MARKET), source))
    assert direct is not None and written is not None
    (panel, labels), (other, others) = encode(direct), encode(written)
    assert np.array_equal(panel.log_price, other.log_price) and np.array_equal(panel.units, other.units)
    assert labels.products == others.products and labels.periods == others.periods
    read = pd.read_csv if suffix == ".csv" else pd.read_parquet
    truth = read(tmp_path / f"truth{suffix}")  # type: ignore[operator]
    assert list(truth.columns) == ["level", "category", "product", "elasticity"]
    assert np.array_equal(truth["elasticity"][-30:], MARKET.truth.elasticity_product)


def test_a_market_is_not_written_under_another_suffix_or_into_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        write_market(MARKET, tmp_path / "none" / "market.json")
    assert {problem.code for problem in caught.value.problems} == {"suffix", "no-folder"}


def test_markets_are_told_apart_by_their_sha256() -> None:
    other = simulate(MarketPlan(products=30, periods=15, categories=3, seed=6))
    assert market_source(MARKET).sha256 == market_source(MARKET).sha256 != market_source(other).sha256


def test_the_overview_agrees_with_pandas() -> None:
    frame = market_frame(MARKET)
    source = market_source(MARKET)
    sales = validate(source, guess_roles(source)).sales
    assert sales is not None
    seen = overview(sales)
    assert (seen.cells, seen.products, seen.categories, seen.periods, seen.stores) == (450, 30, 3, 15, 0)
    assert seen.zero_share == pytest.approx((frame["units"] == 0).mean())
    assert seen.total_units == frame["units"].sum() == seen.by_product["units"].sum() == seen.by_period["units"].sum()
    assert seen.mean_price == pytest.approx(np.average(frame["price"], weights=frame["units"]))
    assert seen.filled == 1.0
    grouped = frame.groupby("product", observed=True)
    table = seen.by_product.set_index("product")
    deviation = grouped["price"].apply(lambda price: np.log(price).std(ddof=0))
    assert np.allclose(table["price_sd"], deviation[table.index], atol=1e-9)
    changes = grouped["price"].apply(lambda price: int((price.diff().dropna() != 0).sum()))
    assert table["price_changes"].tolist() == changes[table.index].tolist()


def test_the_overview_says_which_products_cannot_be_told(tmp_path: Path) -> None:
    rows = [*GOOD, "C,2024-01-01,3,1", "C,2024-01-08,3,2"]
    sales = check(tmp_path, rows).sales
    assert sales is not None
    verdicts = overview(sales).by_product.set_index("product")["verdict"]
    assert verdicts["C"] == VERDICTS["never"]
    assert verdicts["A"] == VERDICTS["few"]
