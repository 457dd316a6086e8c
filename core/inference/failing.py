"""Turn an exception inside a fit into how the fit ended: a sentence for the user, a traceback for the log."""

from __future__ import annotations

import logging

import numpy as np

from core.environment import describe_environment
from core.errors import UserError
from core.inference.fit import Ending, Fit, Outcome, Timing
from core.inference.hosts import line_broken
from core.inference.plan import FitPlan

LOG = logging.getLogger(__name__)


def reason_of(error: Exception, what: str) -> str:
    """Why `what` failed, for `Ending.FAILED`; an error that no one foresaw is logged with its traceback."""
    foreseen = error if isinstance(error, UserError) else line_broken(error)
    if foreseen is not None:
        return " ".join(str(problem) for problem in foreseen.problems)
    LOG.error("%s failed", what, exc_info=error)
    first_line = (str(error).splitlines() or ["no message"])[0]
    return f"{type(error).__name__}: {first_line}"


def failed_fit(plan: FitPlan, reason: str, seconds: float) -> Fit:
    """A fit that broke before there was anything to keep; `seconds` is how long it took."""
    return Fit(
        plan=plan,
        state={},
        losses=np.zeros(0),
        outcome=Outcome(Ending.FAILED, Ending.FAILED.value.format(reason=reason), usable=False),
        timing=Timing(0.0, seconds, 0),
        environment=describe_environment(),
    )
