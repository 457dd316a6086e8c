"""The runner: order of cells, failures as rows, cancellation, what a cell's process sees."""

from dataclasses import replace

import pytest

from core.benchmark.cases import CASES, Cell, blank, cells_of, not_run
from core.benchmark.measure import batch_plan, measure
from core.benchmark.options import CASE_HELP, BenchmarkOptions
from core.benchmark.records import write_report
from core.benchmark.runner import (
    Cancelled,
    Looker,
    command_of,
    environment_of,
    kept_reports,
    measure_in_process,
    run_benchmark,
)
from core.benchmark.stopwatch import time_fields
from core.errors import UserError
from core.runs.locks import device_lock
from core.settings import Settings
from tests.core.benchmark.records import report

SMALL = BenchmarkOptions(cases="live", placements="cpu,gpu", rounds=2)


def _settings(tmp_path):
    return Settings(data_dir=tmp_path)


def _measured(cell, settings, limit, looker):
    if cell.placement == "gpu":
        return not_run(cell, "Not run: no GPU here.")
    return replace(blank(cell), **time_fields([0.01], 10, cell.n_obs), compile_seconds=0.1)


def test_every_case_has_help_and_cells():
    assert CASES.keys() == CASE_HELP.keys()
    for case in CASES:
        cells = cells_of(BenchmarkOptions(cases=case))
        assert len(set(cells)) == len(cells) > 0
        assert {cell.case for cell in cells} == {case}


def test_simulated_devices_are_timed_in_the_case_devices_alone():
    cells = cells_of(BenchmarkOptions(placements="cpu,cpu:4"))
    assert {cell.case for cell in cells if cell.placement == "cpu:4"} == {"devices"}


def test_options_that_are_off_are_all_named():
    with pytest.raises(UserError) as caught:
        BenchmarkOptions(cases="step,stop", placements="cpu,tpu", rounds=0)
    text = str(caught.value)
    assert all(part in text for part in ("'stop'", "'tpu'", "rounds=0"))


