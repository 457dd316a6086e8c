"""Let a person say which column plays which part; taking a column for one role frees it from any other."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.data.guessing import offered_covariates
from core.data.roles import ROLES, Roles, assign
from pages.components.services import source
from pages.components.session import renew, roles_in_use, workspace

NONE = "—"


def role_picker() -> Roles:
    """One list of columns a role, and the covariates; changes are kept at once and shown everywhere."""
    now, revision = roles_in_use(), workspace().revision
    columns = list(source(workspace().dataset).columns)
    cells = st.columns(len(ROLES))
    for cell, role in zip(cells, ROLES.values(), strict=True):
        with cell:
            chosen = getattr(now, role.name)
            options = [NONE, *columns]
            place = options.index(chosen) if chosen in options else 0
            key = f"role-{role.name}-{revision}"
            st.selectbox(
                role.label + (" *" if role.required else ""), options, place, key=key, help=role.help,
                on_change=_take, args=(role.name, key),
            )  # fmt: skip
    _covariates(now, revision)
    return roles_in_use()


def _take(role: str, key: str) -> None:
    column = st.session_state[key]
    renew(roles=assign(roles_in_use(), role, None if column == NONE else column))


def _covariates(now: Roles, revision: int) -> None:
    offered = offered_covariates(source(workspace().dataset), now)
    options = list(dict.fromkeys((*now.covariates, *offered)))
    if not options:
        return
    key = f"covariates-{revision}"
    st.multiselect(
        "Covariates", options, now.covariates, key=key, on_change=_take_covariates, args=(key,),
        placeholder="None: price alone, beside level and season", select_all=False,
        help="What else moves units and is known beforehand: promotion, display, holiday. Not revenue or profit: they "
        "are results of the sale.",
    )  # fmt: skip


def _take_covariates(key: str) -> None:
    renew(roles=replace(roles_in_use(), covariates=tuple(st.session_state[key])))
