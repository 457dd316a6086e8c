"""The Timings page on a data folder made by hand: what it shows before anything was timed, and of a report."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.benchmark import jobs, runner
from core.benchmark.records import write_report
from core.settings import Settings
from pages.components import services
from tests.core.benchmark.records import failed, record, report

PAGE = Path(__file__).parents[2] / "pages" / "views" / "timings.py"
IMPORTS_SECONDS = 120
"""Importing JAX and the engines on a loaded machine."""


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setenv("ISOELASTIC_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(runner, "SHIPPED", tmp_path / "shipped")
    services.settings.cache_clear()
    yield AppTest.from_file(str(PAGE), default_timeout=IMPORTS_SECONDS)
    services.settings.cache_clear()


def _keep(tmp_path, *records, **changes):
    made = report(*records, **changes)
    write_report(made, tmp_path / "benchmarks" / f"{made.started.replace(':', '')}.json")
    return made


STEP = (record(34.0, variant="article"), record(2.0), failed(placement="gpu"))


def _words(page):
    parts = (*page.caption, *page.markdown, *page.info, *page.error, *page.warning)
    return "\n".join(str(part.value) for part in parts)


def test_before_anything_is_timed_the_published_figures_stand_labelled(page):
    page.run()
    assert not page.exception
    assert "Nothing has been timed" in _words(page)
    assert "not measured here" in _words(page)


def test_a_report_shows_its_ratios_and_the_reason_of_what_did_not_run(page, tmp_path):
    _keep(tmp_path, *STEP)
    page.run()
    assert not page.exception
    assert [metric.value for metric in page.metric] == ["17 x faster"]
    assert "Not run: no GPU." in _words(page).replace("\\", "")


@pytest.mark.parametrize("picture", ["Accuracy against time", "Rows against seconds", "Beside the article"])
def test_every_picture_can_be_drawn_of_a_report_without_its_case(page, tmp_path, picture):
    _keep(tmp_path, *STEP)
    page.run()
    page.session_state["timing-view"] = picture
    page.run()
    assert not page.exception


def test_the_table_holds_everything(page, tmp_path):
    _keep(tmp_path, *STEP)
    page.run()
    page.session_state["timing-view"] = "Everything"
    page.run()
    assert len(page.dataframe[0].value) == len(STEP)


def test_the_newest_report_is_shown_first_and_an_older_one_by_choice(page, tmp_path):
    _keep(tmp_path, *STEP)
    _keep(tmp_path, record(34.0, variant="article"), record(1.0), started="2026-02-01T00:00:00Z")
    page.run()
    assert page.metric[0].value == "34 x faster"
    page.selectbox(key="report").select_index(1).run()
    assert page.metric[0].value == "17 x faster"


def test_what_came_with_the_project_is_shown_in_one_until_this_machine_has_a_run_of_its_own(page, tmp_path):
    live = [record(1.0, case="live", variant=name, n_obs=n) for n in (100, 900) for name in ("live", "fused")]
    for number, records in enumerate([STEP, live]):
        made = report(*records, started=f"2026-01-0{1 + number}T00:00:00Z")
        write_report(made, tmp_path / "shipped" / f"{number}.json")
    page.run()
    assert [metric.value for metric in page.metric] == ["17 x faster", "1 x", "1 x"]
    assert [label.endswith(": every case") for label in page.selectbox(key="report").options] == [True, False, False]
    page.session_state["timing-view"] = "Everything"
    page.run()
    assert not page.exception
    assert len(page.dataframe[0].value) == len(STEP) + len(live)
    _keep(tmp_path, record(34.0, variant="article"), record(1.0), started="2026-01-09T00:00:00Z")
    fresh = AppTest.from_file(str(PAGE), default_timeout=IMPORTS_SECONDS).run()
    assert [metric.value for metric in fresh.metric] == ["34 x faster"]


@pytest.mark.parametrize("records", [STEP, ()], ids=["some", "none"])
def test_a_report_that_ran_out_of_time_says_how_to_allow_more(page, tmp_path, records):
    remark = jobs.time_limit(Settings(benchmark_minutes=30), iter([0.0, 1_800.0]).__next__)()
    _keep(tmp_path, *records, state="out of time", planned=9, remark=remark)
    page.run()
    assert not page.exception
    (warning,) = page.warning
    told = warning.value.replace("\\", "")
    assert f"{len(records)} of 9" in told and "30 minutes" in told and "ISOELASTIC_BENCHMARK_MINUTES" in told
    if records:
        assert " · out of time" in page.selectbox(key="report").options[0]


def test_a_job_that_is_running_shows_progress_and_can_be_called_off(page, tmp_path, monkeypatch):
    _keep(tmp_path, *STEP, state="running", planned=9, doing="step: panel (round 1 of 1)")
    monkeypatch.setattr(jobs, "running", lambda settings: "benchmark")
    monkeypatch.setattr("pages.components.timings.running", lambda settings: "benchmark")
    page.run()
    assert page.button(key="time").disabled
    page.button(key="time-cancel").click().run()
    assert (tmp_path / "benchmarks" / "job" / "stop").exists()


def test_the_race_explains_itself_before_it_starts(page):
    page.run()
    page.session_state["timings"] = "Live race"
    page.run()
    assert not page.exception
    assert "half of the cores" in _words(page)
    assert "clock starts when it has compiled" in _words(page)
    assert not page.button(key="race").disabled


def test_nothing_runs_in_an_empty_folder(tmp_path):
    assert jobs.running(Settings(data_dir=tmp_path)) == ""
