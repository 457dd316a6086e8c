"""Tell who is alive and who holds a device, by locks that the operating system lets go when a process dies.

A lock on an open file survives neither `kill -9` nor a restart of the machine, and neither a reused process number nor
a clock set back can fake it.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import IO
from uuid import uuid4

if os.name == "nt":
    import msvcrt

    def _take(file: IO[bytes]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
else:
    import fcntl

    def _take(file: IO[bytes]) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


class FileLock:
    """An exclusive lock on a file; held until `release` or the end of the process."""

    def __init__(self, path: Path):
        self.path = path
        self._file: IO[bytes] | None = None

    def acquire(self) -> bool:
        """Take it without waiting; False where someone else, in this process or another, has it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = self.path.open("ab")
        try:
            _take(file)
        except OSError:
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


class Liveness:
    """This process's sign of life in the folder `locks`, and a look at the signs of others."""

    def __init__(self, folder: Path):
        self._folder = folder
        self.process = f"{os.getpid()}-{uuid4().hex[:12]}"
        self._own = FileLock(self._path(self.process))
        self._own.acquire()

    def is_alive(self, process: str) -> bool:
        """Whether the process that wrote `process` into the store still runs."""
        if process == self.process:
            return True
        path = self._path(process)
        if not process or not path.exists():
            return False
        with FileLock(path) as lock:
            return not lock.acquire()

    def end(self) -> None:
        """Give up the sign: what this process still had in hand counts as interrupted from now on."""
        self._own.release()
        self._own.path.unlink(missing_ok=True)

    def _path(self, process: str) -> Path:
        return self._folder / f"process-{process}.lock"


def device_lock(folder: Path, lane: str) -> FileLock:
    """The lock that lets one process at a time fit on a device."""
    return FileLock(folder / f"device-{lane}.lock")
