"""A run of a few products reads the market of these alone, and the check with NUTS asks for the right runs."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from core.errors import UserError
from core.inference.plan import FitPlan, plan_with
from core.report.results import manifest
from core.report.tables import elasticity_table
from core.runs.manager import RunManager
from core.runs.nutscheck import MOST, check_requests, cost_in_words, partner_of, products_to_check
from core.runs.prepare import prepare
from core.runs.requests import RunRequest
from core.runs.values import from_text, to_text
from tests.core.runs.conftest import finish


def quiet(phase: str) -> None:
    """A run that nobody watches."""


@pytest.fixture
def names(manager: RunManager, request_for: RunRequest) -> tuple[str, ...]:
    return prepare(manager.datasets, request_for, quiet).labels.products


def test_a_run_reads_the_chosen_products_alone(manager, request_for, names):
    chosen = (names[4], names[1])
    few = prepare(manager.datasets, replace(request_for, products=chosen), quiet)
    whole = prepare(manager.datasets, request_for, quiet)
    assert set(few.labels.products) == set(chosen)
    assert few.panel.n_products == 2
    rows = whole.sales.frame[whole.sales.frame["product"].isin(chosen)]
    assert float(np.sum(few.panel.units * few.panel.weight)) == rows["units"].sum()


def test_rows_of_other_products_are_accounted_for(manager, request_for, names):
    whole = prepare(manager.datasets, request_for, quiet).sales.account
    few = prepare(manager.datasets, replace(request_for, products=names[:2]), quiet).sales.account
    assert few.read == whole.read == few.used + sum(few.left_out.values())
    assert few.left_out["not among the chosen products"] == whole.used - few.used > 0
    result_id = manager.submit(replace(request_for, products=names[:2]))
    finish(manager, result_id)
    result = manager.result(result_id)
    assert result.products == names[:2]
    assert result.account == few
    assert manifest(result.fit, result.account, "", "")["data"]["rows_left_out"] == dict(few.left_out)


def test_the_market_behind_a_run_is_that_of_its_products(manager, request_for, names):
    ids = [manager.submit(replace(request_for, products=chosen)) for chosen in ((), names[:2])]
    for run_id in ids:
        finish(manager, run_id)
    assert [manager.market(run_id).panel.n_products for run_id in ids] == [6, 2]


def test_a_name_that_the_data_lack_is_passed_over_with_a_warning(manager, request_for, names):
    found = prepare(manager.datasets, replace(request_for, products=(names[0], "nowhere")), quiet)
    assert found.labels.products == (names[0],)
    assert [problem.examples for problem in found.problems if problem.code == "products-unknown"] == [("nowhere",)]
    with pytest.raises(UserError, match="1 chosen product not in the data"):
        prepare(manager.datasets, replace(request_for, products=("nowhere",)), quiet)


def test_requests_kept_before_products_could_be_chosen_mean_all_of_them(request_for):
    assert from_text(to_text(replace(request_for, products=("a",)))).products == ("a",)
    outline = json.loads(to_text(request_for))
    del outline["fields"]["products"]
    assert from_text(json.dumps(outline)) == request_for


def test_the_check_asks_for_both_engines_on_the_chosen_products(manager, request_for, names):
    run = done(manager, request_for)
    own, exact = check_requests(run, names[:2], lambda plan: "?")
    assert (own.plan, exact.plan) == (request_for.plan, plan_with(request_for.plan, engine="nuts"))
    assert own.products == exact.products == names[:2]
    assert (own.name, exact.name) == ("a run · 2 products", "a run · NUTS · 2 products")


def test_a_run_of_all_chosen_products_is_not_done_again(manager, request_for, names):
    (exact,) = check_requests(done(manager, request_for), names, lambda plan: "?")
    assert (exact.plan.engine, exact.products) == ("nuts", ())


def test_a_default_name_follows_the_engine(manager, request_for, names):
    own, exact = check_requests(done(manager, replace(request_for, name="by svi")), names[:2],
                                lambda plan: f"by {plan.engine}")  # fmt: skip
    assert (own.name, exact.name) == ("by svi · 2 products", "by nuts · 2 products")


def test_no_product_and_too_many_are_refused(manager, request_for):
    run = done(manager, request_for)
    for count in (0, MOST + 1):
        labels = replace(run.labels, products=tuple(map(str, range(100))))
        with pytest.raises(UserError, match=f"{count} products cannot be checked"):
            check_requests(replace(run, labels=labels), labels.products[:count], lambda plan: "?")


def test_the_doubtful_products_of_a_large_market_are_checked_first():
    table = pd.DataFrame({"product": list(map(str, range(100))), "n_obs": range(100), "k_hat": np.arange(100) / 100})
    assert products_to_check(table)[:2] == ("99", "98")
    assert len(products_to_check(table)) == 20
    even = products_to_check(table.drop(columns="k_hat"))
    assert (even[0], even[-1], len(set(even))) == ("0", "99", 20)
    assert products_to_check(table.head(MOST)) == tuple(table["product"].head(MOST))


def test_the_cost_is_said_beforehand(manager, request_for):
    run = done(manager, request_for)
    table = elasticity_table(run.posterior)
    words = cost_in_words(run, table[table["level"] == "product"].head(2), ())
    assert words.startswith(
        "2 products with 40 rows. NUTS samples the posterior itself and can take minutes; here about"
    )


def test_runs_of_the_same_products_are_offered_first(manager, request_for, names):
    requests = (request_for, replace(request_for, products=names[:2]), replace(request_for, products=names[:2]),
                request_for)  # fmt: skip
    ids = [manager.submit(request) for request in requests]
    for run_id in ids:
        finish(manager, run_id)
    assert partner_of(ids[1], manager.runs()) == (ids[2], ids[3], ids[0])
    assert partner_of(ids[0], manager.runs()) == (ids[3], ids[2], ids[1])


def done(manager: RunManager, request: RunRequest):
    run_id = manager.submit(request)
    finish(manager, run_id)
    assert request.plan != FitPlan()
    return manager.result(run_id)
