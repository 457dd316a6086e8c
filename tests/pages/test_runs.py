"""The Runs page lists what was done, newest first, and shows only what the viewer may see."""

from __future__ import annotations

from tests.pages.conftest import said
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
