"""Turn the bytes of a text file, piece by piece, into its number of lines."""

from __future__ import annotations

LINE_ENDS = b"\r\n\0"
"""With the second bytes that they have in UTF-16."""


class Lines:
    """Counts lines as bytes go by: ended by LF, with or without CR, or by CR alone. Blank ones at the end are none."""

    def __init__(self) -> None:
        self._feeds = self._returns = self._blank_feeds = self._blank_returns = 0

    def see(self, piece: bytes) -> None:
        filled = len(piece.rstrip(LINE_ENDS))
        if filled:
            self._blank_feeds = self._blank_returns = 0
        self._feeds += piece.count(b"\n")
        self._returns += piece.count(b"\r")
        self._blank_feeds += piece.count(b"\n", filled)
        self._blank_returns += piece.count(b"\r", filled)

    @property
    def count(self) -> int:
        return 1 + (self._feeds - self._blank_feeds if self._feeds else self._returns - self._blank_returns)
