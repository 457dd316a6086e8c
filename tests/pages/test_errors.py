"""What goes wrong on a page is told in words; no traceback reaches the user."""

from __future__ import annotations

import logging

from tests.pages.conftest import said


def test_an_unexpected_error_shows_an_id_that_the_log_explains(open_page, monkeypatch, caplog):
    def broken(*given):
        raise RuntimeError("secret detail")

    monkeypatch.setattr("pages.components.intake.datasets", broken)
    with caplog.at_level(logging.ERROR):
        tab = open_page("data")
    assert not tab.exception
    words = said(tab)
    assert "Something went wrong on our side" in words
    assert "secret detail" not in words
    code = words.split("(error ")[1][:8]
    assert code in caplog.text
    assert "secret detail" in caplog.text
