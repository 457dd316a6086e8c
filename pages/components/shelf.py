"""Keep what pages have computed and drawn, for all tabs: once for the ids that decide it, and with one bound."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import streamlit as st

KEPT = 48
"""Things on the shelf, the latest used. A chart of 12,000 products takes about 3 MB."""


def kept[T](name: str, ids: tuple[Hashable, ...], make: Callable[[], T]) -> T:
    """What `make` gives, made once for a `name` and its `ids`: read it, never change it.

    The ids must name everything that `make` reads: run, version, mass, theme. Who may see it is asked elsewhere.
    """
    return _kept(name, ids, make)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _kept[T](name: str, ids: tuple[Hashable, ...], _make: Callable[[], T]) -> T:
    return _make()
