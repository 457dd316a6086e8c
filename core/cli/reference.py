"""Write every declared choice as Markdown: docs/choices.md is this page, and a test holds it to that."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from core.cli.options import option, place
from core.data.choices import Choices
from core.declare import declarations
from core.inference.plan import FitPlan
from core.settings import Settings, variable
from core.simulation import MarketPlan

PLANS: dict[str, tuple[str, type]] = {
    "What is fitted, and how": ("`fit`, and the page Model & fit.", FitPlan),
    "What is done about rows that are not plain sales": ("`check` and `fit`, and the page Data.", Choices),
    "Simulated markets": ("`simulate`, and the page Data.", MarketPlan),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where to write."""
    parser.add_argument("--out", type=place, default=Path("docs/choices.md"), metavar="FILE", help="Markdown file.")


def run(arguments: argparse.Namespace) -> int:
    """Write the page."""
    arguments.out.write_text(page(), encoding="utf-8")
    return 0


def page() -> str:
    """The reference of all choices and settings."""
    lines = ["# Every choice", "", "Written by `python -m core reference` from the declarations that the form,"]
    lines += ["the command line and the manifest read too."]
    for title, (where, plan) in PLANS.items():
        lines += ["", f"## {title}", "", where, "", "| option | default | what it is |", "|---|---|---|", *_rows(plan)]
    lines += ["", "## Settings of an installation", "", "| variable | default | what it is |", "|---|---|---|"]
    lines += [_row(variable(f.name), f"{f.default} {f.metadata['unit']}", f.metadata["help"]) for f in fields(Settings)]
    return "\n".join(lines) + "\n"


def _rows(plan: type) -> Iterator[str]:
    for f, rule in declarations(plan):
        text = [rule.help.rstrip(".") + "."]
        text += [f"`{name}`: {sentence}" for name, sentence in (rule.choices or {}).items()]
        if rule.engines:
            text.append(f"Engine: {', '.join(rule.engines)}.")
        yield _row(option(f.name), f"{f.default} {rule.unit}", "<br>".join(text))


def _row(name: str, default: str, text: str) -> str:
    cells = (f"`{name}`", default.strip().replace("|", "\\|"), text.replace("|", "\\|"))
    return f"| {' | '.join(cells)} |"
