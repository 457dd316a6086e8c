"""Sample the demand model's posterior with the No-U-Turn sampler: exact up to Monte-Carlo error, for small markets.

Steps run in chunks, warm-up included, so that a fit can be watched, stopped and resumed. Losses are potential energies:
negative log joint densities in nats, one a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

from core.environment import describe_environment
from core.inference.engines import ENGINES, Engine
from core.inference.failing import failed_fit, reason_of
from core.inference.fit import Chunk, Draws, Ending, Estimates, Fit, Outcome, Timing, Watcher
from core.inference.moments import RunningMoments
from core.inference.nuts_sampler import BUFFER, Sampler
from core.inference.plan import FitPlan
from core.model import sites
from core.model.demand import site_names
from core.panel import Panel

WANTED_SECONDS = 0.3
"""Time that a chunk should take."""
FEWEST_DRAWS = 20
"""Draws from which on a stopped fit is of use."""
LARGEST_R_HAT = 1.05
"""r-hat of any elasticity above which chains are said not to agree."""
ARRAY = "draws_"
ELASTICITIES = (sites.GLOBAL, sites.CATEGORY, sites.PRODUCT)


@dataclass
class _Progress:
    """What has been sampled: draws by site for every finished or running chain, and where the running one is."""

    draws: list[dict[str, list[np.ndarray]]]
    chain: int = 0
    step: int = 0
    """Steps of the running chain, warm-up included."""
    divergent: int = 0
    moments: RunningMoments = field(default_factory=RunningMoments)
    """Of the elasticities over all draws kept, so that a chunk costs the same however many came before."""


def fit(plan: FitPlan, panel: Panel, watcher: Watcher, resume: Mapping[str, np.ndarray] | None = None) -> Fit:
    """Sample `plan.nuts.chains` chains one after another on the first device of the placement.

    Ends in an outcome, whatever goes wrong on the way; the draws up to there are kept.
    """
    began = perf_counter()
    losses: list[np.ndarray] = []
    sampler = progress = None
    try:
        watcher.on_phase("compiling")
        sampler = Sampler(plan, panel)
        progress = _resumed(sampler, resume) if resume else _Progress([{name: [] for name in sampler.names}])
        watcher.on_phase("running")
        ending = _sample(sampler, progress, watcher, losses)
        return _finish(sampler, progress, ending, losses, perf_counter() - began)
    except Exception as error:
        reason, seconds = reason_of(error, "a NUTS run"), perf_counter() - began
        if sampler is not None and progress is not None:
            try:
                return _finish(sampler, progress, Ending.FAILED, losses, seconds, reason)
            except Exception as another:
                reason_of(another, "keeping what a failed NUTS run had drawn")
        return failed_fit(plan, reason, seconds)


def _sample(sampler: Sampler, progress: _Progress, watcher: Watcher, losses: list[np.ndarray]) -> Ending:
    nuts = sampler.plan.nuts
    length, total = 1, nuts.warmup + nuts.samples
    while True:
        while progress.step < total:
            if watcher.should_stop():
                return Ending.STOPPED
            n = min(length, total - progress.step)
            began = perf_counter()
            found = sampler.advance(n)
            seconds = perf_counter() - began
            first = progress.chain * total + progress.step
            _keep(progress, found, max(0, nuts.warmup - progress.step))
            progress.step += n
            losses.append(found["energy"])
            if not np.isfinite(found["energy"]).any():
                return Ending.DIVERGED
            watcher.on_chunk(_chunk(sampler, progress, watcher, first, found, seconds))
            length = int(np.clip(length * np.clip(WANTED_SECONDS / max(seconds, 1e-6), 0.5, 2.0), 1, BUFFER))
        if progress.chain + 1 == nuts.chains:
            return Ending.FINISHED
        # The state moves first: a restart that breaks leaves progress that still belongs to the state.
        sampler.restart(progress.chain + 1)
        progress.chain, progress.step = progress.chain + 1, 0
        progress.draws.append({name: [] for name in sampler.names})


def _keep(progress: _Progress, found: dict[str, np.ndarray], skip: int) -> None:
    """Add what lies after the warm-up."""
    for name, parts in progress.draws[-1].items():
        if skip < len(found[name]):
            parts.append(found[name][skip:])
    progress.moments.add({name: found[name][skip:] for name in ELASTICITIES})
    progress.divergent += int(found["divergent"][skip:].sum())


def _chunk(
    sampler: Sampler, progress: _Progress, watcher: Watcher, first: int, found: dict[str, np.ndarray], seconds: float
) -> Chunk:
    state, moments = sampler.state, progress.moments
    notes = {
        "chain": float(progress.chain + 1),
        "step_size": float(state.adapt_state.step_size),
        "acceptance": float(state.mean_accept_prob),
        "divergent": float(progress.divergent),
    }
    estimates = _estimates(moments, watcher.pinned) if moments.count > 1 else None
    losses = np.asarray(found["energy"], np.float64)
    return Chunk(first, losses, seconds, estimates, notes, lambda: _kept(sampler, progress))


def _kept(sampler: Sampler, progress: _Progress) -> dict[str, np.ndarray]:
    """All that sampling needs to go on bit for bit, the draws so far among it."""
    leaves = {f"leaf_{i}": np.array(leaf) for i, leaf in enumerate(jax.tree.leaves(sampler.state))}
    counts = np.array([progress.chain, progress.step, progress.divergent, *_lengths(progress)])
    return {**leaves, **{ARRAY + name: values for name, values in _flat(progress).items()}, "counts": counts}


def _estimates(moments: RunningMoments, pinned: tuple[int, ...]) -> Estimates:
    mean, sd = moments.mean(), moments.sd()
    at = list(pinned)
    return Estimates(
        float(mean[sites.GLOBAL]), float(sd[sites.GLOBAL]), mean[sites.CATEGORY], sd[sites.CATEGORY],
        mean[sites.PRODUCT][at], sd[sites.PRODUCT][at],
    )  # fmt: skip


def _resumed(sampler: Sampler, arrays: Mapping[str, np.ndarray]) -> _Progress:
    chain, step, divergent, *lengths = (int(n) for n in arrays["counts"])
    like, structure = jax.tree.flatten(sampler.state)
    leaves = [jnp.asarray(arrays[f"leaf_{i}"]) for i in range(len(like))]
    sampler.state = jax.device_put(jax.tree.unflatten(structure, leaves), sampler.device)
    edges = np.cumsum(lengths)[:-1]
    parts = {name: np.split(np.asarray(arrays[ARRAY + name]), edges) for name in sampler.names}
    draws = [{name: [parts[name][i]] if n else [] for name in sampler.names} for i, n in enumerate(lengths)]
    moments = RunningMoments()
    moments.add({name: np.asarray(arrays[ARRAY + name]) for name in ELASTICITIES})
    return _Progress(draws, chain, step, divergent, moments)


def _finish(
    sampler: Sampler,
    progress: _Progress,
    ending: Ending,
    losses: list[np.ndarray],
    seconds: float,
    reason: str = "",
) -> Fit:
    draws, steps = _flat(progress), sum(len(part) for part in losses)
    diagnostics = {**_agreement(progress), "divergent": progress.divergent}
    if ending is Ending.FINISHED and diagnostics.get("largest_r_hat", 1.0) > LARGEST_R_HAT:
        ending = Ending.NOT_CONVERGED
    usable = ending is not Ending.DIVERGED and len(draws[sites.GLOBAL]) >= FEWEST_DRAWS
    return Fit(
        plan=sampler.plan,
        state=_kept(sampler, progress),
        losses=np.concatenate(losses).astype(np.float64) if losses else np.zeros(0),
        outcome=Outcome(ending, ending.value.format(steps=steps, step=steps, reason=reason), usable),
        timing=Timing(sampler.compile_seconds, seconds - sampler.compile_seconds, steps),
        environment=describe_environment(),
        diagnostics=diagnostics,
    )


def _agreement(progress: _Progress) -> dict[str, Any]:
    """Split r-hat and effective sample size per product, and the worst r-hat of any elasticity; from whole chains."""
    longest = max(_lengths(progress))
    whole = [i for i, n in enumerate(_lengths(progress)) if n == longest]
    if longest < 4:
        return {}
    found = {}
    for name in ELASTICITIES:
        chains = np.stack([np.concatenate(progress.draws[i][name]) for i in whole]).astype(np.float64)
        found[name] = split_gelman_rubin(chains), effective_sample_size(chains)
    return {
        "r_hat": np.asarray(found[sites.PRODUCT][0]),
        "ess": np.asarray(found[sites.PRODUCT][1]),
        "largest_r_hat": float(max(np.max(r_hat) for r_hat, _ in found.values())),
        "smallest_ess": float(min(np.min(ess) for _, ess in found.values())),
    }


def count_draws(fit: Fit) -> int:
    """Draws that a fit keeps, all chains together."""
    return len(fit.state[ARRAY + sites.GLOBAL])


def draw(fit: Fit, panel: Panel, n_draws: int, seed: int = 0) -> Draws:
    """`n_draws` of the sampled draws, without repetition where there are enough."""
    names = site_names(panel, fit.plan.model)
    total = count_draws(fit)
    random = np.random.default_rng(seed)
    chosen = random.choice(total, n_draws, replace=n_draws > total)
    values = {name: np.asarray(fit.state[ARRAY + name])[chosen] for name in names}
    level = values.pop(sites.LEVEL_SERIES)
    if fit.plan.model.preset == "article":
        level = level + values[sites.PRODUCT][:, np.asarray(panel.product_of_series)] * np.asarray(panel.reference)
    return Draws(values.pop(sites.GLOBAL), values.pop(sites.CATEGORY), values.pop(sites.PRODUCT), level, values)


def _lengths(progress: _Progress) -> list[int]:
    return [sum(len(part) for part in chain[sites.GLOBAL]) for chain in progress.draws]


def _flat(progress: _Progress) -> dict[str, np.ndarray]:
    """All draws by site, chain after chain."""
    names = progress.draws[0]
    parts = {name: [part for chain in progress.draws for part in chain[name]] for name in names}
    return {name: np.concatenate(found) if found else np.zeros((0, 1)) for name, found in parts.items()}


ENGINES["nuts"] = Engine(fit, draw, in_team=False)
