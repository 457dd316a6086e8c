"""Say who may see and who may change a run. Without access control (`viewer` None) everybody may."""

from __future__ import annotations

from typing import Protocol

from core.errors import Problem, UserError
from core.runs.store import unknown_run


class Owned(Protocol):
    """A run with an owner, as a row, a line or a snapshot."""

    @property
    def owner(self) -> str: ...

    @property
    def shared(self) -> bool: ...


def sees(run: Owned, viewer: str | None) -> bool:
    """Whether `viewer` may see the run: its owner, anyone where it is shared, anyone where it has no owner."""
    return viewer is None or run.shared or run.owner in ("", viewer)


def changes(run: Owned, viewer: str | None) -> bool:
    """Whether `viewer` may stop, rename or delete the run: its owner, or anyone where it has none."""
    return viewer is None or run.owner in ("", viewer)


def require_seen[Run: Owned](run: Run, viewer: str | None) -> Run:
    """The run, or the same UserError as for one that does not exist: what is hidden does not even show that it is."""
    if not sees(run, viewer):
        raise unknown_run(str(getattr(run, "id", None) or getattr(run, "run_id", "")))
    return run


def require_changes[Run: Owned](run: Run, viewer: str | None) -> Run:
    """The run, or UserError where it belongs to someone else."""
    if not changes(run, viewer):
        raise UserError(
            Problem(
                "run-not-yours", "This run belongs to someone else", "Ask its owner, or start your own.", where="run"
            )
        )
    return run
