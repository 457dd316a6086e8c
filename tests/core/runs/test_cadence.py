"""Checkpoints come as often as asked, unless they would cost a run more than 2 % of its time."""

import pytest

from core.runs.cadence import SHARE, Cadence

CHUNK = 0.25


class Clock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def run_for(seconds: float, gap: float, cost: float) -> tuple[list[float], float]:
    """A run whose checkpoints cost `cost` seconds each: when they began, and the share of its time that they took."""
    clock, begun = Clock(), list[float]()
    start, cadence = clock(), Cadence(gap, clock)
    while clock() - start < seconds:
        clock.now += CHUNK
        if cadence.due():
            begun.append(clock() - start)
            with cadence.counted():
                clock.now += cost
    return begun, len(begun) * cost / (clock() - start)


def test_cheap_checkpoints_come_at_the_gap():
    begun, share = run_for(300.0, gap=30.0, cost=0.05)
    assert len(begun) == 9
    assert begun[0] == pytest.approx(30.0)
    assert share < SHARE / 10


@pytest.mark.parametrize("cost", [0.7, 3.0, 20.0])
def test_dear_checkpoints_come_so_rarely_that_they_take_two_per_cent(cost: float):
    seconds = 100 * cost / SHARE
    begun, share = run_for(seconds, gap=30.0, cost=cost)
    assert len(begun) > 50
    assert 0.9 * SHARE < share <= SHARE


def test_the_first_dear_one_is_paid_back_before_the_second():
    begun, _ = run_for(1_000.0, gap=30.0, cost=5.0)
    assert begun[:2] == pytest.approx([30.0, 2 * 5.0 / SHARE], abs=CHUNK)


def test_no_gap_means_after_every_chunk_whatever_it_costs():
    begun, share = run_for(10.0, gap=0.0, cost=1.0)
    assert len(begun) == 8
    assert share == pytest.approx(0.8)


def test_one_that_fails_counts_too():
    clock = Clock()
    cadence = Cadence(30.0, clock)
    clock.now += 30.0
    assert cadence.due()
    with pytest.raises(OSError), cadence.counted():
        clock.now += 2.0
        raise OSError
    assert (cadence.last, cadence.due()) == (2.0, False)
