"""`simulate` and `check`: the fixed contract of files, exit statuses and problems."""

import json

import pandas as pd
import pytest

from core.cli import main

SMALL = ["--products", "12", "--periods", "20", "--categories", "3", "--seed", "5"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_simulate_writes_the_market_and_its_truth(tmp_path, suffix):
    out, truth = tmp_path / f"market.{suffix}", tmp_path / f"truth.{suffix}"
    assert main(["simulate", *SMALL, "--likelihood", "poisson", "--out", str(out), "--truth", str(truth)]) == 0
    read = pd.read_csv if suffix == "csv" else pd.read_parquet
    market, known = read(out), read(truth)
    assert list(market.columns) == ["product", "category", "period", "price", "units"]
    assert len(market) == 12 * 20
    assert list(known.columns) == ["level", "category", "product", "elasticity"]
    assert known["level"].value_counts().to_dict() == {"product": 12, "category": 3, "global": 1}


def test_simulate_names_every_slip_at_once_and_writes_nothing(tmp_path, capsys):
    out = tmp_path / "market.csv"
    assert main(["simulate", "--products", "many", "--periods", "-1", "--likelihood", "normal", "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "--products" in said and "periods=-1" in said and "likelihood='normal'" in said
    assert not out.exists()


def test_simulate_takes_the_mean_units_it_is_given(tmp_path):
    out = tmp_path / "market.parquet"
    big = ["--products", "200", "--periods", "60", "--categories", "4", "--mean-units", "7"]
    assert main(["simulate", *big, "--out", str(out)]) == 0
    standard_error = 0.2
    assert pd.read_parquet(out)["units"].mean() == pytest.approx(7, abs=4 * standard_error)


@pytest.fixture
def untidy(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text(
        "SKU,week,price,qty\n"
        "007,2024-01-01,2.50,4\n007,2024-01-08,2.00,9\n007,2024-01-15,0,3\n"
        "1e5,2024-01-01,1.00,2\n1e5,2024-01-08,1.20,1\n1e5,2024-01-15,,2\n"
    )
    return path


def test_check_accounts_for_every_row_and_keeps_codes_as_text(untidy, tmp_path):
    report = tmp_path / "report.json"
    assert main(["check", str(untidy), "--json", str(report)]) == 0
    told = json.loads(report.read_text())
    rows = told["rows"]
    assert rows["read"] == 6 == rows["used"] + sum(rows["left_out"].values())
    assert rows["used"] == 4
    assert {product["product"] for product in told["products"]} == {"007", "1e5"}
    assert told["roles"]["product"] == "SKU" and told["roles"]["units"] == "qty"


def test_check_follows_a_mapping(untidy, tmp_path):
    report = tmp_path / "report.json"
    assert main(["check", str(untidy), "--map", "period=", "--json", str(report)]) == 0
    assert json.loads(report.read_text())["roles"]["period"] is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--map", "product=NOPE"], "NOPE"),
        (["--map", "colour=SKU"], "colour"),
        (["--covariates", "weather"], "weather"),
        (["--bad-price", "ignore"], "bad_price='ignore'"),
    ],
)
def test_check_refuses_what_it_does_not_know_and_names_it(untidy, capsys, options, said):
    assert main(["check", str(untidy), *options]) == 2
    err = capsys.readouterr().err
    assert said in err and "Traceback" not in err


def test_check_of_a_missing_file_says_so(tmp_path, capsys):
    assert main(["check", str(tmp_path / "nowhere.csv")]) == 2
    assert "nowhere.csv" in capsys.readouterr().err


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "product", "price", "units"),
    [
        ("dominicks_oj.csv", "brand", "price", "sales"),
        ("store_sales.csv", "Product", "Price", "Weekly_Units_Sold"),
        ("retail_price.csv", "product_id", "unit_price", "qty"),
    ],
)
def test_the_real_files_are_understood_without_help(shared_data, tmp_path, file, product, price, units):
    report = tmp_path / "report.json"
    assert main(["check", str(shared_data / file), "--json", str(report)]) == 0
    roles = json.loads(report.read_text())["roles"]
    assert (roles["product"], roles["price"], roles["units"]) == (product, price, units)


@pytest.mark.parametrize("command", ["simulate", "check", "fit"])
def test_help_explains_every_option(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert "--" in capsys.readouterr().out
