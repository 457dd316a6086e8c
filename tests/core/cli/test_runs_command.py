"""Commands on stored runs that no fit is needed for."""

import sys

import pytest

from core.cli import main
from core.runs.snapshots import RunState
from core.runs.store import RunStore


@pytest.fixture
def store(tmp_path, monkeypatch) -> RunStore:
    """A store with one finished run, 'old', whose plan no present version reads."""
    monkeypatch.setenv("ISOELASTIC_DATA_DIR", str(tmp_path))
    store = RunStore(tmp_path / "store.sqlite")
    store.add(
        id="0123456789ab", name="old", owner="", dataset_id="d", request="null", state=RunState.FINISHED,
        process="", lane="cpu", created=0.0, steps_total=10,
    )  # fmt: skip
    return store


@pytest.mark.parametrize(("answer", "left"), [("n", 1), ("", 1), (EOFError, 1), ("y", 0)])
def test_delete_asks_on_a_terminal(store, monkeypatch, answer, left):
    def asked(question: str) -> str:
        assert question == "Delete 'old' and everything it found? [y/N] "
        if answer is EOFError:
            raise EOFError
        return answer

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", asked)
    assert main(["runs", "delete", "0123456789ab"]) == 0
    assert len(store.rows()) == left


def test_delete_without_a_terminal_does_what_it_is_told(store, monkeypatch):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    assert main(["runs", "delete", "0123456789ab"]) == 0
    assert store.rows() == ()
    assert main(["runs", "delete", "0123456789ab"]) == 2
