"""`fit`: real engines on a real file, the fixed contract of what it writes, and what it refuses."""

import json

import arviz as az
import pandas as pd
import pytest

from core.cli import main

CONTRACT = [
    "level", "category", "product", "n_obs", "mean", "sd", "lower", "median", "upper", "prob_elastic",
]  # fmt: skip


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    folder = tmp_path_factory.mktemp("market")
    sizes = ["--products", "60", "--periods", "60", "--categories", "4", "--seed", "3", "--likelihood", "poisson"]
    assert main(["simulate", *sizes, "--out", str(folder / "m.csv"), "--truth", str(folder / "t.csv")]) == 0
    return folder


@pytest.fixture(scope="module")
def fitted(market):
    out = market / "out"
    assert main(["fit", str(market / "m.csv"), "--likelihood", "poisson", "--seed", "7", "--out", str(out)]) == 0
    return out


def test_the_table_has_every_level_in_the_contract_s_columns(fitted):
    table = pd.read_parquet(fitted / "elasticities.parquet")
    assert list(table.columns[: len(CONTRACT)]) == CONTRACT
    assert table["level"].value_counts().to_dict() == {"product": 60, "category": 4, "global": 1}
    assert not table[["mean", "sd", "lower", "median", "upper", "prob_elastic"]].isna().any().any()
    assert ((table["lower"] < table["median"]) & (table["median"] < table["upper"])).all()


def test_csv_and_parquet_say_the_same(fitted):
    parquet, csv = pd.read_parquet(fitted / "elasticities.parquet"), pd.read_csv(fitted / "elasticities.csv")
    written_with_six_digits = 1e-5
    assert csv["mean"].to_numpy() == pytest.approx(parquet["mean"].to_numpy(), rel=written_with_six_digits)


def test_intervals_hold_about_as_many_truths_as_they_claim(market, fitted):
    truth = pd.read_csv(market / "t.csv")
    table = pd.read_parquet(fitted / "elasticities.parquet").merge(truth, on=["level", "product"], suffixes=("", "_t"))
    products = table[table["level"] == "product"]
    inside = products["elasticity"].between(products["lower"], products["upper"])
    assert len(products) == 60
    # 90 % of 60 is 54; 46 or fewer has probability 0.002 for calibrated and independent intervals.
    assert inside.sum() > 46


def test_the_manifest_says_how_it_came_about(market, fitted):
    told = json.loads((fitted / "manifest.json").read_text())
    data = told["data"]
    assert data["name"] == "m.csv" and len(data["sha256"]) == 64
    assert data["rows_read"] == 3600 == data["rows_used"] + sum(data["rows_left_out"].values())
    assert set(told["timing"]) >= {"compile_seconds", "run_seconds", "steps", "steps_per_second"}
    assert told["plan"]["seed"] == 7 and told["plan"]["model"]["likelihood"] == "poisson"
    assert told["outcome"]["usable"] is True
    assert told["environment"]["packages"]["numpyro"]


def test_the_posterior_opens_in_arviz_with_names(fitted):
    tree = az.from_netcdf(fitted / "posterior.nc")
    elasticity = tree["posterior"]["elasticity_product"]
    assert elasticity.sizes["product"] == 60
    products = pd.read_parquet(fitted / "elasticities.parquet").query("level == 'product'")["product"]
    assert list(elasticity.coords["product"].to_numpy()) == list(products)


def test_the_same_seed_gives_the_same_table(market, fitted, tmp_path):
    again = tmp_path / "again"
    assert main(["fit", str(market / "m.csv"), "--likelihood", "poisson", "--seed", "7", "--out", str(again)]) == 0
    pd.testing.assert_frame_equal(
        pd.read_parquet(again / "elasticities.parquet"), pd.read_parquet(fitted / "elasticities.parquet")
    )


def test_svi_takes_guide_loss_particles_and_steps_by_their_numpyro_names(market, tmp_path):
    out = tmp_path / "svi"
    choices = ["--engine", "svi", "--guide", "AutoNormal", "--loss", "RenyiELBO", "--particles", "2", "--steps", "300"]
    assert main(["fit", str(market / "m.csv"), "--likelihood", "poisson", *choices, "--out", str(out)]) == 0
    told = json.loads((out / "manifest.json").read_text())
    assert told["timing"]["steps"] == 300
    assert told["plan"]["svi"]["loss"] == "RenyiELBO"


