"""Ask before a fit starts whether it fits into memory, and refuse with figures where it does not."""

from __future__ import annotations

from core.inference.plan import FitPlan
from core.panel import Panel
from core.settings import Settings


def check_memory(plan: FitPlan, panel: Panel, settings: Settings) -> tuple[str, ...]:
    """A sentence on the memory a fit will take. Raises UserError where it would take more than is allowed."""
    return ()
