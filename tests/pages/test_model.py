"""The Model page: the form says what the plan declares, and a run is found again, watched, stopped and discarded."""

from __future__ import annotations

import pytest
from streamlit.runtime.state.query_params_proxy import QueryParamsProxy
from streamlit.testing.v1 import AppTest

from core.data.choices import Choices
from core.declare import declarations
from core.inference.memory import FreeMemory
from core.inference.plan import ARTICLE_PLAN, ENGINES, FitPlan, SviPlan, plan_with
from core.report.wording import loss
from core.runs.requests import RunRequest
from core.runs.snapshots import RunState
from pages.components import live, sidebar
from pages.components.intake import demo_dataset
from pages.components.services import guessed_roles
from pages.components.session import KEY
from tests.pages.conftest import PATIENCE_SECONDS, said


def submit(manager, dataset="", **values):
    dataset = dataset or demo_dataset()
    plan = plan_with(FitPlan(), engine="svi", **{"steps": 200, "draws": 100, **values})
    return manager.submit(RunRequest(dataset, guessed_roles(dataset), Choices(), plan, name="a run"))


def labels(tab):
    kinds = (tab.selectbox, tab.number_input, tab.toggle, tab.radio, tab.text_input)
    return {widget.label.split(" (")[0] for kind in kinds for widget in kind}


def test_every_engine_is_offered_with_its_sentence(open_page):
    tab = open_page("model")
    assert not tab.exception
    engine = tab.radio[0]
    assert len(engine.options) == len(ENGINES)
    assert list(engine.proto.captions) == list(ENGINES.values())


def test_every_choice_of_svi_is_on_the_form(open_page):
    tab = open_page("model")
    tab.radio[0].set_value("svi").run()
    assert not tab.exception
    assert {rule.label for _, rule in declarations(SviPlan)} <= labels(tab)


def test_choices_of_other_engines_are_not_on_the_form(open_page):
    assert "Guide" not in labels(open_page("model"))


def test_the_form_makes_the_plan_it_shows(open_page):
    tab = open_page("model")
    next(box for box in tab.selectbox if box.label == "Likelihood").set_value("poisson").run()
    next(box for box in tab.number_input if box.label == "Seed").set_value(11).run()
    assert tab.session_state[KEY].plan == plan_with(FitPlan(), likelihood="poisson", seed=11)


def test_the_articles_recipe_fills_the_form(open_page):
    tab = open_page("model")
    next(button for button in tab.button if "article" in button.label).click().run()
    assert not tab.exception
    assert tab.session_state[KEY].plan == ARTICLE_PLAN


def test_contradicting_choices_are_said_and_not_started(open_page):
    tab = open_page("model")
    next(button for button in tab.button if "article" in button.label).click().run()
    next(box for box in tab.selectbox if box.label == "Likelihood").set_value("negbin").run()
    assert not tab.exception
    assert "Poisson likelihood" in said(tab)
    assert tab.button(key="start").disabled


def test_a_guide_that_does_not_fit_into_memory_is_refused_with_figures(open_page, monkeypatch):
    monkeypatch.setattr("pages.components.costs.free_memory", lambda placement: FreeMemory(100_000))
    tab = open_page("model")
    assert "free memory may be used" in said(tab)
    assert tab.button(key="start").disabled


def test_that_mini_batches_will_stream_is_said_before_the_start(open_page):
    tab = open_page("model")
    tab.radio[0].set_value("svi").run()
    next(box for box in tab.number_input if box.label == "Products per step").set_value(3).run()
    assert "stay in host memory" not in said(tab)
    next(box for box in tab.selectbox if box.label == "Data kept").set_value("host").run()
    assert not tab.exception
    assert "stay in host memory" in said(tab)


def test_unavailable_devices_show_their_reason(open_page, monkeypatch):
    reasons = {"cpu": "", "gpu": "no GPU here"}
    monkeypatch.setattr("pages.components.planning.placements", lambda: reasons)
    tab = open_page("model")
    assert "no GPU here" in said(tab)
    next(box for box in tab.selectbox if box.label == "Device").set_value("gpu").run()
    assert not tab.exception
    assert "cannot be used" in said(tab)
    assert tab.button(key="start").disabled


def test_start_runs_the_plan_and_shows_it(open_page, installation):
    tab = open_page("model")
    tab.button(key="start").click().run()
    run_id = tab.session_state[KEY].run
    assert installation.wait(run_id, timeout=60).state is RunState.FINISHED
    tab.run()
    assert not tab.exception
    assert "Finished" in said(tab)
    assert any(button.label == "See the elasticities" for button in tab.button)


def test_the_address_of_a_run_finds_it_again(open_page, installation):
    run_id = submit(installation)
    installation.wait(run_id, timeout=60)
    tab = open_page("model", run=run_id)
    assert tab.session_state[KEY].run == run_id
    assert "a run" in said(tab)
    assert len(tab.get("vega_lite_chart")) == 2


def addressed():
    from pages.components.address import follow_address

    follow_address()


def test_a_link_to_a_run_is_left_as_it_is(installation, monkeypatch):
    run_id = submit(installation)
    installation.wait(run_id, timeout=60)
    written = []
    write = QueryParamsProxy.from_dict
    monkeypatch.setattr(QueryParamsProxy, "from_dict", lambda self, value: [written.append(value), write(self, value)])
    tab = AppTest.from_function(addressed, default_timeout=PATIENCE_SECONDS)
    tab.query_params["run"] = run_id
    assert not tab.run().exception
    assert tab.session_state[KEY].run == run_id
    assert written == [], "each would be one more to go back"


def test_a_lost_run_in_the_address_is_said_and_the_form_shown(open_page):
    assert "not on this server any more" in said(open_page("data", run="feedfacecafe"))
    tab = open_page("model", run="feedfacecafe")
    assert not tab.exception
    assert tab.button(key="start")


def test_a_tab_says_that_its_run_was_discarded_elsewhere(open_page, installation):
    run_id = submit(installation)
    installation.wait(run_id, timeout=60)
    tab = open_page("model", run=run_id)
    installation.discard(run_id)
    tab.run()
    assert not tab.exception
    assert "has been discarded" in said(tab)
    assert tab.session_state[KEY].run == "" and "run" not in tab.query_params
    assert tab.button(key="start")
    assert "has been discarded" not in said(tab.run())


@pytest.mark.parametrize("tick", [lambda: live._panel("gone", True), lambda: sidebar._state("gone")])
def test_a_tick_of_a_discarded_run_asks_the_frame_to_look_again(installation, monkeypatch, tick):
    class LooksAgain(Exception):
        pass

    def rerun():
        raise LooksAgain

    monkeypatch.setattr("streamlit.rerun", rerun)
    with pytest.raises(LooksAgain):
        tick()


def test_a_run_that_has_ended_is_not_said_to_be_falling_still(open_page, installation):
    run_id = submit(installation, steps=400)
    ended = installation.wait(run_id, timeout=60)
    words = said(open_page("model", run=run_id))
    assert f"to {loss(ended.loss)}." in words
    assert ended.verdict and ended.verdict[1:] not in words
