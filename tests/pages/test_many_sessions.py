"""Twenty people at one server while three fits queue: nothing is lost, nobody sees another's data, the log is clean.

Sessions speak the dashboard's own websocket protocol; no browser draws what they are sent. Between two clicks a person
thinks 1 to 5 seconds; `THINK_SECONDS=0-1` in the environment makes them hectic.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from core.data.markets import market_source
from core.runs.manager import RunManager
from core.settings import Settings
from core.simulation import MarketPlan, simulate
from tests.browser.conftest import Server, start_server

pytestmark = pytest.mark.slow

SESSIONS, FITS, SEED = 20, 3, 7
CLICKING_SECONDS = 30
THINKS = tuple(map(float, os.environ.get("THINK_SECONDS", "1-5").split("-")))
START, MOST_LOOKS = "Fit with the defaults", 5
ANSWER_SECONDS = 120
"""How long one answer may take on a loaded machine before something must have hung."""
FIT_SECONDS = 300
PAGES = ("data", "model", "elasticities", "runs", "timings")
HARMLESS = re.compile(r"Defaults|The article's recipe|Choose the model|New fit|See the elasticities|Dismiss")


@dataclass
class Session:
    """One tab: what it was last shown, and how long each answer took (seconds)."""

    socket: websockets.ClientConnection
    data: str
    """Its data set, and the name that must be the only one it is shown."""
    name: str
    query: str = ""
    page: str = ""
    pages: dict[str, str] = field(default_factory=dict)
    buttons: dict[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)

    async def ask(self, page: str | None = None, button: str = "") -> None:
        """Run the page, with a button pressed if one is named, and take in all of the answer."""
        message = BackMsg()
        client = message.rerun_script
        client.query_string = self.query or f"data={self.data[:12]}"
        client.page_script_hash = self.page if page is None else self.pages[page]
        if button:
            pressed = client.widget_states.widgets.add()
            pressed.id, pressed.trigger_value = button, True
        self.texts, self.buttons, sent = [], {}, time.monotonic()
        await self.socket.send(message.SerializeToString())
        async with asyncio.timeout(ANSWER_SECONDS):
            while not self._take(ForwardMsg.FromString(await self.socket.recv())):
                pass
        self.waited.append(time.monotonic() - sent)

    def _take(self, told: ForwardMsg) -> bool:
        kind = told.WhichOneof("type")
        if kind == "navigation":
            self.pages = {page.url_pathname or "data": page.page_script_hash for page in told.navigation.app_pages}
            self.page = told.navigation.page_script_hash
        elif kind == "page_info_changed":
            self.query = told.page_info_changed.query_string
        elif kind == "delta" and told.delta.WhichOneof("type") == "new_element":
            element = told.delta.new_element
            if element.WhichOneof("type") == "button" and not element.button.disabled:
                self.buttons[element.button.label] = element.button.id
            elif element.WhichOneof("type") in ("markdown", "alert"):
                self.texts.append(getattr(element, element.WhichOneof("type")).body)
        # A page that sends its reader to another one, or runs again, finishes more than once.
        return kind == "script_finished" and told.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY

    def require_own_data(self, names: list[str]) -> None:
        said = "\n".join(self.texts).replace("\\", "")
        assert f"**{self.name}**" in said, (self.name, said[:500])
        assert not [name for name in names if f"**{name}**" in said and name != self.name]
        assert "Something went wrong" not in said

    async def start_fit(self) -> None:
        for _ in range(MOST_LOOKS):
            if START in self.buttons:
                return await self.ask(button=self.buttons[START])
            await self.ask()
        raise AssertionError((list(self.buttons), self.texts))

    async def click_at_random(self, rng: random.Random, until: float, data: dict[str, str]) -> None:
        names = list(data.values())
        while time.monotonic() < until:
            had_run = "run=" in self.query
            safe = [button for label, button in self.buttons.items() if HARMLESS.search(label)]
            if safe and rng.random() < 0.4:
                await self.ask(button=rng.choice(safe))
            else:
                await self.ask(page=rng.choice([page for page in PAGES if page in self.pages]))
            self.require_own_data(names)
            if not had_run and "run=" in self.query:
                # The page of elasticities led to a finished run: of its own data, or of others while those have none.
                self.name = next(name for key, name in data.items() if f"data={key[:12]}" in self.query)
            await asyncio.sleep(rng.uniform(*THINKS))


async def everybody(server: Server, data: dict[str, str]) -> list[Session]:
    address = server.address.replace("http", "ws") + "/_stcore/stream"
    names = list(data.values())

    async def one(number: int) -> Session:
        dataset, name = list(data.items())[number % len(data)]
        async with websockets.connect(
            address, subprotocols=[websockets.Subprotocol("streamlit")], max_size=None, origin=server.address
        ) as socket:
            session = Session(socket, dataset, name)
            await session.ask()
            session.require_own_data(names)
            if number < FITS:
                await session.start_fit()
            await session.click_at_random(random.Random(SEED + number), time.monotonic() + CLICKING_SECONDS, data)
            return session

    return await asyncio.gather(*(one(number) for number in range(SESSIONS)))


@pytest.fixture
def server(tmp_path: Path):
    running = start_server(tmp_path)
    yield running
    running.stop()
    running.require_clean_log()


def test_twenty_sessions_click_while_three_fits_queue(server: Server, record_property):
    manager = RunManager(Settings(data_dir=server.data_dir), adopt=False)
    markets = [simulate(MarketPlan(products=60, periods=52, categories=4, seed=seed)) for seed in range(FITS)]
    sources = [market_source(market, f"Market of shop {number}") for number, market in enumerate(markets)]
    data = {manager.datasets.add(source): source.name for source in sources}

    # In a thread of its own, as the browser tests leave an event loop in this one.
    with ThreadPoolExecutor(1) as pool:
        sessions = pool.submit(lambda: asyncio.run(everybody(server, data))).result()

    runs = manager.runs()
    assert sorted(run.dataset_name for run in runs) == sorted(data.values())
    for run in runs:
        ended = manager.wait(run.run_id, FIT_SECONDS)
        assert ended.state == "finished" and ended.usable, ended.outcome
        products = manager.result(run.run_id).posterior.labels.products
        assert ended.dataset_id in data and len(products) == 60
    manager.close()
    waited = np.array([seconds for session in sessions for seconds in session.waited[1:]])
    assert len(waited) >= SESSIONS
    record_property("answers", len(waited))
    record_property("p95_seconds", round(float(np.quantile(waited, 0.95)), 2))
    print(f"{len(waited)} answers, median {np.median(waited):.2f} s, 95th percentile {np.quantile(waited, 0.95):.2f} s")
