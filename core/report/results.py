"""Write what a fit found into a folder: tables, draws, manifest. Nothing is ever half written."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np

from core.data.sales import RowAccount
from core.inference.fit import Fit
from core.inference.plan import plan_to_dict
from core.posterior.posterior import Posterior
from core.report.exports import to_csv, to_parquet
from core.report.netcdf import write_posterior
from core.report.tables import elasticity_table

RESULT_FILES = ("elasticities.parquet", "elasticities.csv", "posterior.nc", "manifest.json")
"""In the order in which they appear: a folder with a manifest is complete."""
"""Files that compression hardly shrinks."""


def manifest(fit: Fit, account: RowAccount, name: str, sha256: str) -> dict[str, Any]:
    """What was fitted to what, where, how long it took and how it ended, as plain values for JSON."""
    timing = fit.timing
    return {
        "plan": plan_to_dict(fit.plan),
        "data": {
            "name": name,
            "sha256": sha256,
            "rows_read": account.read,
            "rows_used": account.used,
            "rows_left_out": dict(account.left_out),
        },
        "environment": asdict(fit.environment),
        "outcome": {
            "ending": fit.outcome.ending.name.lower(),
            "sentence": fit.outcome.sentence,
            "usable": fit.outcome.usable,
        },
        "timing": {
            "compile_seconds": timing.compile_seconds,
            "run_seconds": timing.run_seconds,
            "steps": timing.steps,
            "steps_per_second": timing.steps_per_second,
        },
        "diagnostics": single_diagnostics(fit),
    }


def single_diagnostics(fit: Fit) -> dict[str, Any]:
    """Diagnostics of a fit that are one number or text, or sentences: what of the result rests on priors."""
    return {
        name: _plain(value)
        for name, value in fit.diagnostics.items()
        if isinstance(value, str | Number | np.generic | tuple) or (isinstance(value, np.ndarray) and value.ndim == 0)
    }


def to_json(values: Mapping[str, Any]) -> str:
    """Indented JSON that every reader takes: numbers that are not finite become null."""
    return json.dumps(_plain(values), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write `values` as JSON to `path`; where the disk refuses, a file that was there stays. Raises OSError."""
    text = to_json(values)
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    partial = path.with_name(f".{path.name}.part")
    try:
        partial.write_text(text, encoding="utf-8")
        _move(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_result(
    folder: Path, posterior: Posterior, fit: Fit, account: RowAccount, name: str, sha256: str
) -> tuple[Path, ...]:
    """Write elasticities (Parquet and CSV), posterior.nc and manifest.json into `folder`; returns their paths.

    All are written into a temporary folder beside it first, then moved, the manifest last. Other files in `folder`
    stay. `name` and `sha256` are those of the sales file. Raises OSError when the disk refuses; then `folder` is as
    it was.
    """
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        table = elasticity_table(posterior)
        (beside / "elasticities.parquet").write_bytes(to_parquet(table))
        (beside / "elasticities.csv").write_bytes(to_csv(table))
        write_posterior(beside / "posterior.nc", posterior, fit)
        (beside / "manifest.json").write_text(to_json(manifest(fit, account, name, sha256)), encoding="utf-8")
        folder.mkdir(exist_ok=True)
        (folder / "manifest.json").unlink(missing_ok=True)
        return tuple(_move(beside / file, folder / file) for file in RESULT_FILES)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _move(source: Path, target: Path) -> Path:
    source.replace(target)
    return target


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
