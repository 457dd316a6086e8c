"""Locks tell the living from the dead, across processes."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import UserError
from core.runs.locks import FileLock, Liveness, device_lock

HOLD = """
import sys
from pathlib import Path
from core.runs.locks import Liveness, device_lock
alive = Liveness(Path(sys.argv[1]))
device = device_lock(Path(sys.argv[1]), "cpu")
assert device.acquire()
print(alive.process, flush=True)
sys.stdin.read()
"""


def test_a_lock_is_held_once_and_can_be_taken_after_release(tmp_path: Path):
    first, second = FileLock(tmp_path / "l"), FileLock(tmp_path / "l")
    assert first.acquire()
    assert not second.acquire()
    first.release()
    assert second.acquire()
    second.release()


def test_a_killed_process_is_dead_and_its_device_free(tmp_path: Path):
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        process = other.stdout.readline().strip()
        mine = Liveness(tmp_path)
        lock = device_lock(tmp_path, "cpu")
        assert mine.is_alive(process)
        assert not lock.acquire()
    finally:
        other.kill()
        other.wait()
    assert not mine.is_alive(process)
    assert lock.acquire()
    lock.release()


def test_a_process_that_ended_cleanly_is_dead(tmp_path: Path):
    first, second = Liveness(tmp_path), Liveness(tmp_path)
    assert second.is_alive(first.process) and second.is_alive(second.process)
    first.end()
    assert not second.is_alive(first.process)
    assert not second.is_alive("")


def test_a_file_system_without_locks_is_said_to_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("core.runs.locks._take", refuse)
    with pytest.raises(UserError, match="does not lock files"):
        FileLock(tmp_path / "l").acquire()


def test_a_file_system_that_gives_a_lock_twice_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("core.runs.locks._take", lambda file: None)
    with pytest.raises(UserError, match="given twice"):
        Liveness(tmp_path)
    assert not list(tmp_path.iterdir())


def test_signs_of_the_dead_are_cleared_and_those_of_the_living_kept(tmp_path: Path):
    (tmp_path / "process-1-abc.lock").touch()
    first = Liveness(tmp_path)
    assert first.clear_dead()
    second = Liveness(tmp_path)
    assert not second.clear_dead()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(f"process-{x.process}.lock" for x in (first, second))
    assert second.is_alive(first.process) and first.is_alive(second.process)


def test_a_lock_on_a_file_that_was_removed_meanwhile_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "l"
    monkeypatch.setattr("core.runs.locks._take", lambda file: path.unlink())
    assert not FileLock(path).acquire()
