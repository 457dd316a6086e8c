"""Write one line per event of a run to a file; names of runs and values of data never get in."""

from __future__ import annotations

import logging
import time
import traceback
from _thread import get_ident
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LARGEST = 5_000_000
"""Bytes after which the log starts anew; one older file is kept."""


class EventLog:
    """Lines such as `2026-11-30T12:00:00Z run=3f2a event=finished steps=2000`."""

    def __init__(self, path: Path):
        self._path = path

    def write(self, event: str, run_id: str = "-", **facts: object) -> None:
        """Add a line. A log that cannot be written stops nothing."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        told = "".join(f" {name}={_one_word(value)}" for name, value in facts.items())
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._turn_over()
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{stamp} run={run_id} event={event}{told}\n")
        except OSError:
            return

    def failure(self, run_id: str, error: BaseException) -> None:
        """A line on an unforeseen error: its kind and where it arose. Its message may quote data and stays out."""
        self.write("raised", run_id, kind=type(error).__name__, at=">".join(_places(error)))

    def tail(self, lines: int) -> list[str]:
        """The last lines, oldest first."""
        try:
            return self._path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
        except OSError:
            return []

    def _turn_over(self) -> None:
        if self._path.exists() and self._path.stat().st_size > LARGEST:
            self._path.replace(self._path.with_suffix(".old"))


class _Listener(logging.Handler):
    """Writes what one thread of ours logs with a traceback: an engine ends in an outcome and logs why."""

    def __init__(self, log: EventLog, run_id: str):
        super().__init__(logging.WARNING)
        self._log, self._run_id, self._thread = log, run_id, get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread and record.exc_info and record.exc_info[1] is not None:
            self._log.failure(self._run_id, record.exc_info[1])


@contextmanager
def failures_logged(log: EventLog, run_id: str) -> Iterator[None]:
    """Put errors that an engine catches in this thread into the log of events."""
    listener = _Listener(log, run_id)
    logger = logging.getLogger("core")
    logger.addHandler(listener)
    try:
        yield
    finally:
        logger.removeHandler(listener)


def _places(error: BaseException) -> list[str]:
    return [
        f"{Path(frame.filename).parent.name}/{Path(frame.filename).name}:{frame.lineno}:{frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]


def _one_word(value: object) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return "_".join(text.split()) or "-"