def test_rounds_take_turns_and_a_failed_cell_is_not_tried_again(tmp_path):
    order = []

    def measured(cell, *rest):
        order.append((cell.variant, cell.placement))
        return _measured(cell, *rest)

    report = run_benchmark(SMALL, _settings(tmp_path), measure_cell=measured)
    cpu = [variant for variant, placement in order if placement == "cpu"]
    assert cpu[: len(cpu) // 2] == cpu[len(cpu) // 2 :]
    assert sum(placement == "gpu" for _, placement in order) == len(cpu) // 2
    assert report.state == "finished"
    assert len(report.records) == report.planned
    assert {record.error for record in report.records if not record.success} == {"Not run: no GPU here."}


def test_the_report_is_kept_after_every_cell(tmp_path):
    seen = []
    settings = _settings(tmp_path)
    looker = Looker(on_report=lambda report: seen.append((report, kept_reports(settings)[0])))
    run_benchmark(SMALL, settings, looker, measure_cell=_measured)
    assert all(told == kept for told, kept in seen)
    assert [len(told.records) for told, _ in seen] == sorted(len(told.records) for told, _ in seen)
    assert "live: fused" in seen[0][0].doing


def test_a_cancelled_run_keeps_what_it_has(tmp_path):
    done = []

    def measured(cell, *rest):
        if len(done) == 3:
            raise Cancelled
        done.append(cell)
        return _measured(cell, *rest)

    report = run_benchmark(SMALL, _settings(tmp_path), measure_cell=measured)
    assert report.state == "cancelled"
    assert len(report.records) == 3
    assert kept_reports(_settings(tmp_path)) == (report,)


def test_a_run_that_is_out_of_time_says_so_and_is_not_called_cancelled(tmp_path):
    looker = Looker(out_of_time=lambda: "No time left; allow more.")
    with device_lock(tmp_path / "locks", "cpu") as lock:
        assert lock.acquire()
        report = run_benchmark(SMALL, _settings(tmp_path), looker)
    assert (report.state, report.remark, report.doing) == ("out of time", "No time left; allow more.", "")
    assert kept_reports(_settings(tmp_path)) == (report,)


def test_files_that_are_no_reports_are_passed_over(tmp_path):
    run_benchmark(SMALL, _settings(tmp_path), measure_cell=_measured)
    (tmp_path / "benchmarks" / "zzz.json").write_text("{")
    assert len(kept_reports(_settings(tmp_path))) == 1


def test_reports_are_newest_first_by_when_they_started_whatever_their_files_are_called(tmp_path):
    for name, day in (("a", 2), ("b", 3), ("c", 1)):
        write_report(report(started=f"2026-01-0{day}T00:00:00Z"), tmp_path / "benchmarks" / f"{name}.json")
    assert [kept.started[9:10] for kept in kept_reports(_settings(tmp_path))] == ["3", "2", "1"]


def test_the_command_repeats_the_options():
    assert command_of(BenchmarkOptions()) == "python -m core benchmark"
    assert command_of(SMALL) == "python -m core benchmark --cases live --placements cpu,gpu --rounds 2"
    assert command_of(BenchmarkOptions(cases="step, live")).endswith("--cases 'step, live'")


def test_a_report_does_not_say_where_it_was_written(tmp_path):
    options = replace(SMALL, json=str(tmp_path / "kept.json"), docs=str(tmp_path / "page.md"))
    report = run_benchmark(options, _settings(tmp_path), measure_cell=_measured)
    assert report.options == SMALL.measured
    assert str(tmp_path) not in report.command
    assert not report.options.keys() & {"json", "docs"}


def test_a_cell_sees_its_devices_and_no_cache():
    inherited = {"JAX_COMPILATION_CACHE_DIR": "somewhere", "PATH": "bin"}
    seen = environment_of(Cell("devices", "panel", "cpu:4"), inherited)
    assert seen["JAX_NUM_CPU_DEVICES"] == "4"
    assert seen["JAX_PLATFORMS"] == "cpu"
    assert seen["JAX_ENABLE_COMPILATION_CACHE"] == "false"
    assert "JAX_COMPILATION_CACHE_DIR" not in seen
    assert "JAX_PLATFORMS" not in environment_of(Cell("step", "panel", "gpu"), inherited)


def test_a_cell_waits_for_the_device_and_can_be_called_off(tmp_path):
    settings = _settings(tmp_path)
    asked = []

    def stop():
        asked.append(True)
        return len(asked) > 2

    with device_lock(tmp_path / "locks", "cpu") as lock:
        assert lock.acquire()
        with pytest.raises(Cancelled):
            measure_in_process(Cell("step", "article"), settings, 60.0, Looker(should_stop=stop))
    assert len(asked) == 3


@pytest.mark.slow
def test_a_process_of_its_own_measures_the_articles_step(tmp_path):
    cell = Cell(
        "step", "article", loss="Trace_ELBO", particles=1, guide="AutoNormal", products=50, periods=10, seconds=0.1
    )
    record = measure_in_process(cell, _settings(tmp_path), 120.0, Looker())
    assert record.error == ""
    assert record.n_obs == 500
    assert record.step_seconds.min <= record.step_seconds.median <= record.step_seconds.max
    assert record.ns_per_obs_step == pytest.approx(record.step_seconds.min / 500 * 1e9)
    assert record.compile_seconds > record.run_seconds
    assert record.environment.cores >= 1


@pytest.mark.slow
def test_a_cell_that_cannot_run_here_is_a_row_with_its_reason(tmp_path):
    cell = Cell("step", "panel", loss="No_ELBO", particles=1, guide="AutoNormal", products=10, periods=10)
    record = measure_in_process(cell, _settings(tmp_path), 120.0, Looker())
    assert not record.success
    assert "No_ELBO" in record.error
    assert record.run_seconds is None


def test_a_cell_beyond_its_limit_is_ended_and_says_so(tmp_path):
    cell = Cell("step", "article", loss="Trace_ELBO", particles=1, products=50, periods=10)
    record = measure_in_process(cell, _settings(tmp_path), 0.05, Looker())
    assert not record.success
    assert "0.05 s" in record.error


@pytest.mark.parametrize(("home", "variant"), [("device", "minibatch-1500"), ("host", "streamed-1500")])
def test_a_mini_batch_is_timed_per_row_that_its_step_reads(home, variant):
    cell = Cell(
        "devices", variant, loss="Trace_ELBO", particles=1, guide="AutoNormal", products=12, periods=6, steps=8,
        batch_products=4, data_home=home,
    )  # fmt: skip
    record = measure(cell)
    assert record.error == ""
    assert record.accuracy["rows_per_step"] == pytest.approx(24)
    assert record.ns_per_obs_step == pytest.approx(record.step_seconds.min / 24 * 1e9)


def test_mini_batches_are_timed_beside_all_products_on_their_market():
    cells = [
        cell for cell in cells_of(BenchmarkOptions(cases="devices", placements="cpu,cpu:2")) if "-" in cell.variant
    ]
    assert {cell.placement for cell in cells} == {"cpu"}
    assert len({(cell.periods, cell.loss, cell.guide) for cell in cells}) == 1
    sizes: dict = {}
    for cell in cells:
        sizes.setdefault(cell.products, {})[cell.variant] = (cell.batch_products, batch_plan(cell).svi.data_home)
    large = {"all-products": (0, "auto"), "minibatch-6000": (6_000, "device"), "streamed-6000": (6_000, "host")}
    assert sizes[100_000] == large
    assert sizes[12_000] == {
        **large, "minibatch-3000": (3_000, "device"), "minibatch-1500": (1_500, "device"),
        "streamed-3000": (3_000, "host"), "streamed-1500": (1_500, "host"),
    }  # fmt: skip
