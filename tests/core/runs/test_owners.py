"""Who sees which runs and data sets, who may change them, and whose turn it is."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.data.source import Source
from core.errors import UserError
from core.inference.plan import plan_with
from core.runs.manager import RunManager
from core.runs.requests import RunRequest
from tests.core.runs.conftest import PLAN, finish, small_source
from tests.core.runs.engine import Gate, Walk


def test_people_take_turns(manager: RunManager, walk: Walk, request_for: RunRequest):
    gate = Gate(walk, 10)
    manager.submit(replace(request_for, owner="ann"))
    gate.wait()
    ann = [manager.submit(replace(request_for, owner="ann", plan=plan_with(PLAN, seed=n))) for n in (1, 2)]
    bob = manager.submit(replace(request_for, owner="bob", plan=plan_with(PLAN, seed=3)))
    assert manager.snapshot(bob).queue_position == 1
    gate.open()
    for run_id in (*ann, bob):
        finish(manager, run_id)
    assert [plan.seed for plan in walk.fits] == [0, 3, 1, 2]


def test_a_discarded_run_shows_its_data_to_nobody(manager: RunManager, request_for: RunRequest):
    private = manager.datasets.add(small_source(seed=1), owner="ann")
    run_id = manager.submit(replace(request_for, dataset_id=private, owner="ann"))
    finish(manager, run_id)
    manager.discard(run_id)
    with pytest.raises(UserError, match="no data set"):
        manager.datasets.info(private, "bob")


def test_hidden_runs_do_not_exist_for_others(manager: RunManager, request_for: RunRequest):
    run_id = manager.submit(replace(request_for, owner="ann", shared=False))
    finish(manager, run_id)
    assert [run.run_id for run in manager.runs("ann")] == [run_id]
    assert manager.runs("bob") == ()
    asks: list[Callable[..., object]] = [
        manager.snapshot,
        manager.result,
        manager.market,
        manager.stop,
        manager.discard,
    ]
    for ask in asks:
        with pytest.raises(UserError, match="There is no run"):
            ask(run_id, viewer="bob")
    manager.share(run_id, True, viewer="ann")
    assert manager.snapshot(run_id, viewer="bob").usable
    with pytest.raises(UserError, match="belongs to someone else"):
        manager.discard(run_id, viewer="bob")


def test_one_data_set_is_kept_once_and_guards_its_runs(manager: RunManager, request_for: RunRequest):
    assert manager.datasets.add(small_source()) == request_for.dataset_id
    other = manager.datasets.add(small_source(seed=1))
    assert [info.id for info in manager.datasets.list()] == [other, request_for.dataset_id]
    finish(manager, manager.submit(request_for))
    with pytest.raises(UserError, match="1 runs use this data set"):
        manager.datasets.delete(request_for.dataset_id)
    manager.datasets.delete(other)
    assert len(manager.datasets.list()) == 1


def test_data_sets_are_seen_by_owners_and_by_those_who_see_their_runs(
    manager: RunManager, request_for: RunRequest, source: Source
):
    other = small_source(seed=1)
    private = manager.datasets.add(other, owner="ann")
    assert [info.id for info in manager.datasets.list("ann")] == [private, source.sha256]
    assert [info.id for info in manager.datasets.list("bob")] == [source.sha256]
    with pytest.raises(UserError, match="no data set"):
        manager.datasets.info(private, "bob")
    run_id = manager.submit(replace(request_for, dataset_id=private, owner="ann"))
    assert manager.datasets.info(private, "bob").name == "small market"
    manager.share(run_id, False)
    assert [info.id for info in manager.datasets.list("bob")] == [source.sha256]
    manager.datasets.add(other, owner="bob")
    assert manager.datasets.info(private, "bob").id == private, "both uploaded the same file"
    finish(manager, run_id)
