"""Limits and paths of an installation, each declared once with unit and help, overridable by environment."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from core.errors import Problem, UserError

PREFIX = "ISOELASTIC_"


def _setting(default: Any, help: str, unit: str = "") -> Any:
    return field(default=default, metadata={"help": help, "unit": unit})


@dataclass(frozen=True)
class Settings:
    """What one installation allows. `ISOELASTIC_DATA_DIR`, `ISOELASTIC_UPLOAD_MB`, ... override the defaults."""

    data_dir: Path = _setting(Path(".isoelastic"), "Folder of data sets, runs and checkpoints")
    upload_mb: int = _setting(500, "Largest file that may be uploaded", "MB")
    max_rows: int = _setting(200_000_000, "Most rows a data set may have", "rows")
    max_columns: int = _setting(500, "Most columns a file may have", "columns")
    max_draws: int = _setting(4_000, "Most posterior draws a fit may keep", "draws")
    max_queued: int = _setting(20, "Most runs that may wait or run at once", "runs")
    quota_gb: float = _setting(50.0, "Disk space that data sets and runs may take together", "GB")
    memory_share: float = _setting(0.8, "Share of the free memory that one fit may ask for", "share")
    checkpoint_seconds: float = _setting(30.0, "Least time between two checkpoints of a run; 0: after every chunk", "s")
    benchmark_minutes: int = _setting(
        180, "Longest time that a benchmark or race started on a page may take; 0: none can be started", "minutes"
    )


KINDS = {int: "a whole number of 0 or more", float: "a number of 0 or more", Path: "a path"}


def _lawful(value: Any) -> Any:
    """The value itself. Raises ValueError for a number below zero or without end."""
    if not isinstance(value, Path) and not 0 <= value < math.inf:
        raise ValueError(value)
    return value


def variable(name: str) -> str:
    """Name of the environment variable that overrides setting `name`."""
    return PREFIX + name.upper()


def load_settings(environ: dict[str, str] | None = None) -> Settings:
    """Read the settings from defaults and environment. Raises UserError naming every value that does not parse."""
    environ = dict(os.environ) if environ is None else environ
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for declared in fields(Settings):
        text = environ.get(variable(declared.name))
        if text is None:
            continue
        kind: type[Any] = type(declared.default)
        try:
            values[declared.name] = _lawful(kind(text))
        except ValueError:
            problems.append(
                Problem(
                    code="setting-unreadable",
                    where=variable(declared.name),
                    what=f"'{text}' is not {KINDS[kind]}",
                    remedy=f"Give {declared.metadata['help'].lower()} as {KINDS[kind]}, as in {declared.default}.",
                )
            )
    if problems:
        raise UserError(problems)
    return Settings(**values)