def test_every_problem_of_plan_and_data_is_told_at_once_and_nothing_is_written(market, tmp_path, capsys):
    out = tmp_path / "refused"
    wrong = ["--guide", "AutoMagic", "--map", "price=NOPE", "--steps", "x"]
    assert main(["fit", str(market / "m.csv"), *wrong, "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "AutoMagic" in said and "NOPE" in said and "--steps" in said and "Traceback" not in said
    assert not out.exists()


def test_a_guide_that_does_not_fit_is_refused_with_figures_before_it_starts(tmp_path, capsys):
    market = tmp_path / "big.parquet"
    assert main(["simulate", "--products", "30000", "--periods", "4", "--out", str(market)]) == 0
    wide = ["--engine", "svi", "--guide", "AutoMultivariateNormal"]
    assert main(["fit", str(market), *wide, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "GB" in said and not (tmp_path / "out").exists()


def test_without_a_place_to_write_nothing_starts(market, capsys):
    assert main(["fit", str(market / "m.csv")]) == 2
    assert "--out" in capsys.readouterr().err


@pytest.mark.parametrize("where", ["here", "stored"])
def test_a_fit_that_has_not_converged_is_a_warning_and_one_that_has_is_none(
    market, tmp_path, monkeypatch, capsys, where
):
    monkeypatch.setenv("ISOELASTIC_DATA_DIR", str(tmp_path / "store"))
    wanted = ["fit", str(market / "m.csv"), "--likelihood", "poisson", "--out", str(tmp_path / "out")]
    wanted += ["--store"] if where == "stored" else []
    assert main([*wanted, "--max-iterations", "2"]) == 0
    assert "warning: Not converged after 2 steps" in capsys.readouterr().err
    assert "Not converged" in json.loads((tmp_path / "out" / "manifest.json").read_text())["outcome"]["sentence"]
    assert main(wanted) == 0
    assert "\nwarning:" not in "\n" + capsys.readouterr().err


def test_that_rows_stream_is_said_and_in_the_manifest(market, tmp_path, capsys):
    wanted = ["fit", str(market / "m.csv"), "--engine", "svi", "--steps", "50", "--batch-products", "20"]
    tables = {}
    for home, told in (("device", False), ("host", True)):
        out = tmp_path / home
        assert main([*wanted, "--data-home", home, "--out", str(out)]) == 0
        assert ("stay in host memory" in capsys.readouterr().err) == told
        assert json.loads((out / "manifest.json").read_text())["diagnostics"]["data_home"] == home
        tables[home] = (out / "elasticities.csv").read_bytes()
    assert tables["device"] == tables["host"]


def test_a_stored_run_is_listed_exported_compared_and_deleted(market, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ISOELASTIC_DATA_DIR", str(tmp_path / "store"))
    ids = []
    for name, likelihood in (("first", "poisson"), ("second", "negbin")):
        wanted = ["--likelihood", likelihood, "--store", "--name", name]
        assert main(["fit", str(market / "m.csv"), *wanted]) == 0
        ids.append(capsys.readouterr().out.splitlines()[0])
    listing = tmp_path / "runs.json"
    assert main(["runs", "list", "--json", str(listing)]) == 0
    assert {run["run_id"]: run["name"] for run in json.loads(listing.read_text())["runs"]} == {
        ids[0]: "first",
        ids[1]: "second",
    }
    assert main(["runs", "compare", *ids]) == 0
    assert "likelihood" in capsys.readouterr().out.lower()
    assert main(["runs", "export", ids[0], "--out", str(tmp_path / "exported")]) == 0
    assert len(pd.read_parquet(tmp_path / "exported" / "elasticities.parquet")) == 65
    assert main(["runs", "redraw", ids[0], "--draws", "200", "--mass", "0.8"]) == 0
    assert main(["runs", "export", ids[0], "--out", str(tmp_path / "redrawn")]) == 0
    told = json.loads((tmp_path / "redrawn" / "manifest.json").read_text())["plan"]
    assert (told["draws"], told["mass"]) == (200, 0.8)
    assert main(["runs", "delete", ids[0]]) == 0
    assert main(["runs", "export", ids[0], "--out", str(tmp_path / "gone")]) == 2
