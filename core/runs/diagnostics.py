"""Bundle what a bug report needs: versions, devices, settings, states of runs, last log lines; no data values."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import asdict
from typing import Any

from core.environment import describe_environment, free_memory_bytes
from core.errors import UserError
from core.runs.files import folder_bytes
from core.runs.manager import RunManager
from core.runs.schema import VERSION

LINES = 2_000
DEVICES_UNKNOWN = ("not asked: asking starts every backend",)


def diagnostics_bundle(manager: RunManager, viewer: str | None = None, devices: tuple[str, ...] | None = None) -> bytes:
    """A zip of texts. `devices`: names of devices where they are known; they are not looked for here."""
    about = {
        "environment": asdict(describe_environment(devices or DEVICES_UNKNOWN)),
        "free memory, bytes": free_memory_bytes(),
        "data folder, bytes": folder_bytes(manager.settings.data_dir),
        "settings": {name: _plain(value) for name, value in asdict(manager.settings).items() if name != "data_dir"},
        "store version": VERSION,
        "runs": _runs(manager, viewer),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("about.json", json.dumps(about, indent=2, default=str))
        bundle.writestr("events.log", "\n".join(manager.log.tail(LINES)) + "\n")
    return buffer.getvalue()


def _runs(manager: RunManager, viewer: str | None) -> list[dict[str, Any]] | str:
    """Runs without their names, notes and data: those are a person's words."""
    try:
        runs = manager.runs(viewer)
    except UserError as bad:
        return str(bad)
    return [
        {
            "run": run.run_id,
            "state": run.state.value,
            "plan": run.plan_line,
            "steps": f"{run.steps_done} of {run.steps_total}",
            "seconds": round(run.seconds, 1),
        }
        for run in runs
    ]


def _plain(value: object) -> object:
    return value if isinstance(value, int | float) else str(value)
