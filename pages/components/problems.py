"""Show problems as an analyst reads them: worst first, each with its place, count, examples, consequence and remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import streamlit as st

from core.errors import SEVERITIES, Problem, worst_first
from core.report.wording import plural
from pages.components.text import escaped

BADGES = {
    "error": ("Stops the work", ":material/error:", "red"),
    "warning": ("Check", ":material/warning:", "orange"),
    "note": ("Note", ":material/info:", "blue"),
}
FEW = 3
"""Problems that stand open on the page; more of them scroll in a box of their own."""
BOX_HEIGHT = 430


def show_problems(problems: Iterable[Problem], choose: Callable[[Problem], None] | None = None) -> None:
    """One row a problem; `choose` draws the control with which its treatment is changed."""
    ordered = worst_first(problems)
    with st.container(height=BOX_HEIGHT if len(ordered) > FEW else "content", border=False):
        for problem in ordered:
            _row(problem, choose)


def summary_of(problems: Iterable[Problem]) -> str:
    """How many of each kind, in words: '1 stops the work, 2 to check, 3 notes'."""
    kinds = [problem.severity for problem in problems]
    words = {"error": "{} to mend", "warning": "{} to check", "note": "{} to know"}
    return ", ".join(words[kind].format(kinds.count(kind)) for kind in SEVERITIES if kind in kinds) or "none found"


def _row(problem: Problem, choose: Callable[[Problem], None] | None) -> None:
    label, icon, color = BADGES[problem.severity]
    with st.container(border=True):
        left, right = st.columns([3, 2], gap="medium", vertical_alignment="center")
        with left:
            place = f" **{escaped(problem.where)}**" if problem.where else ""
            rows = f" · {plural(problem.rows, 'row')}" if problem.rows else ""
            st.markdown(f":{color}-badge[{icon} {label}]{place}{rows}  \n{_sentence(problem.what)}")
            told = [f"For example {'; '.join(problem.examples)}." if problem.examples else "", problem.consequence]
            if any(told):
                st.caption(escaped(" ".join(part for part in told if part)))
        with right:
            if choose is not None and problem.choice:
                choose(problem)
            elif problem.treatment:
                st.markdown(f"What we do: {escaped(problem.treatment)}")
            if problem.remedy:
                st.caption(f"To mend it: {_sentence(problem.remedy)}")


def _sentence(text: str) -> str:
    text = escaped(text)
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
