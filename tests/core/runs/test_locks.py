"""Locks tell the living from the dead, across processes."""

import subprocess
import sys
from pathlib import Path

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
