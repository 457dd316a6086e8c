"""The docs say what the declarations say."""

import re
from pathlib import Path

from core.cli.reference import page

ROOT = Path(__file__).parents[3]


def test_docs_list_every_choice_as_it_is_declared():
    assert (ROOT / "docs" / "choices.md").read_text(encoding="utf-8") == page(), "run python -m core reference"


def test_every_local_link_of_the_readme_leads_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
