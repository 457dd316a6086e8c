"""What a page starts: a benchmark or a race in a process of its own, found again by its files and called off by one."""

import time
from dataclasses import replace

import pytest

from core.benchmark import jobs
from core.benchmark.options import BenchmarkOptions
from core.benchmark.race import LANES, Line, RaceOptions, lines_of, run_lane, watched_products
from core.benchmark.runner import kept_reports
from core.errors import UserError
from core.runs.locks import FileLock
from core.settings import Settings

PATIENCE = 120.0
"""Seconds for a process to import JAX, compile and end on a loaded machine."""


@pytest.fixture
def settings(tmp_path):
    return Settings(data_dir=tmp_path)


def _wait(settings):
    until = time.monotonic() + PATIENCE
    while jobs.running(settings):
        assert time.monotonic() < until, jobs.last_words(settings)
        time.sleep(0.2)


def test_a_second_job_is_refused_while_one_runs(settings):
    folder = jobs.race_folder(settings).parent
    jobs._write_job(folder, "race", taken=True)
    with FileLock(folder / "running.lock") as lock:
        assert lock.acquire()
        assert jobs.running(settings) == "race"
        with pytest.raises(UserError, match="a race is running"):
            jobs.start_benchmark(BenchmarkOptions(), settings)
        line = jobs.race_folder(settings) / "ours.jsonl"
        line.parent.mkdir()
        line.write_text("{}")
        with pytest.raises(UserError, match="a race is running"):
            jobs.start_race(RaceOptions(), settings)
        assert line.exists()
    assert jobs.running(settings) == ""


def test_where_no_time_is_allowed_nothing_is_started_and_the_last_race_stays(settings):
    off = replace(settings, benchmark_minutes=0)
    line = jobs.race_folder(settings) / "ours.jsonl"
    line.parent.mkdir()
    line.write_text("{}")
    for start in (lambda: jobs.start_benchmark(BenchmarkOptions(), off), lambda: jobs.start_race(RaceOptions(), off)):
        with pytest.raises(UserError, match="ISOELASTIC_BENCHMARK_MINUTES"):
            start()
    assert jobs.running(settings) == ""
    assert line.exists()


def test_a_job_ends_when_asked_to(tmp_path):
    asked = jobs.called_off(tmp_path)
    assert not asked()
    (tmp_path / "stop").touch()
    assert asked()


def test_a_job_whose_time_is_up_says_how_to_allow_more(settings):
    now = [7.0]
    out_of_time = jobs.time_limit(replace(settings, benchmark_minutes=2), lambda: now[0])
    now[0] += 119.0
    assert out_of_time() == ""
    now[0] += 1.0
    assert "2 minutes" in out_of_time()
    assert "ISOELASTIC_BENCHMARK_MINUTES" in out_of_time()


def test_a_job_that_died_is_not_running(settings):
    jobs._write_job(jobs.race_folder(settings).parent, "benchmark", taken=True)
    assert jobs.running(settings) == ""


@pytest.mark.slow
def test_a_benchmark_started_by_the_page_can_be_called_off_and_keeps_its_report(settings):
    jobs.start_benchmark(BenchmarkOptions(cases="live", placements="cpu", rounds=1), settings)
    assert jobs.running(settings) == "benchmark"
    jobs.ask_to_stop(settings)
    _wait(settings)
    (report,) = kept_reports(settings)
    assert report.state == "cancelled"
    assert report.planned > len(report.records)


@pytest.mark.slow
def test_a_benchmark_started_by_the_page_that_runs_out_of_time_says_so(settings, monkeypatch):
    monkeypatch.setenv("ISOELASTIC_BENCHMARK_MINUTES", "0")
    jobs.start_benchmark(BenchmarkOptions(cases="live", placements="cpu", rounds=1), settings)
    _wait(settings)
    (report,) = kept_reports(settings)
    assert report.state == "out of time"
    assert "ISOELASTIC_BENCHMARK_MINUTES" in report.remark
    assert jobs.last_words(settings) == report.remark[:300]


def test_a_line_half_written_is_left_for_the_next_look(tmp_path):
    (tmp_path / "ours.jsonl").write_text('{"seconds": 1.0, "steps": 2}\n{"seconds": 2.0, "st')
    assert lines_of(tmp_path, "ours") == (Line(1.0, 2),)
    assert lines_of(tmp_path, "article") == ()


def test_both_lanes_watch_the_same_products_spread_over_the_market():
    assert watched_products(20) == watched_products(20)
    assert len(watched_products(12_000)) == 10
    assert (watched_products(12_000)[0], watched_products(12_000)[-1]) == (0, 11_999)


@pytest.mark.slow
@pytest.mark.parametrize("lane", LANES)
def test_a_lane_reports_how_wrong_it_still_is_until_it_is_done(tmp_path, lane):
    run_lane(RaceOptions(ours="panel", products=40, periods=20, seconds=2.0), tmp_path, lane)
    lines = lines_of(tmp_path, lane)
    assert lines[0] == Line(0.0, 0)
    assert [line.seconds for line in lines] == sorted(line.seconds for line in lines)
    assert lines[-1].done
    assert lines[-1].steps > 0
    assert lines[-1].error is not None
    assert 0.0 <= lines[-1].coverage90 <= 1.0


@pytest.mark.slow
def test_the_articles_lane_has_compiled_before_its_clock_starts(tmp_path):
    """The first line after it is a quarter of a second old, where compiling takes seconds."""
    run_lane(RaceOptions(ours="panel", products=40, periods=20, seconds=1.0), tmp_path, "article")
    lines = lines_of(tmp_path, "article")
    assert lines[1].steps > 1
    assert sum(line.steps > 1 for line in lines) >= 3, "a second holds several lines: none of it went into compiling"


@pytest.mark.slow
def test_the_structured_lane_ends_nearer_the_truth_than_it_began(tmp_path):
    run_lane(RaceOptions(products=60, periods=30, seconds=60.0), tmp_path, "ours")
    lines = lines_of(tmp_path, "ours")
    first = next(line.watched_error for line in lines if line.watched_error is not None)
    assert lines[-1].watched_error <= first
    assert lines[-1].done


class Taken:
    """A device that somebody else holds."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def acquire(self):
        return False


@pytest.mark.parametrize(
    ("asked", "minutes", "words"), [(True, 5, "Called off while it waited"), (False, 0, "ran out of the 0 minutes")]
)
def test_a_race_that_never_got_the_device_says_what_ended_its_wait(
    settings, monkeypatch, capsys, asked, minutes, words
):
    monkeypatch.setattr(jobs, "load_settings", lambda: replace(settings, benchmark_minutes=minutes))
    monkeypatch.setattr(jobs, "called_off", lambda folder: lambda: asked)
    monkeypatch.setattr(jobs, "device_lock", lambda *_: Taken())
    assert jobs.run_job("race", {}) == 1
    assert words in capsys.readouterr().out
