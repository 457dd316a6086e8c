"""The structured engine's fixed point with all unknowns in one dense vector: slow, plain NumPy, no structure used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.model.demand import log_mean_units
from core.model.plan import ModelPlan
from core.panel import Panel

NODES, MASSES = np.polynomial.hermite_e.hermegauss(30)
MASSES = MASSES / MASSES.sum()


@dataclass
class Dense:
    """Mean, covariance and bound; `at` gives the places of each kind of unknown in the vector."""

    mean: np.ndarray
    covariance: np.ndarray
    bound: float
    at: dict[str, np.ndarray]

    def sd(self, name: str) -> np.ndarray:
        return np.sqrt(np.diagonal(self.covariance)[self.at[name]])


def dense_fit(panel: Panel, plan: ModelPlan, log_phi: float = 1.0, rounds: int = 120) -> Dense:
    """Newton's method on the dense posterior of a panel with the plan's own scales and one concentration."""
    at, size = _places(panel, plan)
    mean0, precision0 = _prior(panel, plan, at, size)
    design, units = _design(panel, plan, at, size)
    mean = mean0.copy()
    mean[at["level"]] = np.log(np.asarray(panel.sums.series) + 0.5) - np.log(np.asarray(panel.sums.observations))
    covariance = np.zeros((size, size))
    curvature = _moments(plan, design @ mean, np.zeros(units.size), units, log_phi)[1]
    for _ in range(rounds):
        eta, variance = design @ mean, np.einsum("ij,jk,ik->i", design, covariance, design)
        score, full, _ = _moments(plan, eta, variance, units, log_phi)
        curvature = np.sqrt(curvature * full)
        covariance = np.linalg.inv(precision0 + design.T @ (curvature[:, None] * design))
        step = covariance @ (design.T @ score - precision0 @ (mean - mean0))
        mean = mean + np.clip(step, -1.0, 1.0)
    eta, variance = design @ mean, np.einsum("ij,jk,ik->i", design, covariance, design)
    value = _moments(plan, eta, variance, units, log_phi)[2].sum()
    value += 0.5 * np.linalg.slogdet(precision0)[1] + 0.5 * np.linalg.slogdet(covariance)[1]
    value -= 0.5 * (np.trace(precision0 @ covariance) + (mean - mean0) @ precision0 @ (mean - mean0) - size)
    return Dense(mean, covariance, float(value), at)


def _places(panel: Panel, plan: ModelPlan) -> tuple[dict[str, np.ndarray], int]:
    c, k = panel.n_categories, panel.n_covariates
    timed = plan.time_effects != "none" and panel.n_periods > 0
    sizes = {
        "global": 1,
        "category": c,
        "product": panel.n_products,
        "level": panel.n_series,
        "time": (c if plan.time_effects == "category" else 1) * panel.n_periods if timed else 0,
        "covariate_global": k,
        "covariate": c * k,
    }
    if plan.preset != "article":
        sizes |= {"level_global": 1, "level_category": c}
    edges = np.cumsum([0, *sizes.values()])
    return {name: np.arange(edges[i], edges[i + 1]) for i, name in enumerate(sizes)}, int(edges[-1])


def _prior(panel: Panel, plan: ModelPlan, at: dict[str, np.ndarray], size: int) -> tuple[np.ndarray, np.ndarray]:
    priors = plan.priors
    mean, precision = np.zeros(size), np.zeros((size, size))

    def link(child: int, parent: int | None, sd: float) -> None:
        """child ~ N(parent, sd), or N(0, sd)."""
        row = np.zeros(size)
        row[child] = 1.0
        if parent is not None:
            row[parent] = -1.0
        precision[:] += np.outer(row, row) / sd**2

    category_of_product = np.asarray(panel.category_of_product)
    product_of_series = np.asarray(panel.product_of_series)
    link(at["global"][0], None, priors.elasticity_sd)
    for c in range(panel.n_categories):
        link(at["category"][c], at["global"][0], priors.elasticity_category_scale)
    for p in range(panel.n_products):
        link(at["product"][p], at["category"][category_of_product[p]], priors.elasticity_product_scale)
    mean[np.concatenate([at["global"], at["category"], at["product"]])] = priors.elasticity_mean
    for t in at["time"]:
        link(t, None, priors.time_scale)
    for k, market in enumerate(at["covariate_global"]):
        link(market, None, priors.covariate_sd)
        for c in range(panel.n_categories):
            link(at["covariate"][c * panel.n_covariates + k], market, priors.covariate_scale)
    if plan.preset == "article":
        for s in range(panel.n_series):
            row = np.zeros(size)
            row[at["level"][s]] = 1.0
            row[at["product"][product_of_series[s]]] = -float(panel.reference[s])
            precision += np.outer(row, row) / priors.level_series_scale**2
            mean[at["level"][s]] = priors.elasticity_mean * float(panel.reference[s])
    else:
        link(at["level_global"][0], None, priors.level_sd)
        for c in range(panel.n_categories):
            link(at["level_category"][c], at["level_global"][0], priors.level_category_scale)
        for s in range(panel.n_series):
            parent = at["level_category"][category_of_product[product_of_series[s]]]
            link(at["level"][s], parent, priors.level_series_scale)
        levels = [at["level_global"], at["level_category"], at["level"]]
        mean[np.concatenate(levels)] = float(log_mean_units(panel))
    return mean, precision


def _design(panel: Panel, plan: ModelPlan, at: dict[str, np.ndarray], size: int) -> tuple[np.ndarray, np.ndarray]:
    rows, slots = np.nonzero(np.asarray(panel.weight))
    design = np.zeros((rows.size, size))
    series = np.asarray(panel.series_of_row)[rows]
    product = np.asarray(panel.product_of_series)[series]
    category = np.asarray(panel.category_of_product)[product]
    cell = np.arange(rows.size)
    design[cell, at["level"][series]] = 1.0
    design[cell, at["product"][product]] = np.asarray(panel.log_price, np.float64)[rows, slots]
    if at["time"].size:
        period = slots if panel.period is None else np.asarray(panel.period)[rows, slots]
        shared = plan.time_effects == "shared"
        design[cell, at["time"][period if shared else category * panel.n_periods + period]] = 1.0
    for k in range(panel.n_covariates):
        design[cell, at["covariate"][category * panel.n_covariates + k]] = np.asarray(panel.covariates)[k][rows, slots]
    return design, np.asarray(panel.units, np.float64)[rows, slots]


def _moments(
    plan: ModelPlan, eta: np.ndarray, variance: np.ndarray, units: np.ndarray, log_phi: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Score, curvature and expected log likelihood per cell."""
    from scipy.special import gammaln

    if plan.likelihood == "poisson":
        demand = np.exp(np.minimum(eta + variance / 2, 50))
        return units - demand, demand, units * eta - demand - gammaln(units + 1)
    phi = np.exp(log_phi)
    z = eta[:, None] + np.sqrt(variance)[:, None] * NODES
    share = 1 / (1 + np.exp(log_phi - z))
    value = gammaln(units + phi) - gammaln(phi) - gammaln(units + 1) + phi * log_phi
    value += units * eta - (units + phi) * (np.logaddexp(log_phi, z) @ MASSES)
    return units - (units + phi) * (share @ MASSES), (units + phi) * ((share * (1 - share)) @ MASSES), value
