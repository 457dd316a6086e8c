"""What a number's provenance says of a machine; memory that has settled is not searched for garbage again, and none of
it is lost for good."""

from __future__ import annotations

import gc
import platform
import weakref

import pytest

from core.environment import MANY_OBJECTS, describe_environment, settle_memory


class Node:
    """Something that holds on to itself: only a search for garbage frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def thaw():
    yield
    gc.unfreeze()


def many() -> list[list[int]]:
    return [[] for _ in range(MANY_OBJECTS)]


def test_settled_objects_are_left_out_of_searches():
    kept = many()
    settle_memory()
    assert gc.get_freeze_count() >= len(kept)
    assert len(gc.get_objects()) < MANY_OBJECTS


def test_garbage_is_thrown_away_before_memory_settles():
    node, kept = Node(), many()
    gone = weakref.ref(node)
    del node
    settle_memory()
    assert gone() is None and kept


def test_what_becomes_garbage_after_it_has_settled_goes_at_a_later_call():
    node, kept = Node(), many()
    gone = weakref.ref(node)
    settle_memory()
    del node
    gc.collect()
    assert gone() is not None
    kept += many()
    settle_memory()
    assert gone() is None


def test_few_new_objects_are_not_worth_a_search():
    kept = many()
    settle_memory()
    frozen = gc.get_freeze_count()
    settle_memory()
    assert gc.get_freeze_count() == frozen and kept


def test_the_system_is_named_without_the_build_of_its_kernel():
    system = describe_environment(devices=()).system
    assert system == f"{platform.system()} {platform.machine()}"
    assert platform.release() not in system
