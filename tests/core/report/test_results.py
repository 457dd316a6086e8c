"""What a fit leaves in its folder, read back by pandas, ArviZ and JSON; nothing half written."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import arviz as az
import numpy as np
import pandas as pd
import pytest

from core.data.sales import RowAccount
from core.inference.plan import FitPlan, plan_to_dict
from core.posterior.posterior import posterior_from_draws
from core.report import results
from core.report.netcdf import posterior_tree
from core.report.results import RESULT_FILES, to_json, write_result
from core.report.tables import CONTRACT_COLUMNS, elasticity_table
from tests.core.posterior.handmade import fit_of, market

ROOT = Path(__file__).parents[3]
ACCOUNT = RowAccount(read=400, used=390, left_out={"without price": 7, "returns netted": 3})


def handmade():
    panel, labels, draws = market(stores=2)
    draws.others["covariate_category"] = np.zeros((400, 3, 0), np.float32)
    diagnostics = {"k_hat": np.zeros(12), "bound": -1.5, "warnings": ("Only 1 category.",)}
    return posterior_from_draws(draws, panel, labels), fit_of(FitPlan(seed=5), diagnostics)


@pytest.fixture(scope="module")
def found():
    return handmade()


def _write(folder, found):
    return write_result(folder, *found, ACCOUNT, "sales.csv", "ab" * 32)


def test_the_folder_holds_the_promised_files(tmp_path, found):
    paths = _write(tmp_path / "out", found)
    assert [path.name for path in paths] == list(RESULT_FILES)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    table = pd.read_parquet(tmp_path / "out" / "elasticities.parquet")
    pd.testing.assert_frame_equal(table, elasticity_table(found[0]))
    csv = pd.read_csv(tmp_path / "out" / "elasticities.csv", dtype={"product": str})
    assert tuple(csv.columns[:10]) == CONTRACT_COLUMNS
    np.testing.assert_allclose(csv["mean"], table["mean"], rtol=1e-5)


def test_the_manifest_tells_plan_data_environment_outcome_and_timing(tmp_path, found):
    _write(tmp_path / "out", found)
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert told["plan"] == json.loads(json.dumps(plan_to_dict(found[1].plan)))
    assert told["data"] == {
        "name": "sales.csv", "sha256": "ab" * 32, "rows_read": 400, "rows_used": 390,
        "rows_left_out": {"without price": 7, "returns netted": 3},
    }  # fmt: skip
    assert told["environment"]["devices"] == ["cpu"]
    assert told["outcome"] == {"ending": "finished", "sentence": "All 100 steps done.", "usable": True}
    assert told["timing"] == {"compile_seconds": 1.5, "run_seconds": 2.0, "steps": 100, "steps_per_second": 50.0}
    assert told["diagnostics"] == {"bound": -1.5, "warnings": ["Only 1 category."]}


def test_json_has_null_where_a_number_is_not_finite():
    assert json.loads(to_json({"a": float("nan"), "b": [np.float32(1.5), np.inf]})) == {"a": None, "b": [1.5, None]}


def test_arviz_reads_the_draws_by_name(tmp_path, found):
    posterior, _ = found
    _write(tmp_path / "out", found)
    tree = az.from_netcdf(tmp_path / "out" / "posterior.nc")
    draws = tree["posterior"].dataset
    assert draws["elasticity_product"].dims == ("chain", "draw", "product")
    assert draws["time_effect"].dims == ("chain", "draw", "category", "period")
    assert draws["covariate_category"].sizes["covariate"] == 0
    one = draws["elasticity_product"].sel(product="00003").values[0]
    np.testing.assert_array_equal(one, posterior.draws.elasticity_product[:, 3])
    assert draws["category_of_product"].sel(product="00011").item() == "category 2"
    assert draws["level_series"].sel(series="00003 / store 1").shape == (1, 400)
    assert tree["constant_data"].dataset["n_obs"].values.tolist() == posterior.labels.n_obs.tolist()
    assert json.loads(draws.attrs["plan"])["seed"] == 5
    table = az.summary(tree, var_names=["elasticity_category"], kind="stats", round_to=6)
    np.testing.assert_allclose(table["mean"].astype(float), posterior.levels["category"].mean, atol=0.01)


def test_a_shared_time_effect_has_the_period_axis_only():
    panel, labels, draws = market()
    draws.others["time_effect"] = draws.others["time_effect"][:, 0]
    draws.others["something_else"] = np.zeros((400, 5))
    tree = posterior_tree(posterior_from_draws(draws, panel, labels))
    assert tree["posterior"]["time_effect"].dims == ("chain", "draw", "period")
    assert tree["posterior"]["something_else"].dims == ("chain", "draw", "something_else_dim_0")


def test_a_failure_leaves_the_folder_as_it_was(tmp_path, found, monkeypatch):
    folder = tmp_path / "out"
    _write(folder, found)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(results, "write_posterior", full)
    with pytest.raises(OSError, match="No space left"):
        _write(folder, found)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


FULL_DISK = """
import resource
from pathlib import Path
from core.report.netcdf import write_posterior
from tests.core.report.test_results import handmade

made = handmade()
resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, 4_096))
try:
    write_posterior(Path("{path}"), *made)
except OSError:
    print("refused")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="files have no limit of size to set there")
def test_draws_that_do_not_fit_on_the_disk_are_an_error_and_not_the_end_of_the_process(tmp_path):
    code = FULL_DISK.format(path=tmp_path / "posterior.nc")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "refused"), done.stderr[-2_000:]


def test_writing_again_replaces_the_result_and_keeps_other_files(tmp_path, found):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    _write(folder, found)
    _write(folder, found)
    assert sorted(path.name for path in folder.iterdir()) == sorted([*RESULT_FILES, "notes.txt"])


def test_a_name_with_a_zero_sign_does_not_lose_the_draws(tmp_path, found):
    posterior, fit = found
    names = ("a\0b", *posterior.labels.products[1:])
    _write(tmp_path / "out", (replace(posterior, labels=replace(posterior.labels, products=names)), fit))
    draws = az.from_netcdf(tmp_path / "out" / "posterior.nc")
    assert str(draws.posterior["product"].values[0]) == "a\ufffdb"
