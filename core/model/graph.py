"""Draw the demand model as NumPyro sees it: the source of a Graphviz diagram from the traced relations of its sites."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from numpyro.infer.inspect import generate_graph_specification, get_model_relations

from core.model import sites
from core.model.demand import demand
from core.model.plan import ModelPlan
from core.model.tracing import TRACING_LOCK
from core.panel import Panel

FILLS = {
    "elasticity": "#CFE6F5",
    "level": "#DDEFE8",
    "time": "#FBEBCB",
    "covariate": "#F3DFEA",
    "concentration": "#E6E6E6",
}
"""Fill by the first word of a site's name; dark text on each reads on light and dark pages alike."""
OBSERVED_FILL = "#9FB3C4"
STYLE = 'fontname="sans-serif" fontsize=11'


def model_graph(panel: Panel, plan: ModelPlan) -> str:
    """Graphviz source of the model that `plan` fits to `panel`: sites, what depends on what, plates with their sizes.

    Traces the model under the tracing lock; it reads shapes only, so the size of the panel does not matter.
    """
    with TRACING_LOCK:
        relations = get_model_relations(demand, (panel, plan))
    return dot_source(generate_graph_specification(relations), plate_sizes(panel))


def plate_sizes(panel: Panel) -> dict[str, int]:
    """How many members each plate of the model has."""
    return {"categories": panel.n_categories, "products": panel.n_products, "series": panel.n_series}


def dot_source(specification: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    """Graphviz source of a graph specification as NumPyro's `render_model` makes it."""
    nodes = specification["node_data"]
    lines = [
        "digraph {",
        f'graph [bgcolor="transparent" rankdir=TB nodesep=0.2 ranksep=0.35 {STYLE}]',
        f'node [style=filled shape=box color="#7A8A99" fontcolor="#17212B" margin="0.12,0.06" {STYLE}]',
        'edge [color="#7A8A99" arrowsize=0.7]',
    ]
    for plate, names in specification["plate_groups"].items():
        lines += [_node(name, nodes[name], _members(plate, sizes)) for name in names]
    lines += [f'"{start}" -> "{end}"' for start, end in specification["edge_list"]]
    return "\n".join([*lines, "}"])


def _members(plate: str | None, sizes: Mapping[str, int]) -> str:
    """How many there are of each site of a plate. It stands in the node, where no arrow crosses it."""
    return f", {sizes[plate]:,} {plate}" if plate is not None and plate in sizes else ""


def _node(name: str, facts: Mapping[str, Any], members: str) -> str:
    observed = facts["is_observed"]
    fill = OBSERVED_FILL if observed else FILLS.get(name.split("_")[0], "#FFFFFF")
    kind = "observed" if observed else _words(facts["distribution"])
    return f'"{name}" [label="{_label(name)}\\n{kind}{members}" tooltip="{_meaning(name)}" fillcolor="{fill}"]'


def _words(distribution: str) -> str:
    """'HalfNormal' as 'half normal'."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", distribution).lower()


def _label(name: str) -> str:
    if name in sites.SITES:
        return sites.SITES[name].label
    return f"spread of {sites.SITES[sites.SCALES[name]].label}" if name in sites.SCALES else "units sold"


def _meaning(name: str) -> str:
    if name in sites.SITES:
        return sites.SITES[name].meaning
    return f"How far it scatters: {sites.SITES[sites.SCALES[name]].label}" if name in sites.SCALES else "Units sold"
