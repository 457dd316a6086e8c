"""The reports that come with the project: they tell of the machine's kind, not of one machine, and docs/benchmarks.md
says what they say."""

import json
import re

import pytest

from core.benchmark.command import main
from core.benchmark.options import BenchmarkOptions
from core.benchmark.runner import ROOT, SHIPPED
from core.errors import UserError

FILES = sorted(SHIPPED.glob("*.json"))
ABSOLUTE = re.compile(r"(?<![\w.<])(/[\w.]|[A-Za-z]:\\)")
BUILD = re.compile(r"\d+\.\d+\.\d+-")


def _strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from (name, *_strings(part))
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_shipped_report_tells_of_a_machines_folders_or_kernel(path):
    report = json.loads(path.read_text(encoding="utf-8"))
    texts = set(_strings(report))
    assert not [text for text in texts if ABSOLUTE.search(text) or BUILD.search(text)]
    systems = {record["environment"]["system"] for record in report["records"] if record["environment"]}
    assert all(re.fullmatch(r"\w+ \w+", system) for system in systems), systems


def test_there_are_shipped_reports_and_they_lie_in_the_docs():
    assert FILES
    assert SHIPPED.parent == ROOT / "docs"


def test_the_page_is_what_the_command_writes_from_the_shipped_reports(tmp_path):
    page = tmp_path / "benchmarks.md"
    assert main(BenchmarkOptions(reports=str(SHIPPED), docs=str(page))) == 0
    shipped = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    again = "python -m core benchmark --reports docs/benchmarks --docs docs/benchmarks.md"
    assert page.read_text(encoding="utf-8") == shipped, f"docs/benchmarks.md is not of docs/benchmarks/*.json: {again}"
    assert again in shipped


def test_a_page_can_be_written_of_some_reports_alone(tmp_path):
    page = tmp_path / "page.md"
    main(BenchmarkOptions(reports=f"{FILES[0]}, {FILES[-1]}", docs=str(page)))
    assert page.read_text(encoding="utf-8").count("## Run ") - page.read_text(encoding="utf-8").count("### Run ") == 2


def test_reports_that_are_not_there_or_have_no_page_to_go_to_are_refused(tmp_path):
    with pytest.raises(UserError, match="docs the page"):
        BenchmarkOptions(reports="some.json")
    with pytest.raises(UserError, match="There is no JSON file"):
        main(BenchmarkOptions(reports=str(tmp_path), docs=str(tmp_path / "page.md")))
    with pytest.raises(UserError, match="missing"):
        main(BenchmarkOptions(reports=str(tmp_path / "missing.json"), docs=str(tmp_path / "page.md")))
    assert not (tmp_path / "page.md").exists()
