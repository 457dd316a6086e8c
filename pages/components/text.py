"""Put text of files and people, and moments, on a page as they are."""

from __future__ import annotations

from datetime import datetime

MARKS = "\\`*_[]$~:<>#|&"
"""Characters that Markdown, and Streamlit's additions to it, would read as more than text."""


def escaped(text: str) -> str:
    """Text of a file or a person as it is, not as Markdown."""
    for mark in MARKS:
        text = text.replace(mark, "\\" + mark)
    return text


def when(timestamp: float) -> str:
    """A moment (seconds since 1970) in the server's own time."""
    return datetime.fromtimestamp(timestamp).strftime("%d %b %Y, %H:%M")
