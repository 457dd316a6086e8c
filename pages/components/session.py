"""Keep what one browser tab works on as a single frozen value: data set, roles, treatments, plan, run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from core.data.roles import Roles
from core.data.validation import Choices
from core.inference.plan import FitPlan
from pages.components.services import guessed_roles

KEY = "workspace"


@dataclass(frozen=True)
class Workspace:
    """One tab's work. `roles` None: as guessed from the file. `revision` renews form widgets after a preset."""

    dataset: str = ""
    roles: Roles | None = None
    choices: Choices = field(default_factory=Choices)
    plan: FitPlan = field(default_factory=FitPlan)
    run: str = ""
    pinned: tuple[str, ...] = ()
    """Products to watch while a fit runs, by name."""
    revision: int = 0


FRESH = Workspace()


def workspace() -> Workspace:
    """What this tab works on now."""
    return st.session_state.setdefault(KEY, FRESH)


def update(**changes: Any) -> Workspace:
    """Replace fields of the workspace. Another data set clears what belonged to the old one."""
    old = workspace()
    if "dataset" in changes and changes["dataset"] != old.dataset:
        changes = {"roles": None, "choices": Choices(), "pinned": (), "revision": old.revision + 1, **changes}
    st.session_state[KEY] = replace(old, **changes)
    return st.session_state[KEY]


def renew(**changes: Any) -> Workspace:
    """Update and give every form widget a fresh key, so that it shows the new value."""
    return update(revision=workspace().revision + 1, **changes)


def roles_in_use() -> Roles:
    """The roles chosen in this tab, or those guessed from the file."""
    now = workspace()
    return now.roles or guessed_roles(now.dataset)
