"""Who signs in, and what that takes: Streamlit loads its libraries only once someone presses the button."""

from importlib import import_module
from pathlib import Path

import pytest

from pages.components import access

REQUIREMENTS = Path(__file__).parents[2] / "requirements.txt"


def test_what_signing_in_needs_is_installed_and_required():
    assert import_module("authlib.integrations.starlette_client").OAuth
    required = {line.partition("==")[0] for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines()}
    assert {"authlib", "httpx"} <= required


@pytest.mark.parametrize(
    ("told", "known"),
    [
        ({"email": "ann@example.org", "sub": "7"}, "ann@example.org"),
        ({"email": "ann@example.org", "email_verified": True, "sub": "7"}, "ann@example.org"),
        ({"email": "ann@example.org", "email_verified": False, "sub": "7"}, "7"),
        ({"sub": "7"}, "7"),
    ],
)
def test_people_are_known_by_an_address_that_their_provider_vouches_for(monkeypatch, told, known):
    monkeypatch.setattr(access, "auth_configured", lambda: True)
    monkeypatch.setattr("streamlit.user", told)
    assert access.viewer() == access.owner() == known
