"""Turn probabilities into verdicts an analyst can act on, each with its sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from core.posterior.own import SAME_PRICE_SD

CERTAINTY = 0.9
"""Posterior probability from which a verdict is given."""


@dataclass(frozen=True)
class Verdict:
    """One answer to 'what does this price do?': its name in tables, its words on screen, its sentence."""

    name: str
    label: str
    sentence: str


VERDICTS: dict[str, Verdict] = {
    verdict.name: verdict
    for verdict in (
        Verdict(
            "elastic",
            "Elastic",
            "Units react more than proportionally to price: lower prices go with more revenue.",
        ),
        Verdict(
            "inelastic",
            "Inelastic",
            "Units react less than proportionally to price: higher prices go with more revenue.",
        ),
        Verdict(
            "rises",
            "Rises with price",
            "Units were higher at higher prices, which a price alone hardly brings about: check for other causes, such "
            "as prices raised when demand was expected, before acting on it.",
        ),
        Verdict(
            "uncertain",
            "Uncertain",
            "The data do not tell whether units react more or less than proportionally to price.",
        ),
        Verdict(
            "no variation",
            "Cannot be told",
            "The price never changed: the estimate is what its category suggests, not what its own sales show.",
        ),
    )
}


def price_varies(price_sd: Float[np.ndarray, "product"]) -> Bool[np.ndarray, "product"]:
    """Where the price changed enough to say anything."""
    return np.asarray(price_sd) > SAME_PRICE_SD


def verdict_names(
    prob_elastic: Float[np.ndarray, "member"],
    varies: Bool[np.ndarray, "member"] | None = None,
    certainty: float = CERTAINTY,
    prob_positive: Float[np.ndarray, "member"] | None = None,
) -> np.ndarray:
    """Names of verdicts (text, one per member): elastic from a probability of `certainty`, inelastic up to one minus
    that, rises where an elasticity above 0 has that probability, uncertain between, and 'no variation' wherever
    `varies` is False."""
    named = np.full(len(prob_elastic), "uncertain", dtype=object)
    named[prob_elastic >= certainty] = "elastic"
    named[1 - prob_elastic >= certainty] = "inelastic"
    if prob_positive is not None:
        named[prob_positive >= certainty] = "rises"
    if varies is not None:
        named[~varies] = "no variation"
    return named
