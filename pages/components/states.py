"""Give every state of a run its badge, the same on every page."""

from __future__ import annotations

from core.runs.requests import RunSummary
from core.runs.snapshots import RunSnapshot, RunState

BADGES: dict[RunState, tuple[str, str]] = {
    RunState.QUEUED: ("gray", "hourglass_empty"),
    RunState.COMPILING: ("blue", "build"),
    RunState.RUNNING: ("blue", "play_circle"),
    RunState.DRAWING: ("blue", "casino"),
    RunState.PAUSED: ("orange", "pause_circle"),
    RunState.FINISHED: ("green", "check_circle"),
    RunState.STOPPED: ("orange", "stop_circle"),
    RunState.FAILED: ("red", "error"),
    RunState.INTERRUPTED: ("orange", "power_off"),
    RunState.DISCARDED: ("gray", "delete"),
}


def state_badge(run: RunSnapshot | RunSummary) -> str:
    """The state as a coloured badge in Markdown."""
    color, icon = BADGES[run.state]
    return f":{color}-badge[:material/{icon}: {run.state.value.capitalize()}]"
