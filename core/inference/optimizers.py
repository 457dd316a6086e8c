"""The optimisers and learning-rate schedules an analyst may choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import optax

CLIP = 10.0
"""Largest absolute gradient of one unknown that clipped Adam passes on, as in NumPyro's ClippedAdam."""


@dataclass(frozen=True)
class OptimizerSpec:
    """One update rule: `build(schedule)` makes the optax transformation."""

    label: str
    help: str
    rule: Callable[[optax.Schedule], optax.GradientTransformation]
    clip: float | None = None
    """Largest absolute gradient of one unknown that is passed on."""

    def build(self, schedule: optax.Schedule, batches: int = 1) -> optax.GradientTransformation:
        """The transformation. Of mini-batches, gradients are so many times larger, and so is what is clipped."""
        if self.clip is None:
            return self.rule(schedule)
        return optax.chain(optax.clip(self.clip * batches), self.rule(schedule))


@dataclass(frozen=True)
class ScheduleSpec:
    """One schedule: `build(learning_rate, steps)` makes the optax schedule."""

    label: str
    help: str
    build: Callable[[float, int], optax.Schedule]


def _article_schedule(learning_rate: float, steps: int) -> optax.Schedule:
    return optax.exponential_decay(learning_rate, transition_steps=1_000, decay_rate=0.99, end_value=1e-5)


OPTIMIZERS: dict[str, OptimizerSpec] = {
    "adam": OptimizerSpec("Adam", "The standard.", optax.adam),
    "adamw": OptimizerSpec("AdamW", "Adam with weight decay, as in the article.", optax.adamw),
    "clipped-adam": OptimizerSpec(
        "Clipped Adam",
        "Adam on elementwise clipped gradients: survives a wild first step.",
        optax.adam,
        CLIP,
    ),
    "adabelief": OptimizerSpec("AdaBelief", "Steps by how well gradients are predicted.", optax.adabelief),
    "rmsprop": OptimizerSpec("RMSProp", "Scaled gradients without momentum.", optax.rmsprop),
    "sgd": OptimizerSpec("SGD", "Plain gradient steps: for comparison.", optax.sgd),
}

SCHEDULES: dict[str, ScheduleSpec] = {
    "constant": ScheduleSpec(
        "Constant", "The same rate throughout.", lambda rate, steps: optax.constant_schedule(rate)
    ),
    "cosine": ScheduleSpec(
        "Cosine",
        "Falls smoothly to zero at the last step.",
        lambda rate, steps: optax.cosine_decay_schedule(rate, steps),
    ),
    "exponential": ScheduleSpec(
        "Exponential decay",
        "Falls by a constant factor per step, to a hundredth at the last.",
        lambda rate, steps: optax.exponential_decay(rate, transition_steps=steps, decay_rate=0.01),
    ),
    "one-cycle": ScheduleSpec(
        "One cycle",
        "Rises, then falls.",
        lambda rate, steps: optax.cosine_onecycle_schedule(steps, peak_value=rate),
    ),
    "article": ScheduleSpec("The article's", "Times 0.99 every 1,000 steps, floor 1e-5.", _article_schedule),
}
