"""Name the unknowns that a category's series share, in the order of the dense block: periods, elasticity, level,
covariates. All but the periods are 'top' unknowns, which have a parent in the market."""

from __future__ import annotations

from dataclasses import dataclass

from core.model import sites
from core.model.plan import ModelPlan
from core.panel import Panel


@dataclass(frozen=True)
class Columns:
    """Sizes of a category's shared block. `shared_time`: one time effect for the whole market, not one a category."""

    periods: int
    has_level: bool
    covariates: int
    shared_time: bool

    @property
    def elasticity(self) -> int:
        return self.periods

    @property
    def level(self) -> int:
        """Column of the category's level; only where `has_level`."""
        return self.periods + 1

    @property
    def first_covariate(self) -> int:
        return self.periods + 1 + int(self.has_level)

    @property
    def top(self) -> int:
        """Number of unknowns with a parent in the market."""
        return 1 + int(self.has_level) + self.covariates

    @property
    def size(self) -> int:
        return self.periods + self.top

    @property
    def own_time(self) -> int:
        """Time columns that belong to the category alone."""
        return 0 if self.shared_time else self.periods

    @property
    def market(self) -> int:
        """Number of the market's own unknowns: parents of the top ones, then shared time effects."""
        return self.top + (self.periods if self.shared_time else 0)

    @property
    def scale_of_top(self) -> tuple[str, ...]:
        """Name of the spread of each top unknown around its parent."""
        level = (sites.SITES[sites.LEVEL_CATEGORY].scale,) if self.has_level else ()
        covariate = (sites.SITES[sites.COVARIATE_CATEGORY].scale,) * self.covariates
        return (sites.SITES[sites.CATEGORY].scale, *level, *covariate)


def columns_of(panel: Panel, plan: ModelPlan) -> Columns:
    timed = plan.time_effects != "none" and panel.n_periods > 0
    return Columns(
        periods=panel.n_periods if timed else 0,
        has_level=plan.preset != "article",
        covariates=panel.n_covariates,
        shared_time=timed and plan.time_effects == "shared",
    )
