"""Solve the arrow's head: the categories' shared unknowns and the market's, dense and in float64 on the host.

A category's *message* is what its leaves and cells say about its shared unknowns: precision K and score n at the
current means. With the priors above, block elimination category -> market gives the Newton step, the covariances and
the log determinant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg.lapack import dpotrf, dpotri

from core.inference.structured.columns import Columns

LAPACK_FROM = 4
"""Size from which on LAPACK matrix by matrix beats NumPy's batches."""


class Means(NamedTuple):
    """Where the shared unknowns are."""

    shared: Float[np.ndarray, "category column"]
    market: Float[np.ndarray, "market"]


class Message(NamedTuple):
    """What is known of shared unknowns from below, priors of theirs apart."""

    precision: Float[np.ndarray, "category column column"]
    score: Float[np.ndarray, "category column"]


@dataclass(frozen=True)
class HeadPrior:
    """Priors of the shared unknowns, as precisions."""

    time: float
    top: Float[np.ndarray, "top"]
    """Of each top unknown around its parent in the market."""
    market_mean: Float[np.ndarray, "top"]
    market: Float[np.ndarray, "top"]


@dataclass(frozen=True)
class Head:
    """The solved head: step, covariances, and the pieces from which it is drawn."""

    own_inverse: Float[np.ndarray, "category own own"]
    """Covariance of a category's own unknowns given the market's."""
    slope: Float[np.ndarray, "category own market"]
    """own = mean - slope (market - mean)."""
    market_covariance: Float[np.ndarray, "market market"]
    step: Means
    log_det: float
    """Of the head's precision."""
    gain: float
    """What the step adds to the log density of a Gaussian with these messages."""

    def covariance(self, columns: Columns) -> Float[np.ndarray, "category column column"]:
        """Of each category's shared columns, the market's own doubt included."""
        tilted = self.slope @ self.market_covariance
        own = self.own_inverse + tilted @ self.slope.transpose(0, 2, 1)
        if not columns.shared_time:
            return own
        t, n = columns.periods, own.shape[0]
        full = np.empty((n, columns.size, columns.size))
        full[:, :t, :t] = self.market_covariance[columns.top :, columns.top :]
        full[:, t:, t:] = own
        full[:, t:, :t] = -tilted[:, :, columns.top :]
        full[:, :t, t:] = full[:, t:, :t].transpose(0, 2, 1)
        return full

    def distances(self, columns: Columns, top: int) -> Float[np.ndarray, "category category"]:
        """Covariance of top unknown `top`'s distances from their parent."""
        at = columns.own_time + top
        slope = self.slope[:, at, :].copy()
        slope[:, top] += 1.0
        spread = slope @ self.market_covariance @ slope.T
        spread[np.diag_indices_from(spread)] += self.own_inverse[:, at, at]
        return spread


def solve(columns: Columns, message: Message, prior: HeadPrior, means: Means) -> Head:
    """Eliminate each category's own unknowns into the market's. Raises LinAlgError where a number is not finite."""
    own_time, top = columns.own_time, columns.top
    first = columns.size - own_time - top
    pull = np.concatenate([np.full(own_time, prior.time), prior.top])
    parent = np.concatenate([np.zeros(own_time), means.market[:top]])
    own = message.precision[:, first:, first:].copy()
    own[:, np.arange(pull.size), np.arange(pull.size)] += pull
    score = message.score[:, first:] - pull * (means.shared[:, first:] - parent)
    cross = np.zeros((own.shape[0], pull.size, columns.market))
    cross[:, own_time + np.arange(top), np.arange(top)] = -prior.top
    cross[:, :, top:] = message.precision[:, first:, :first]
    market = np.zeros((columns.market, columns.market))
    market_score = np.zeros(columns.market)
    market[np.arange(top), np.arange(top)] = prior.market + own.shape[0] * prior.top
    market_score[:top] = prior.top * (means.shared[:, columns.periods :] - means.market[:top]).sum(axis=0)
    market_score[:top] -= prior.market * (means.market[:top] - prior.market_mean)
    if columns.shared_time:
        market[top:, top:] = message.precision[:, :first, :first].sum(axis=0) + prior.time * np.eye(first)
        market_score[top:] = message.score[:, :first].sum(axis=0) - prior.time * means.market[top:]
    whole_score = market_score.copy()
    inverse, log_det = inverse_and_log_det(own)
    slope = inverse @ cross
    market -= np.einsum("cij,cik->jk", cross, slope)
    market_score -= np.einsum("cij,ci->j", slope, score)
    covariance, market_log_det = inverse_and_log_det(market)
    market_step = covariance @ market_score
    own_step = np.einsum("cij,cj->ci", inverse, score) - slope @ market_step
    step = own_step
    if columns.shared_time:
        step = np.concatenate([np.broadcast_to(market_step[top:], (own.shape[0], first)), own_step], axis=1)
    gain = 0.5 * float(np.sum(score * own_step) + whole_score @ market_step)
    return Head(inverse, slope, covariance, Means(step, market_step), float(log_det.sum() + market_log_det), gain)


