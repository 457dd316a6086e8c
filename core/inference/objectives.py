"""The losses an analyst may choose, by their NumPyro names: negative bounds on the log evidence, in nats per run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpyro.infer import RenyiELBO, Trace_ELBO, TraceMeanField_ELBO


@dataclass(frozen=True)
class ObjectiveSpec:
    """One loss: `build(particles, alpha)` makes it."""

    help: str
    build: Callable[[int, float], Any]


OBJECTIVES: dict[str, ObjectiveSpec] = {
    "Trace_ELBO": ObjectiveSpec(
        "The evidence lower bound. The standard.",
        lambda particles, alpha: Trace_ELBO(num_particles=particles),
    ),
    "TraceMeanField_ELBO": ObjectiveSpec(
        "The same bound with divergences in closed form where they are known: less noise.",
        lambda particles, alpha: TraceMeanField_ELBO(num_particles=particles),
    ),
    "RenyiELBO": ObjectiveSpec(
        "A tighter bound from several particles; its value does not compare with an ELBO.",
        lambda particles, alpha: RenyiELBO(alpha=alpha, num_particles=particles),
    ),
}
