"""Reach the services of core from a page; slow answers are kept, under the ids that decide them and with a bound."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Float

from core.data.encoding import encode
from core.data.guessing import guess_roles
from core.data.overview import Overview, overview
from core.data.roles import Roles
from core.data.source import Source
from core.data.validation import Checked, Choices, validate
from core.errors import UserError
from core.inference.placement import available_placements
from core.model.graph import model_graph
from core.model.plan import ModelPlan
from core.panel import Panel, PanelLabels
from core.posterior.posterior import Posterior, at_mass
from core.report.comparison import truth_in_order
from core.report.tables import elasticity_table
from core.runs.datasets import DatasetStore
from core.runs.manager import RunManager, get_manager
from core.runs.prepare import Prepared
from core.runs.requests import RunResult
from core.runs.snapshots import RunSnapshot
from core.runs.store import UNKNOWN
from core.settings import Settings, load_settings
from pages.components.access import viewer

FEW = 3
"""Data sets or results kept in memory at a time, for all tabs together."""


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Limits and paths of this installation."""
    return load_settings()


def manager() -> RunManager:
    """The one run manager of this process; it outlives reruns, tabs and cleared caches."""
    return get_manager(settings())


def datasets() -> DatasetStore:
    """The data sets of this installation."""
    return manager().datasets


@st.cache_resource(max_entries=FEW, show_spinner="Opening the data set")
def source(dataset: str) -> Source:
    """The file as it was read."""
    return datasets().source(dataset)


@st.cache_resource(max_entries=10, show_spinner=False)
def guessed_roles(dataset: str) -> Roles:
    """Which column plays which part, by names and contents."""
    return guess_roles(source(dataset))


@st.cache_resource(max_entries=FEW, show_spinner="Checking every row")
def checked(dataset: str, roles: Roles, choices: Choices) -> Checked:
    """The sales table and every problem found on the way to it."""
    return validate(source(dataset), roles, choices)


@st.cache_resource(max_entries=FEW, show_spinner="Looking over the data")
def overview_of(dataset: str, roles: Roles, choices: Choices) -> Overview:
    """Counts and price variation; only for data that passed the check."""
    sales = checked(dataset, roles, choices).sales
    assert sales is not None
    return overview(sales)


@st.cache_resource(max_entries=FEW, show_spinner="Arranging the data for the model")
def panel_of(dataset: str, roles: Roles, choices: Choices) -> tuple[Panel, PanelLabels]:
    """The arrays that the engines read; only for data that passed the check."""
    sales = checked(dataset, roles, choices).sales
    assert sales is not None
    return encode(sales)


def result(run_id: str) -> RunResult:
    """What a run found; the manager keeps the last few in memory."""
    return manager().result(run_id, viewer())


def market(run_id: str) -> Prepared:
    """Sales, panel and labels that a run read."""
    return manager().market(run_id, viewer())


def snapshot(run_id: str) -> RunSnapshot:
    """The run at this moment."""
    return manager().snapshot(run_id, viewer())


def still_there(run_id: str) -> bool:
    """Whether the run in the address exists and may be seen by who asks."""
    if not run_id:
        return False
    try:
        snapshot(run_id)
    except UserError:
        return False
    return True


def gone(run_id: str) -> bool:
    """Whether there is no such run for who asks; a store that does not answer proves nothing."""
    try:
        snapshot(run_id)
    except UserError as error:
        return error.problems[0].code == UNKNOWN
    return False


def posterior(run_id: str, mass: float) -> Posterior:
    """A run's posterior with intervals of `mass`. Raises UserError where the run is not there for who asks."""
    return _posterior(run_id, version(run_id), mass, viewer())


def table(run_id: str, mass: float) -> pd.DataFrame:
    """A run's table of elasticities. Kept for all tabs: read it, never change it."""
    return _table(run_id, version(run_id), mass, viewer())


def version(run_id: str) -> tuple[int, int]:
    """What tells a run's results apart: one that went further or was drawn again has another."""
    run = snapshot(run_id)
    return run.steps_done, run.plan.draws


@st.cache_resource(max_entries=FEW, show_spinner="Summarising the draws")
def _posterior(run_id: str, version: tuple[int, int], mass: float, viewer: str | None) -> Posterior:
    return at_mass(manager().result(run_id, viewer).posterior, mass)


@st.cache_resource(max_entries=FEW, show_spinner=False)
def _table(run_id: str, version: tuple[int, int], mass: float, viewer: str | None) -> pd.DataFrame:
    return elasticity_table(_posterior(run_id, version, mass, viewer))


def truth_of_run(run_id: str, dataset: str, mass: float) -> Float[np.ndarray, "row"] | None:
    """The true elasticities in the order of a run's table; None for real data."""
    return _truth(run_id, dataset, table(run_id, mass))


@st.cache_resource(max_entries=FEW, show_spinner=False)
def _truth(run_id: str, dataset: str, _table: pd.DataFrame) -> Float[np.ndarray, "row"] | None:
    # The order of rows is that of the run's labels, whatever the interval.
    known = datasets().truth(dataset)
    return None if known is None else truth_in_order(_table, known)


@st.cache_resource(max_entries=10, show_spinner="Drawing the model")
def model_source(dataset: str, roles: Roles, choices: Choices, model: ModelPlan) -> str:
    """Graphviz source of the model as it would be fitted to the data set."""
    return model_graph(panel_of(dataset, roles, choices)[0], model)


@st.cache_resource(max_entries=1, show_spinner="Looking for devices")
def placements() -> dict[str, str]:
    """Device modes with the reason why one is not available, or ''. Starts JAX, once for the process."""
    return available_placements()
