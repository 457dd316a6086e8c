"""Records: their fields, their way through JSON, rounds merged, comparisons with their neutral bands."""

import json
from dataclasses import asdict, fields, replace

import pytest

from core.benchmark.records import (
    MEASURES,
    Record,
    StepSeconds,
    best_earlier,
    compare,
    merge_rounds,
    newest_of_each_case,
    read_report,
    write_report,
)
from core.errors import UserError
from tests.core.benchmark.records import MACHINE, failed, record, report

FIELDS = (
    "case", "variant", "placement", "devices", "loss", "particles", "guide", "n_products", "n_obs", "compile_seconds",
    "run_seconds", "step_seconds", "ns_per_obs_step", "steps", "accuracy", "success", "error", "environment",
)  # fmt: skip


def test_a_record_has_exactly_the_published_fields():
    assert tuple(f.name for f in fields(Record)) == FIELDS


def test_json_keeps_a_report_whole(tmp_path):
    whole = report(record(accuracy={"coverage90": 0.9}), failed(), state="cancelled", planned=5)
    write_report(whole, tmp_path / "deep" / "report.json")
    assert read_report(tmp_path / "deep" / "report.json") == whole


def test_a_step_is_written_as_min_median_max():
    assert json.loads(json.dumps(asdict(record())))["step_seconds"].keys() == {"min", "median", "max"}


@pytest.mark.parametrize("content", ["", "{}", '{"records": 3}', '[{"case": "step"}]'])
def test_a_file_that_is_no_report_is_refused_by_name(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(UserError, match=r"other\.json"):
        read_report(path)


def test_merged_rounds_keep_the_best_run_and_the_whole_range_of_steps():
    merged = merge_rounds([record(2.0, compile_seconds=0.4), record(1.0, compile_seconds=0.6), record(3.0)])
    assert merged.run_seconds == 1.0
    assert merged.compile_seconds == 0.4
    assert merged.step_seconds == StepSeconds(0.01, 0.03, 0.06)
    assert merged.ns_per_obs_step == pytest.approx(0.01 / 1_000 * 1e9)


def test_a_failed_round_does_not_spoil_the_others():
    assert merge_rounds([record(2.0), failed()]).run_seconds == 2.0


def test_rounds_that_all_failed_keep_their_reason():
    assert merge_rounds([failed("first"), failed("last")]).error == "last"


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (1.0, 1.04, "neutral"),
        (1.0, 1.06, "faster"),
        (1.06, 1.0, "slower"),
        (0.0005, 0.0012, "neutral"),
        (1.0, 17.0, "faster"),
    ],
)
def test_differences_are_named_beyond_five_per_cent_and_a_millisecond(ours, theirs, verdict):
    assert compare(record(ours), record(theirs)).verdict == verdict


def test_comparison_counts_per_step():
    assert compare(record(1.0, steps=100), record(1.0, steps=10)).ratio == pytest.approx(10.0)


def test_what_did_not_run_is_not_comparable_and_says_why():
    found = compare(record(), failed("Not run: no GPU."))
    assert found.verdict == "not comparable"
    assert found.ratio is None
    assert "no GPU" in found.sentence


def test_earlier_records_match_by_cell_and_machine():
    now = record(1.0)
    other_machine = record(0.1, environment=replace(MACHINE, processor="another"))
    others = report(record(3.0), record(2.0), other_machine, record(0.2, loss="RenyiELBO"))
    found = best_earlier(now, [others])
    assert found is not None
    assert found.run_seconds == 2.0
    assert best_earlier(now, [report(failed())]) is None


def test_an_extrapolated_time_says_so():
    assert record(accuracy={"extrapolated_from_steps": 40.0}).extrapolated
    assert not record().extrapolated


def test_every_measure_has_a_sentence():
    assert all(sentence[0].isupper() for sentence in MEASURES.values())


def test_the_newest_finished_run_of_each_case_makes_one_report_whose_ratios_stay_within_a_run():
    def run(day, *cases, **changes):
        made = (record(float(day), case=case) for case in cases)
        return report(*made, started=f"2026-01-0{day}T00:00:00Z", command=f"run {day}", **changes)

    runs = [run(3, "live"), run(2, "step", "live"), run(1, "step", "scale"), run(4, "scale", state="cancelled")]
    together = newest_of_each_case(runs)
    assert [(found.case, found.run_seconds) for found in together.records] == [("step", 2), ("live", 3), ("scale", 1)]
    assert (together.started, together.command) == ("2026-01-03T00:00:00Z", "run 1; run 2; run 3")
    assert newest_of_each_case(runs[:1]) is None
    assert newest_of_each_case([]) is None
