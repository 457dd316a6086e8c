"""The reports that come with the project: they tell of the machine's kind, not of one machine."""

import json
import re

import pytest

from core.benchmark.runner import ROOT, SHIPPED

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
