"""Draw a widget for every declared field of a plan, so that the form says what the command line and the docs say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import Field
from typing import Any

import streamlit as st

from core.declare import Declared, declarations


def show_fields(
    plan: Any, names: Iterable[str], values: Mapping[str, Any], prefix: str, columns: int = 3
) -> dict[str, Any]:
    """Widgets for the named fields in a grid; what was entered, by name."""
    declared = {f.name: (f, rule) for f, rule in declarations(plan)}
    wanted = [name for name in names if name in declared]
    entered: dict[str, Any] = {}
    for start in range(0, len(wanted), columns):
        cells = st.columns(columns)
        for cell, name in zip(cells, wanted[start : start + columns], strict=False):
            with cell:
                entered[name] = show_field(*declared[name], values[name], f"{prefix}-{name}")
    return entered


def names_for(plan: Any, engine: str, advanced: bool) -> list[str]:
    """Names of the fields of a (sub)plan that apply to `engine`, either the advanced ones or the others."""
    return [
        f.name
        for f, rule in declarations(plan)
        if rule.advanced == advanced and (not rule.engines or engine in rule.engines)
    ]


def show_field(field: Field[Any], rule: Declared, value: Any, key: str) -> Any:
    """The widget that suits one declared field."""
    label = f"{rule.label} ({rule.unit})" if rule.unit else rule.label
    if rule.choices is not None:
        return _choice(label, rule, value, key)
    if isinstance(value, bool):
        return st.toggle(label, value, key=key, help=rule.help)
    if isinstance(value, int | float):
        return _number(label, rule, value, key)
    return st.text_input(label, value, key=key, help=rule.help)


def _choice(label: str, rule: Declared, value: Any, key: str) -> Any:
    options = list(rule.choices or {})
    chosen = st.selectbox(label, options, options.index(value), key=key, help=_choices_help(rule), format_func=spoken)
    st.caption((rule.choices or {})[chosen])
    return chosen


def _choices_help(rule: Declared) -> str:
    lines = [f"- **{spoken(name)}**: {sentence}" for name, sentence in (rule.choices or {}).items()]
    return "\n".join([f"{rule.help}.", "", *lines])


def _number(label: str, rule: Declared, value: float, key: str) -> float:
    kind = type(value)
    low, high = (None if bound is None else kind(bound) for bound in (rule.low, rule.high))
    step = {int: _whole_step(value), float: None}[kind]
    return st.number_input(label, low, high, value, step, format=_format(value), key=key, help=rule.help)


def _whole_step(value: float) -> int:
    return 500 if value >= 1_000 else 1


def _format(value: float) -> str | None:
    return None if isinstance(value, int) else "%g"


SPOKEN = {
    "negbin": "Negative binomial",
    "poisson": "Poisson",
    "category": "By category",
    "shared": "Shared by the market",
    "none": "None",
    "learned": "Learned",
    "fixed": "Fixed",
    "isoelastic": "Isoelastic",
    "article": "The article's",
    "structured": "Structured",
    "svi": "SVI",
    "nuts": "NUTS",
    "centred": "Centred",
    "noncentred": "Non-centred",
    "prior": "Prior",
    "Trace_ELBO": "ELBO (Trace_ELBO)",
    "TraceMeanField_ELBO": "Mean-field ELBO (TraceMeanField_ELBO)",
    "RenyiELBO": "Rényi (RenyiELBO)",
}


def spoken(name: str) -> str:
    """A choice as an analyst reads it."""
    return SPOKEN.get(
        name, name if any(map(str.isupper, name)) else name.replace("-", " ").replace("_", " ").capitalize()
    )
