"""Copy an engine's state to named NumPy arrays and back: what a checkpoint keeps, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from core.errors import Problem, UserError
from core.inference.hosts import fetched

PREFIX = "state"
LOSSES = "losses"
"""Losses of all steps so far, beside the state."""


def to_arrays(state: Any, losses: np.ndarray) -> dict[str, np.ndarray]:
    """Every leaf of `state` by its path, copied to the host, and the losses that led there. Of several processes all
    must ask at the same point."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    host = fetched([leaf for _, leaf in leaves])
    arrays = {_name(path): np.array(value) for (path, _), value in zip(leaves, host, strict=True)}
    return {**arrays, LOSSES: np.array(losses)}


def from_arrays(arrays: Mapping[str, np.ndarray], like: Any) -> tuple[Any, np.ndarray]:
    """The state that `to_arrays` copied, shaped `like`, and its losses. Raises UserError when it belongs elsewhere."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    wanted = {_name(path): np.shape(leaf) for path, leaf in leaves}
    found = {name: np.shape(arrays[name]) for name in arrays if name != LOSSES}
    if wanted != found:
        raise UserError(
            Problem(
                "checkpoint-mismatch",
                "the saved state belongs to another model, guide, optimiser or number of devices",
                "Resume with the plan, data and device mode it was saved under, or start anew.",
                where="checkpoint",
            )
        )
    values = [np.asarray(arrays[_name(path)], np.asarray(leaf).dtype) for path, leaf in leaves]
    return jax.tree_util.tree_unflatten(structure, values), np.asarray(arrays.get(LOSSES, np.zeros(0, np.float32)))


def _name(path: Any) -> str:
    return PREFIX + jax.tree_util.keystr(path)
