"""Turn declared fields into command-line options, and what was typed back into values, naming every slip at once."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field
from pathlib import Path
from typing import Any

from core.declare import Declared, declarations
from core.errors import Problem, UserError


def option(name: str) -> str:
    """The option of a declared field: `time_effects` is `--time-effects`."""
    return "--" + name.replace("_", "-")


def place(text: str) -> Path:
    """A file or folder named on the command line. An empty text would mean the current folder: argparse refuses it."""
    if not text.strip():
        raise argparse.ArgumentTypeError("an empty text names no place; name a file or folder ('.' is this folder)")
    return Path(text)


def add_declared(parser: argparse._ActionsContainer, plan: type, leave_out: Iterable[str] = ()) -> None:
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


def settled[T](arguments: argparse.Namespace, plan: type, make: Callable[..., T]) -> T:
    """What `make` makes of the declared values of `plan` that were typed.

    Raises UserError naming every value that cannot be read and everything that `make` refuses of the others.
    """
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for f, _ in declarations(plan):
        text = getattr(arguments, f.name, None)
        if text is None:
            continue
        with gathered(problems):
            values[f.name] = _converted(f, text)
    with gathered(problems):
        made = make(**values)
    if problems:
        raise UserError(problems)
    return made


@contextmanager
def gathered(problems: list[Problem]) -> Iterator[None]:
    """Add the problems of a UserError raised inside to `problems` instead of letting it out."""
    try:
        yield
    except UserError as error:
        problems.extend(error.problems)


def _converted(f: Field[Any], text: Any) -> Any:
    kind: type[Any] = type(f.default)
    try:
        return text if isinstance(text, kind) else kind(text)
    except ValueError:
        kinds = {int: "a whole number", float: "a number"}
        kind_name = kinds.get(kind, kind.__name__)
        raise UserError(
            Problem(
                code="option-unreadable",
                where=option(f.name),
                what=f"'{text}' is not {kind_name}",
                remedy=f"Give {kind_name}, as in {option(f.name)} {f.default}.",
            )
        ) from None


def _help(f: Field[Any], rule: Declared) -> str:
    text = rule.help if rule.help.endswith(".") else rule.help + "."
    if rule.choices:
        text += " " + " ".join(f"{name}: {sentence}" for name, sentence in rule.choices.items())
    if rule.engines:
        text += f" For {' and '.join(rule.engines)}."
    default = "" if f.default is MISSING else f" Default {f.default}{' ' + rule.unit if rule.unit else ''}."
    return (text + default).replace("%", "%%")
