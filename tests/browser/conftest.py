"""A server of its own and a browser for the end-to-end tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).parents[2]
BROWSER_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_SECONDS = 90
PATIENCE_MS = 60_000
"""How long to wait for a thing to appear: a loaded machine with two cores, one of them fitting."""

expect.set_options(timeout=PATIENCE_MS)


@dataclass
class Server:
    """A dashboard serving on `address`, its data under `data_dir`, its output in `log`."""

    address: str
    data_dir: Path
    log: Path
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)

    def require_clean_log(self) -> None:
        """Fail where the server wrote a traceback or a warning that something will go."""
        log = self.log.read_text(encoding="utf-8", errors="replace")
        assert "Traceback" not in log, log[-4000:]
        assert "will be removed" not in log, log[-4000:]


def start_server(folder: Path, port: int | None = None, secrets: Path | None = None) -> Server:
    """Serve app.py with its own data folder (and secrets) and wait until it answers."""
    port = port or _free_port()
    options = ["--server.port", str(port)] + ([f"--secrets.files={secrets}"] if secrets else [])
    log = folder / "server.log"
    environment = {**os.environ, "ISOELASTIC_DATA_DIR": str(folder / "store"), "JAX_PLATFORMS": "cpu"}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", *options],
            cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    server = Server(f"http://127.0.0.1:{port}", folder / "store", log, process)
    _wait_until_healthy(server)
    return server


def browser_path() -> str | None:
    """Where this machine has Chromium or Chrome; None where it has neither."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium; missing, it fails the run on a build server and skips elsewhere."""
    path = browser_path()
    if path is None:
        reason = "no Chromium on this machine: install it to run the browser tests"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=BROWSER_ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the tests of a module; its log must be clean when they are done."""
    running = start_server(tmp_path_factory.mktemp("server"))
    yield running
    running.stop()
    running.require_clean_log()


@contextmanager
def new_tab(browser: Browser) -> Iterator[Page]:
    """A fresh tab of 1440 x 900, with nothing remembered."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, accept_downloads=True)
    yield context.new_page()
    context.close()


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """The same for one test."""
    with new_tab(browser) as page:
        yield page


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_healthy(server: Server) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{server.address}/_stcore/health", timeout=2) as answer:
                if answer.read() == b"ok":
                    return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(server.log.read_text(encoding="utf-8", errors="replace"))
