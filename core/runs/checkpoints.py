"""Keep the state of a run on disk so that it can go on bit for bit, and refuse whatever is not exactly that.

One npz a checkpoint: the engine's arrays, all losses so far, and a manifest with step, plan fingerprint, data sha256,
versions and a digest over every array. Written whole or not at all; the last two are kept.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from core.environment import package_versions
from core.errors import Problem, UserError
from core.inference.plan import FitPlan, plan_values
from core.runs.files import write_whole

KEPT = 2
FORMAT = 1
EXTENDABLE = ("steps", "max_iterations", "samples", "draws", "mass", "stop_at_plateau")
"""Choices that may differ between a checkpoint and the run that goes on from it: how far, and what is drawn after."""


@dataclass(frozen=True)
class Manifest:
    """What a checkpoint belongs to. Seconds are those of the run so far."""

    step: int
    fingerprint: str
    data: str
    """sha256 of the data set."""
    versions: Mapping[str, str]
    compile_seconds: float = 0.0
    run_seconds: float = 0.0
    format: int = FORMAT
    digest: str = ""


@dataclass(frozen=True)
class Checkpoint:
    """An engine's state after `manifest.step` steps, with the losses that led there."""

    manifest: Manifest
    state: Mapping[str, np.ndarray]
    losses: Float[np.ndarray, "step"]


def fingerprint(plan: FitPlan) -> str:
    """Digest of everything in the plan that decides the way of a fit, not how far it goes."""
    deciding = {name: value for name, value in plan_values(plan).items() if name not in EXTENDABLE}
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()


class Checkpoints:
    """The checkpoints of one run, in a folder of its own."""

    def __init__(self, folder: Path, plan: FitPlan, data: str):
        self._folder = folder
        self._fingerprint = fingerprint(plan)
        self._data = data

    def save(
        self,
        step: int,
        state: Mapping[str, np.ndarray],
        losses: Float[np.ndarray, "step"],
        compile_seconds: float = 0.0,
        run_seconds: float = 0.0,
    ) -> Path:
        """Write one and let go of all but the last two. Raises UserError where the disk does not take it."""
        arrays = {f"state/{name}": np.asarray(value) for name, value in state.items()} | {"losses": np.asarray(losses)}
        manifest = Manifest(
            step,
            self._fingerprint,
            self._data,
            package_versions(),
            compile_seconds,
            run_seconds,
            FORMAT,
            _digest(arrays),
        )
        told = np.frombuffer(json.dumps(asdict(manifest)).encode(), np.uint8)
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, manifest=told, **arrays)
        path = self._folder / f"step-{step:012d}.npz"
        write_whole(path, buffer.getvalue())
        # Later steps belong to a way that was not gone on with: they were refused, or this one would start from them.
        kept = [found for found in self._paths() if found <= path][:KEPT]
        for old in set(self._paths()) - set(kept):
            old.unlink(missing_ok=True)
        return path

    def latest(self) -> tuple[Checkpoint | None, tuple[str, ...]]:
        """The newest checkpoint that matches and verifies, and a sentence on each that was refused."""
        refused: list[str] = []
        for path in self._paths():
            try:
                return self.load(path), tuple(refused)
            except UserError as bad:
                refused += [f"{problem.what}. {problem.remedy}" for problem in bad.problems]
        return None, tuple(refused)

    def load(self, path: Path) -> Checkpoint:
        """Read one checkpoint. Raises UserError where it is damaged or belongs to another plan or data set."""
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files if name != "manifest"}
                manifest = Manifest(**json.loads(stored["manifest"].tobytes()))
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as bad:
            raise _refusal(path, "is damaged") from bad
        self._check(path, manifest, arrays)
        state = {name.removeprefix("state/"): value for name, value in arrays.items() if name != "losses"}
        return Checkpoint(manifest, state, arrays["losses"])

    def _check(self, path: Path, manifest: Manifest, arrays: Mapping[str, np.ndarray]) -> None:
        if manifest.format != FORMAT:
            raise _refusal(path, "was written by another version of Isoelastic")
        if manifest.fingerprint != self._fingerprint:
            raise _refusal(path, "belongs to another plan")
        if manifest.data != self._data:
            raise _refusal(path, "belongs to another data set")
        if "losses" not in arrays or manifest.digest != _digest(arrays):
            raise _refusal(path, "is damaged: its digest does not agree")

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("step-*.npz"), reverse=True)


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    found = hashlib.blake2b(digest_size=32)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {array.shape};".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def _refusal(path: Path, reason: str) -> UserError:
    return UserError(
        Problem(
            "checkpoint-refused",
            f"The checkpoint of step {int(path.stem.removeprefix('step-')):,} {reason}",
            "An earlier one, or the beginning, is used instead.",
        )
    )
