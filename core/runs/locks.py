"""Tell who is alive and who holds a device, by locks that the operating system lets go when a process dies.

A lock on an open file survives neither `kill -9` nor a restart of the machine, and neither a reused process number nor
a clock set back can fake it.
"""

from __future__ import annotations

import errno
import logging
import os
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO
from uuid import uuid4

from core.errors import Problem, UserError
from core.runs.files import DATA_FOLDER

LOG = logging.getLogger(__name__)
TAKEN = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)
"""What systems answer where someone else holds the lock; any other answer means that there are no locks here."""
SIGN = "process-{}.lock"
BIRTH_SECONDS = 5.0
"""Time in which a process gets its sign of life although others, looking at it, hold it for moments."""

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
        """Take it without waiting; False where someone else, in this process or another, has it.

        Raises UserError where the file system knows no locks.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = self.path.open("ab")
        try:
            _take(file)
            # Whoever clears away after the dead may have removed the file between opening and locking it.
            there = os.path.samestat(os.fstat(file.fileno()), self.path.stat())
        except FileNotFoundError:
            there = False
        except OSError as bad:
            file.close()
            if bad.errno in TAKEN:
                return False
            raise _no_locks(self.path.parent, bad.strerror or type(bad).__name__) from bad
        if not there:
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
        self._be_born()

    def is_alive(self, process: str) -> bool:
        """Whether the process that wrote `process` into the store still runs."""
        if process == self.process:
            return True
        path = self._path(process)
        if not process or not path.exists():
            return False
        with FileLock(path) as lock:
            return not lock.acquire()

    def clear_dead(self) -> bool:
        """Remove the signs of processes that have died; whether none but this one is left."""
        alone = True
        for path in self._folder.glob(SIGN.format("*")):
            if path == self._own.path:
                continue
            with FileLock(path) as lock:
                if not lock.acquire():
                    alone = False
                    continue
                # A system that lets no one remove an open file keeps it: it then reads as dead, as before.
                with suppress(OSError):
                    path.unlink()
        return alone

    def _be_born(self) -> None:
        """Take the own sign, and see that a second hand cannot: some network folders grant every lock."""
        until = time.monotonic() + BIRTH_SECONDS
        while not self._own.acquire():
            if time.monotonic() > until:
                raise _no_locks(self._folder, "a new file is locked already")
            time.sleep(0.01)
        with FileLock(self._own.path) as second:
            if second.acquire():
                self.end()
                raise _no_locks(self._folder, "a lock is given twice")

    def end(self) -> None:
        """Give up the sign: what this process still had in hand counts as interrupted from now on."""
        self._own.release()
        self._own.path.unlink(missing_ok=True)

    def _path(self, process: str) -> Path:
        return self._folder / SIGN.format(process)


def _no_locks(folder: Path, why: str) -> UserError:
    LOG.warning("no locks in %s: %s", folder, why)
    return UserError(
        Problem(
            "no-locks",
            f"The file system of the data folder does not lock files ({why}), so no process can tell who is at work",
            "Put the data folder on a local disk: set ISOELASTIC_DATA_DIR.",
            where=DATA_FOLDER,
        )
    )


def device_lock(folder: Path, lane: str) -> FileLock:
    """The lock that lets one process at a time fit on a device."""
    return FileLock(folder / f"device-{lane}.lock")
