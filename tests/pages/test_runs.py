"""The Runs page lists what was done, newest first, and shows only what the viewer may see."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from core.runs.desk import result_path
from tests.pages.conftest import PATIENCE_SECONDS, said
from tests.pages.test_model import submit


def test_an_empty_list_says_what_to_do(open_page):
    tab = open_page("runs")
    assert not tab.exception
    assert "No runs yet" in said(tab)


def test_runs_are_listed_newest_first(open_page, installation):
    first, second = submit(installation), submit(installation, seed=1)
    for run_id in (first, second):
        installation.wait(run_id, timeout=60)
    installation.rename(second, "the second")
    tab = open_page("runs")
    assert not tab.exception
    listed = tab.dataframe[0].value
    assert listed["Run"].tolist() == ["the second", "a run"]
    assert listed["State"].tolist() == ["finished", "finished"]


def one_run():
    from pages.components.runlist import work_with_run
    from pages.components.services import manager

    work_with_run(manager().runs()[0])


def test_a_run_is_drawn_again_with_other_draws(installation):
    run_id = submit(installation)
    installation.wait(run_id, timeout=60)
    tab = AppTest.from_function(one_run, default_timeout=PATIENCE_SECONDS).run()
    next(box for box in tab.number_input if box.label == "Draws").set_value(300)
    next(button for button in tab.button if button.label == "Draw").click().run()
    assert not tab.exception
    installation.wait(run_id, timeout=60)
    assert installation.result(run_id).posterior.n_draws == 300


def test_a_run_whose_result_is_lost_can_still_be_named_drawn_again_and_deleted(installation):
    run_id = submit(installation)
    installation.wait(run_id, timeout=60)
    result_path(installation.settings, run_id).unlink()
    tab = AppTest.from_function(one_run, default_timeout=PATIENCE_SECONDS).run()
    assert not tab.exception
    assert "kept result of this run is missing" in said(tab)
    assert {"Draw", "Keep", "Delete"} <= {button.label for button in tab.button}


def comparison():
    from pages.components.runlist import compare
    from pages.components.services import manager

    compare(manager().runs())


def test_two_runs_stand_side_by_side_with_their_differences(installation):
    for seed in (0, 1):
        installation.wait(submit(installation, seed=seed), timeout=60)
    tab = AppTest.from_function(comparison, default_timeout=PATIENCE_SECONDS).run()
    assert not tab.exception
    differing = next(frame.value for frame in tab.dataframe if "choice" in frame.value)
    rows = next(frame.value for frame in tab.dataframe if "spread" in frame.value)
    assert differing["choice"].tolist() == ["Seed"]
    assert rows["spread_in_sd"].is_monotonic_decreasing
    assert len(tab.get("plotly_chart")) == 2
