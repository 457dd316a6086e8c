"""Turn whatever goes wrong on a page into words: a problem list for what the user can mend, an id for the rest."""

from __future__ import annotations

import functools
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

from core.errors import UserError
from pages.components.problems import show_problems

LOG = logging.getLogger("isoelastic.pages")


@contextmanager
def guarded() -> Iterator[None]:
    """Show errors of the enclosed part as sentences. What was entered stays; nothing shows a traceback."""
    try:
        yield
    except UserError as error:
        show_problems(error.problems)
    except Exception:
        show_unexpected()


def show_unexpected() -> None:
    """Log the exception in hand under an id and tell the user that id."""
    code = uuid.uuid4().hex[:8]
    LOG.exception("unexpected error %s", code)
    st.error(
        f"Something went wrong on our side (error {code}). What you entered is kept: try again, "
        "and if it comes back, report this id; the server's log has the details under it.",
        icon=":material/report:",
    )


def guard[**P](part: Callable[P, None]) -> Callable[P, None]:
    """The same for a function, such as a fragment, that runs on its own."""

    @functools.wraps(part)
    def inner(*args: P.args, **kwargs: P.kwargs) -> None:
        with guarded():
            part(*args, **kwargs)

    return inner
