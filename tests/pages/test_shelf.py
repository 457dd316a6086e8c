"""What pages draw is drawn once for all tabs, anew where anything that decides it changes, and kept with a bound."""

from __future__ import annotations

import pytest
import streamlit as st

from pages.components import elasticities
from pages.components.shelf import KEPT, kept
from tests.pages.test_model import submit


@pytest.fixture(autouse=True)
def empty_shelf():
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


@pytest.fixture
def run_id(installation):
    run_id = submit(installation)
    installation.wait(run_id, timeout=60)
    return run_id


@pytest.fixture
def drawn(monkeypatch):
    """Interval masses of the forests drawn so far."""
    masses, forest = [], elasticities.forest

    def counted(table, mass, *rest):
        masses.append(mass)
        return forest(table, mass, *rest)

    monkeypatch.setattr(elasticities, "forest", counted)
    return masses


def test_a_thing_is_made_once_for_its_ids():
    made = []
    for name, ids in (("a", (1,)), ("a", (1,)), ("a", (2,)), ("b", (1,))):
        assert kept(name, ids, lambda name=name, ids=ids: made.append((name, ids)) or (name, ids)) == (name, ids)
    assert made == [("a", (1,)), ("a", (2,)), ("b", (1,))]


def test_what_was_used_longest_ago_goes_first():
    made = []
    for number in (*range(KEPT + 1), 0, KEPT):
        kept("thing", (number,), lambda number=number: made.append(number))
    assert made == [*range(KEPT + 1), 0]


def test_a_chart_is_drawn_once_for_all_tabs(open_page, run_id, drawn):
    tabs = [open_page("elasticities", run=run_id) for _ in range(2)]
    for tab in tabs:
        tab.session_state["picture"] = "By category"
        for _ in range(2):
            assert not tab.run().exception
    assert drawn == [0.9]
    first, second = (next(iter(tab.get("plotly_chart"))).proto.spec for tab in tabs)
    assert first == second


def test_another_interval_draws_anew(open_page, run_id, drawn):
    tab = open_page("elasticities", run=run_id)
    tab.session_state["picture"] = "By category"
    tab.run()
    tab.session_state["mass"] = 0.5
    tab.run()
    assert drawn == [0.9, 0.5]


def test_a_run_that_went_further_draws_anew(open_page, installation, run_id, drawn):
    tab = open_page("elasticities", run=run_id)
    tab.session_state["picture"] = "By category"
    tab.run()
    installation.more_steps(run_id, 50)
    assert installation.wait(run_id, timeout=60).usable
    tab.run()
    assert drawn == [0.9, 0.9]
