"""Turn declared fields into command-line options, and what was typed back into values, naming every slip at once."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import MISSING, Field
from typing import Any

from core.declare import Declared, declarations
from core.errors import Problem, UserError


def option(name: str) -> str:
    """The option of a declared field: `time_effects` is `--time-effects`."""
    return "--" + name.replace("_", "-")


def add_declared(parser: argparse.ArgumentParser, plan: type, leave_out: Iterable[str] = ()) -> None:
    """Give `parser` one option per declared field of `plan`, nested plans included, with the field's own help."""
    for f, rule in declarations(plan):
        if f.name in leave_out:
            continue
        settings: dict[str, Any] = {"default": None, "help": _help(f, rule), "dest": f.name}
        if isinstance(f.default, bool):
            settings["action"] = argparse.BooleanOptionalAction
        else:
            settings["metavar"] = "NAME" if rule.choices else type(f.default).__name__.upper()
        parser.add_argument(option(f.name), **settings)


def given_values(arguments: argparse.Namespace, plan: type) -> dict[str, Any]:
    """The declared values that were typed, converted to their types. Raises UserError naming every one that is not."""
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for f, _ in declarations(plan):
        text = getattr(arguments, f.name, None)
        if text is None:
            continue
        kind: type[Any] = type(f.default)
        try:
            values[f.name] = text if isinstance(text, kind) else kind(text)
        except ValueError:
            problems.append(
                Problem(
                    code="option-unreadable",
                    where=option(f.name),
                    what=f"'{text}' is not {_article(kind)}",
                    remedy=f"Give {_article(kind)}, as in {option(f.name)} {f.default}.",
                )
            )
    if problems:
        raise UserError(problems)
    return values


def _help(f: Field[Any], rule: Declared) -> str:
    text = rule.help if rule.help.endswith(".") else rule.help + "."
    if rule.choices:
        text += " " + " ".join(f"{name}: {sentence}" for name, sentence in rule.choices.items())
    if rule.engines:
        text += f" For {' and '.join(rule.engines)}."
    default = "" if f.default is MISSING else f" Default {f.default}{' ' + rule.unit if rule.unit else ''}."
    return (text + default).replace("%", "%%")


def _article(kind: type[Any]) -> str:
    return {int: "a whole number", float: "a number"}.get(kind, kind.__name__)
