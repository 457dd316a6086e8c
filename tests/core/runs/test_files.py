"""A name holds all of a file or does not exist; names from outside never become paths."""

import errno
import os
from pathlib import Path

import pytest

from core.errors import UserError
from core.runs.files import clear_leftovers, file_name, folder_bytes, write_whole
from core.runs.manager import RunManager
from core.settings import Settings


def test_a_written_file_is_whole_and_leaves_nothing_beside_it(tmp_path: Path):
    write_whole(tmp_path / "deep" / "a.bin", b"first")
    write_whole(tmp_path / "deep" / "a.bin", b"second")
    assert (tmp_path / "deep" / "a.bin").read_bytes() == b"second"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["a.bin"]


def test_two_who_write_the_same_name_at_once_leave_one_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first_sync = os.fsync

    def other_writes(handle: int) -> None:
        monkeypatch.setattr(os, "fsync", first_sync)
        write_whole(tmp_path / "a.bin", b"other")

    monkeypatch.setattr(os, "fsync", other_writes)
    write_whole(tmp_path / "a.bin", b"one")
    assert (tmp_path / "a.bin").read_bytes() == b"one"
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_a_full_disk_is_told_and_the_old_file_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_whole(tmp_path / "a.bin", b"good")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"disk of the data folder is full.*last checkpoint is kept"):
        write_whole(tmp_path / "a.bin", b"never")
    assert (tmp_path / "a.bin").read_bytes() == b"good"
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_what_a_killed_writer_left_is_cleared(tmp_path: Path):
    (tmp_path / "step-1.npz.123.part").write_bytes(b"half")
    (tmp_path / "step-0.npz").write_bytes(b"whole")
    clear_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["step-0.npz"]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("../../etc/passwd", "etc-passwd"),
        ("a\x00b\nc", "a-b-c"),
        ("..", "run"),
        ("Käse 2,5%", "Kase-2-5"),
        ("CON:\\x", "CON-x"),
        ("", "run"),
        ("x" * 500, "x" * 120),
    ],
)
def test_names_become_harmless_file_names(given: str, made: str):
    assert file_name(given) == made


def test_folder_bytes_adds_every_file(tmp_path: Path):
    write_whole(tmp_path / "a" / "b", b"12345")
    write_whole(tmp_path / "c", b"123")
    assert folder_bytes(tmp_path) == 8


def test_a_manager_alone_in_its_folder_clears_what_the_dead_left(settings: Settings):
    upload, part = settings.data_dir / "uploads" / "tmp1" / "upload.csv", settings.data_dir / "datasets" / "a.1.part"
    for path in (upload, part):
        path.parent.mkdir(parents=True)
        path.touch()
    fresh = settings.data_dir / "uploads" / "tmp2"
    fresh.mkdir()
    os.utime(upload.parent, (0, 0))
    first = RunManager(settings)
    assert not upload.parent.exists() and not part.exists() and fresh.exists()
    part.touch()
    RunManager(settings).close()
    assert part.exists()
    first.close()
