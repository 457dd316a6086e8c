"""Ask for a plan: engine first, then the model, its priors, and what the chosen engine lets choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from core.errors import Problem, UserError
from core.inference.plan import ENGINES, FitPlan, NutsPlan, StructuredPlan, SviPlan, plan_values, plan_with
from core.model.plan import ModelPlan
from core.model.readings import readings
from core.panel import Panel
from pages.components.forms import names_for, show_fields, spoken
from pages.components.session import update, workspace

ENGINE_PLANS = {"structured": StructuredPlan, "svi": SviPlan, "nuts": NutsPlan}
MODEL_FIELDS = ("likelihood", "time_effects", "scales")
RUN_FIELDS = ("mass", "seed")


def plan_form(placements: Mapping[str, str], periods: bool) -> tuple[FitPlan | None, tuple[Problem, ...]]:
    """The plan as entered, or the problems that keep it from running. `placements`: device mode to reason or ''."""
    values = plan_values(workspace().plan)
    entered: dict[str, Any] = {"engine": _engine(values["engine"])}
    prefix = f"plan-{workspace().revision}"
    with st.container(border=True):
        entered |= show_fields(ModelPlan, MODEL_FIELDS, values, prefix)
        if not periods:
            st.caption("This file has no period column: there are no time effects to estimate.")
    if names_for(ENGINE_PLANS[entered["engine"]], entered["engine"], advanced=False):
        with st.container(border=True):
            entered |= _engine_fields(entered["engine"], values, prefix, advanced=False)
    with st.container(border=True):
        entered |= _running(values, placements, prefix)
    with st.expander("Advanced", icon=":material/tune:"):
        entered |= show_fields(ModelPlan, ("preset",), values, prefix)
        entered |= _engine_fields(entered["engine"], values, prefix, advanced=True)
        entered |= show_fields(FitPlan, ("draws",), values, prefix)
    try:
        plan = plan_with(workspace().plan, **entered)
    except UserError as error:
        return None, error.problems
    update(plan=plan)
    return plan, ()


def _engine(chosen: str) -> str:
    names = list(ENGINES)
    return st.radio(
        "Engine", names, names.index(chosen), format_func=spoken, captions=list(ENGINES.values()),
        key=f"plan-{workspace().revision}-engine",
    )  # fmt: skip


def _engine_fields(engine: str, values: Mapping[str, Any], prefix: str, advanced: bool) -> dict[str, Any]:
    names = names_for(ENGINE_PLANS[engine], engine, advanced)
    names += [name for name in names_for(SviPlan, engine, advanced) if name not in names]
    plan = {name: part for part in ENGINE_PLANS.values() for name in plan_values(part())}
    entered: dict[str, Any] = {}
    for part in ENGINE_PLANS.values():
        mine = [name for name in names if plan[name] is part]
        entered |= show_fields(part, mine, values, prefix)
    return entered


def _running(values: Mapping[str, Any], placements: Mapping[str, str], prefix: str) -> dict[str, Any]:
    entered = {}
    first, *rest = st.columns(3)
    with first:
        entered["placement"] = _placement(values["placement"], placements, prefix)
    for cell, name in zip(rest, RUN_FIELDS, strict=True):
        with cell:
            entered |= show_fields(FitPlan, (name,), values, prefix, columns=1)
    _reasons(placements)
    return entered


def _placement(chosen: str, placements: Mapping[str, str], prefix: str) -> str:
    """Device modes; one that is not available says why and cannot be started."""
    options = list(dict.fromkeys([*placements, chosen]))
    labels = {name: DEVICES.get(name, name) + (" — not available" if placements.get(name) else "") for name in options}
    return st.selectbox(
        "Device", options, options.index(chosen), format_func=lambda name: labels.get(name, name),
        key=f"{prefix}-placement",
        help="Where it runs. Simulated devices (cpu:N) show that results do not depend on the split; no speed-up.",
        accept_new_options=True,
    )  # fmt: skip


def _reasons(placements: Mapping[str, str]) -> None:
    reasons = [f"{DEVICES.get(name, name)}: {reason.rstrip('.')}" for name, reason in placements.items() if reason]
    if reasons:
        st.caption("Not available here. " + ". ".join(reasons) + ".")


DEVICES = {"cpu": "CPU", "gpu": "One GPU", "all-gpus": "All GPUs"}


def priors_editor(model: ModelPlan, absent: frozenset[str]) -> None:
    """The priors that play a part, as a table; a changed value is taken over at once and its sentence follows.

    `absent` names priors that the data leave without a part.
    """
    rows = [reading for reading in readings(model) if reading.used and reading.name not in absent]
    if model.scales == "learned":
        st.caption("Spreads are learned from the data: their values here only say what is plausible beforehand.")
    frame = pd.DataFrame(
        {"Prior": [r.label for r in rows], "Value": [r.value for r in rows], "In words": [r.sentence for r in rows]},
        index=[r.name for r in rows],
    )
    edited = st.data_editor(
        frame, key=f"priors-{workspace().revision}", hide_index=True, disabled=["Prior", "In words"], height="content",
        column_config={
            "Prior": st.column_config.TextColumn(width=210),
            "Value": st.column_config.NumberColumn(format="%.3g", width=80, step=0.1, required=True),
            "In words": st.column_config.TextColumn(width="large"),
        },
        alt="Priors, their values and what each expects before seeing data",
    )  # fmt: skip
    values = edited["Value"]
    changed = {name: float(values[name]) for name in frame.index if values[name] != frame["Value"][name]}
    if changed:
        update(plan=plan_with(workspace().plan, **changed))
        st.rerun()


def priors_without_part(panel: Panel) -> frozenset[str]:
    """Priors of effects that the data do not have."""
    covariates = () if panel.n_covariates else ("covariate_sd", "covariate_scale")
    return frozenset((*covariates, *(() if panel.n_periods else ("time_scale",))))
