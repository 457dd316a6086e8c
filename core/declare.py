"""Declare a choice once: the form, the command line, the docs, the manifest and the tests all read it from here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from math import isfinite
from typing import Any


@dataclass(frozen=True)
class Declared:
    """What is known about one field of a plan. `choices` maps each allowed value to a sentence on when to use it."""

    label: str
    help: str
    unit: str = ""
    choices: Mapping[str, str] | None = None
    low: float | None = None
    high: float | None = None
    engines: tuple[str, ...] = ()
    """Engines to which the field applies; empty: all."""
    advanced: bool = False


def declared(default: Any, label: str, help: str, **more: Any) -> Any:
    """A dataclass field with its declaration. Keywords are those of `Declared`."""
    return field(default=default, metadata={"declared": Declared(label, help, **more)})


def declarations(plan: Any) -> Iterator[tuple[Field[Any], Declared]]:
    """Every declared field of a plan class or value, nested plans included, depth first."""
    for f in fields(plan):
        if "declared" in f.metadata:
            yield f, f.metadata["declared"]
        elif f.default_factory is not None and is_dataclass(f.default_factory):
            yield from declarations(f.default_factory)


def violations(value: Any) -> list[str]:
    """Sentences on every declared field of `value` that holds something it must not; names what would do."""
    found = []
    for f in fields(value):
        rule: Declared | None = f.metadata.get("declared")
        if rule is None:
            continue
        given = getattr(value, f.name)
        if rule.choices is not None and given not in rule.choices:
            found.append(f"{f.name}={given!r} is not one of {', '.join(rule.choices)}")
        elif isinstance(given, float) and not isfinite(given):
            found.append(f"{f.name}={given} is not a finite number")
        elif rule.low is not None and given < rule.low:
            found.append(f"{f.name}={given} is below {rule.low:g} {rule.unit}".rstrip())
        elif rule.high is not None and given > rule.high:
            found.append(f"{f.name}={given} is above {rule.high:g} {rule.unit}".rstrip())
    return found
