"""The losses an analyst may choose, by their NumPyro names: negative bounds on the log evidence, in nats per run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpyro.infer import RenyiELBO, Trace_ELBO, TraceMeanField_ELBO


class OrderedTraceELBO(Trace_ELBO):
    """Trace_ELBO with its sites summed by name.

    NumPyro sums them in the order of a set, which is another in every process (Python's hash randomisation), and a run
    resumed in a new process would leave its path in the last bit.
    """

    def __init__(self, num_particles: int = 1):
        super().__init__(num_particles=num_particles, sum_sites=False)

    def loss_with_mutable_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        found = super().loss_with_mutable_state(*args, **kwargs)
        by_site = found["loss"]
        return {**found, "loss": sum(by_site[name] for name in sorted(by_site))}


@dataclass(frozen=True)
class ObjectiveSpec:
    """One loss: `build(particles, alpha)` makes it."""

    help: str
    build: Callable[[int, float], Any]


OBJECTIVES: dict[str, ObjectiveSpec] = {
    "Trace_ELBO": ObjectiveSpec(
        "The evidence lower bound. The standard.",
        lambda particles, alpha: OrderedTraceELBO(num_particles=particles),
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
