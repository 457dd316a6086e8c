"""Signing in needs libraries that Streamlit loads only once someone presses the button."""

from importlib import import_module
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[2] / "requirements.txt"


def test_what_signing_in_needs_is_installed_and_required():
    assert import_module("authlib.integrations.starlette_client").OAuth
    required = {line.partition("==")[0] for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines()}
    assert {"authlib", "httpx"} <= required
