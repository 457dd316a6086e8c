"""Make a serving process quick at its pages while it fits: everything imported before the first visitor comes."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from core.environment import settle_memory
from core.errors import UserError
from core.runs.compiled import keep_compiled
from core.settings import load_settings

SWITCH_SECONDS = 0.0005
"""How long a fit that computes in Python may keep the interpreter while pages wait for it; Python's own is 0.005.

A page lets go of the interpreter some hundred times (every message to the browser, every look at a file), and each
time waits so long to have it back.
"""
COMPONENTS = Path(__file__).parent / "components"


def get_ready() -> None:
    """Import what pages are made of, once, before twenty visitors ask for it together; keep what is compiled."""
    for module in sorted(COMPONENTS.glob("*.py")):
        import_module(f"pages.components.{module.stem}")
    sys.setswitchinterval(SWITCH_SECONDS)
    # Settings that cannot be read are told on the page.
    with suppress(UserError):
        keep_compiled(load_settings())
    settle_memory()
