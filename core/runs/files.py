"""Put bytes on disk so that a name either holds all of them or does not exist, and turn disk errors into sentences."""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from core.errors import Problem, UserError
from core.words import LONGEST_NAME

LOG = logging.getLogger(__name__)
TEMPORARY = ".part"
UPLOAD_SECONDS = 3_600.0
"""Age from which on nobody reads an upload any more: this process may be taking one before it first looks around."""
FULL = (errno.ENOSPC, errno.EDQUOT)


def write_whole(path: Path, content: bytes) -> None:
    """Write, sync, rename. Raises UserError where the disk is full or does not allow it; `path` is then untouched."""
    # A name for this call alone: two threads may keep the same data set at once.
    temporary = path.with_name(f"{path.name}.{uuid4().hex}{TEMPORARY}")
    with disk_errors(path.parent):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            _sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Raise UserError for an OSError inside, saying what happened to the disk and what to do."""
    try:
        yield
    except OSError as bad:
        LOG.warning("disk trouble in %s: %s", folder, bad.strerror or type(bad).__name__)
        raise UserError(_told(bad)) from bad


DATA_FOLDER = "data folder"
"""How problems name it: where it lies is for the server's log, not for visitors."""


def _told(bad: OSError) -> Problem:
    if bad.errno in FULL:
        return Problem(
            "disk-full",
            "The disk of the data folder is full",
            "Free space or delete runs you no longer need, then resume the run: its last checkpoint is kept.",
            where=DATA_FOLDER,
        )
    return Problem(
        "disk-error",
        f"The data folder cannot be used: {bad.strerror or type(bad).__name__}",
        "Check that the folder exists and may be written, then try again.",
        where=DATA_FOLDER,
    )


def clear_leftovers(folder: Path) -> None:
    """Remove what a process that died while writing has left; only for folders that no live process writes to."""
    for path in folder.rglob(f"*{TEMPORARY}"):
        path.unlink(missing_ok=True)


def clear_uploads(folder: Path) -> None:
    """Remove the temporary copies in `folder` of uploads that a process which died was reading."""
    if folder.is_dir():
        for path in folder.iterdir():
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > UPLOAD_SECONDS:
                    shutil.rmtree(path)


def file_name(text: str, fallback: str = "run") -> str:
    """`text` as the stem of a file name: letters, digits, dash, dot and underscore; never a path, never hidden."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-._")[:LONGEST_NAME] or fallback


def folder_bytes(folder: Path) -> int:
    """Disk space that the files under `folder` take, in bytes."""
    total = 0
    for path in folder.rglob("*"):
        # Another process may remove a file between the listing and the look.
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