def log_evidence(columns: Columns, message: Message, prior: HeadPrior, means: Means) -> float:
    """Log evidence of the top unknowns' spreads given the messages, up to a constant in them."""
    head = solve(columns, message, prior, means)
    gaps = means.shared[:, columns.periods :] - means.market[: columns.top]
    value = 0.5 * gaps.shape[0] * np.sum(np.log(prior.top)) - 0.5 * np.sum(prior.top * gaps**2)
    return float(value - 0.5 * head.log_det + head.gain)


def inverse_and_log_det(matrix: Float[np.ndarray, "*batch n n"]) -> tuple[np.ndarray, np.ndarray]:
    """Inverse and log determinant of positive definite matrices, scaled to unit diagonal first for accuracy."""
    if matrix.shape[-1] == 0:
        return matrix.copy(), np.zeros(matrix.shape[:-2])
    if not np.isfinite(matrix).all():
        raise np.linalg.LinAlgError("a precision is not finite")
    scale = np.sqrt(np.diagonal(matrix, axis1=-2, axis2=-1))
    scaled = matrix / (scale[..., :, None] * scale[..., None, :])
    if matrix.ndim == 2 or matrix.shape[-1] > LAPACK_FROM:
        flat = scaled.reshape(-1, *matrix.shape[-2:])
        pairs = [_invert(one) for one in flat]
        inverse = np.stack([pair[0] for pair in pairs]).reshape(matrix.shape)
        log_det = np.array([pair[1] for pair in pairs]).reshape(matrix.shape[:-2])
    else:
        factor = np.linalg.cholesky(scaled)
        log_det = 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        whitened = np.linalg.inv(factor)
        inverse = np.swapaxes(whitened, -1, -2) @ whitened
    return inverse / (scale[..., :, None] * scale[..., None, :]), log_det + 2 * np.log(scale).sum(axis=-1)


def _invert(matrix: Float[np.ndarray, "n n"]) -> tuple[np.ndarray, float]:
    factor, failed = dpotrf(matrix, lower=True)
    if failed:
        raise np.linalg.LinAlgError("a precision is not positive definite")
    inverse, _ = dpotri(factor, lower=True)
    half = np.tril(inverse)
    return half + np.tril(half, -1).T, 2 * float(np.log(np.diagonal(factor)).sum())


def without_time(columns: Columns, message: Message, prior: HeadPrior, means: Means) -> tuple[Columns, Message, Means]:
    """Eliminate a category's own time effects: the same problem in top unknowns (and shared time effects) alone."""
    t = columns.own_time
    if t == 0:
        return columns, message, means
    time = message.precision[:, :t, :t] + prior.time * np.eye(t)
    inverse, _ = inverse_and_log_det(time)
    slope = inverse @ message.precision[:, :t, t:]
    rest = message.score[:, :t] - prior.time * means.shared[:, :t]
    reduced = Message(
        message.precision[:, t:, t:] - np.einsum("cti,ctj->cij", message.precision[:, :t, t:], slope),
        message.score[:, t:] - np.einsum("cti,ct->ci", slope, rest),
    )
    return Columns(0, columns.has_level, columns.covariates, False), reduced, Means(means.shared[:, t:], means.market)
