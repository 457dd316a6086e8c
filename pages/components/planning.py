"""Plan a fit: the form, what it would cost, the priors in words, the model's graph, and the button that starts it."""

from __future__ import annotations

import streamlit as st

from core.errors import Problem, UserError
from core.inference.plan import ARTICLE_PLAN, FitPlan
from core.panel import Panel, PanelLabels
from core.report.wording import plural
from core.runs.requests import MOST_PINNED
from pages.components.actions import start
from pages.components.costs import show_cost
from pages.components.empty import nothing_to_fit
from pages.components.planform import plan_form, priors_editor, priors_without_part
from pages.components.problems import show_problems
from pages.components.services import checked, model_source, panel_of, placements
from pages.components.session import renew, roles_in_use, update, workspace
from pages.components.text import escaped

PRESETS = {"Defaults": FitPlan(), "The article's recipe": ARTICLE_PLAN}


def plan_page() -> None:
    """The whole form; the button stands at the top, where the first screen shows it."""
    if not workspace().dataset:
        return nothing_to_fit()
    sales = checked(workspace().dataset, roles_in_use(), workspace().choices).sales
    if sales is None:
        return nothing_to_fit("The data set in use has problems that stop a fit; the Data page lists them.")
    top = st.container()
    panel, labels = panel_of(workspace().dataset, roles_in_use(), workspace().choices)
    modes = placements()
    plan, problems = plan_form(modes, periods=panel.n_periods > 0)
    if plan is not None and (reason := modes.get(plan.placement)):
        problems = (Problem("placement", f"This device cannot be used: {reason}", "Choose another.", where="Device"),)
    with top:
        _top(plan, panel, int(labels.n_obs.sum()), problems, f"{escaped(sales.name)}: {_sizes(labels)}")
    _pinned(labels.products)
    _model_tabs(panel)
    return None


def _sizes(labels: PanelLabels) -> str:
    products, categories = len(labels.products), len(labels.categories)
    return (
        f"{plural(int(labels.n_obs.sum()), 'observation')} of {plural(products, 'product')} in "
        f"{plural(categories, 'category', 'categories')}"
    )


def _top(plan: FitPlan | None, panel: Panel, n_obs: int, problems: tuple[Problem, ...], data: str) -> None:
    left, right = st.columns([3, 2], vertical_alignment="center")
    with left:
        st.markdown(data)
        refusals = show_cost(plan, panel, n_obs) if plan else ()
    with right, st.container(horizontal=True, horizontal_alignment="right"):
        for name, preset in PRESETS.items():
            st.button(name, on_click=renew, kwargs={"plan": preset}, type="tertiary", help="Fill the form with it.")
        unfit = plan is None or bool(refusals) or bool(problems)
        if st.button("Start", type="primary", icon=":material/play_arrow:", disabled=unfit, key="start") and plan:
            try:
                start(plan)
            except UserError as error:
                problems = error.problems
            else:
                st.rerun()
    show_problems((*problems, *refusals))


def _pinned(products: tuple[str, ...]) -> None:
    """Products to watch live; the list holds what a search finds, never all names of a big market."""
    with st.expander("Products to watch while it runs", icon=":material/push_pin:", on_change="rerun") as opened:
        if not opened.open:
            return
        kept = list(workspace().pinned)
        text = st.text_input("Find products", type="search", key="pin-search", placeholder="part of a name").casefold()
        found = [name for name in products if text in name.casefold()][:FOUND] if text else list(products[:FOUND])
        chosen = st.multiselect(
            "Watched", [*kept, *(name for name in found if name not in kept)], kept, max_selections=MOST_PINNED,
            key=f"pinned-{workspace().revision}",
        )  # fmt: skip
        update(pinned=tuple(chosen))


FOUND = 50


def _model_tabs(panel: Panel) -> None:
    priors, graph = st.tabs(["Priors in words", "Graph of the model"], on_change="rerun")
    if priors.open:
        with priors:
            priors_editor(workspace().plan.model, priors_without_part(panel))
    if graph.open:
        with graph:
            now = workspace()
            dot = model_source(now.dataset, roles_in_use(), now.choices, now.plan.model)
            st.graphviz_chart(dot, alt="Which unknown depends on which, from the market down to units sold")
