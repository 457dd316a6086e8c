"""Work with the run store from a terminal: the same runs that the dashboard shows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from core.cli.progress import interrupts, say_outcome
from core.cli.status import DONE, INTERRUPTED, UNUSABLE
from core.report import wording
from core.report.results import write_result
from core.runs.compiled import keep_compiled
from core.runs.manager import RunManager
from core.runs.snapshots import RunSnapshot, RunState
from core.settings import load_settings

LOOK_SECONDS = 0.5


@contextmanager
def manager() -> Iterator[RunManager]:
    """The run store of the settings' data folder; runs that others left in the queue stay theirs."""
    settings = load_settings()
    keep_compiled(settings)
    with closing(RunManager(settings, adopt=False)) as opened:
        yield opened


def follow(runs: RunManager, run_id: str) -> int:
    """Tell on stderr how a run goes until it has ended; the first Ctrl-C stops it and keeps what there is."""
    teller = Teller()
    with interrupts() as asked:
        ended = runs.wait(run_id, LOOK_SECONDS, teller)
        while ended.state.active:
            if asked:
                runs.stop(run_id)
            ended = runs.wait(run_id, LOOK_SECONDS, teller)
    say_outcome(ended.outcome)
    if not ended.usable:
        return UNUSABLE
    return INTERRUPTED if ended.state is RunState.STOPPED else DONE


def export(runs: RunManager, run_id: str, folder: Path) -> None:
    """Write the kept result of a run: elasticities, posterior draws, manifest."""
    result = runs.result(run_id)
    write_result(folder, result.posterior, result.fit, result.account, result.dataset_name, result.dataset_id)
    print(f"written to {folder}", file=sys.stderr)


class Teller:
    """Prints a line when the phase changes, and every tenth of the way."""

    def __init__(self) -> None:
        self._told: tuple[str, int] = ("", 0)

    def __call__(self, now: RunSnapshot) -> None:
        mark = (now.phase or now.state.value, int(10 * now.share_done))
        if mark == self._told:
            return
        self._told = mark
        told = [mark[0], f"step {now.steps_done:,}" if now.steps_done else "", wording.seconds(now.elapsed)]
        told.insert(2, f"loss {wording.loss(now.loss)} nats per observation" if now.loss is not None else "")
        print(", ".join(part for part in told if part), file=sys.stderr, flush=True)
