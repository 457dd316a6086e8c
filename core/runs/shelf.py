"""Keep the last results and encoded markets that were asked for in memory: pages ask for them again and again."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.runs.datasets import DatasetStore
from core.runs.desk import result_path
from core.runs.prepare import Prepared, prepare
from core.runs.requests import RunResult
from core.runs.results import load_result, no_result
from core.runs.store import RunRow
from core.runs.values import to_text
from core.runs.views import request_of
from core.settings import Settings

RESULTS_KEPT = 3
MARKETS_KEPT = 2


class Shelf:
    """What was read last, longest unused first. Methods raise UserError where nothing can be read."""

    def __init__(self, settings: Settings, datasets: DatasetStore, guard: AbstractContextManager[Any]):
        self.results: OrderedDict[str, RunResult] = OrderedDict()
        self.markets: OrderedDict[str, Prepared] = OrderedDict()
        self._settings = settings
        self._datasets = datasets
        self._guard = guard

    def result(self, row: RunRow) -> RunResult:
        """The kept result of a run, under the name it has now."""
        if not row.usable:
            raise no_result(row)
        path = result_path(self._settings, row.id)
        # A run that went on has another file: the time of writing tells them apart, whichever process wrote it.
        key = f"{row.id} {_written(path)}"
        with self._guard:
            known = self.results.get(key)
        loaded = known or load_result(path)
        self._remember(self.results, key, loaded, RESULTS_KEPT)
        return replace(loaded, name=row.name)

    def market(self, row: RunRow) -> Prepared:
        """Sales, panel and labels that a run read, encoded again from the kept data set."""
        request = request_of(row.request)
        key = to_text((request.dataset_id, request.roles, request.choices, request.products))
        with self._guard:
            if key in self.markets:
                self.markets.move_to_end(key)
                return self.markets[key]
        made = prepare(self._datasets, request, lambda phase: None)
        self._remember(self.markets, key, made, MARKETS_KEPT)
        return made

    def forget(self, run_id: str) -> None:
        """Keep no result of a run."""
        with self._guard:
            for key in [key for key in self.results if key.startswith(f"{run_id} ")]:
                del self.results[key]

    def _remember(self, shelf: OrderedDict[str, Any], key: str, value: Any, most: int) -> None:
        with self._guard:
            shelf[key] = value
            shelf.move_to_end(key)
            while len(shelf) > most:
                shelf.popitem(last=False)


def _written(path: Path) -> int:
    """When a file was written, in ns; 0 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
