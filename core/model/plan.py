"""What is to be estimated: likelihood, time effects, scales and priors, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.declare import declared, violations
from core.errors import Problem, UserError

LIKELIHOODS = {
    "poisson": "Counts that vary as much as their mean. Intervals come out too narrow when sales are noisier.",
    "negbin": "Counts that vary more than their mean; each category learns how much. The safe choice.",
}
TIME_EFFECTS = {
    "category": "Every category has its own level in every period: seasons and trends do not pass for price effects.",
    "shared": "One level per period for the whole market.",
    "none": "No time effects: sales differ between periods by price and covariates alone.",
}
SCALES = {
    "learned": "How far products spread around their category is estimated from the data.",
    "fixed": "The spread is fixed at the numbers in the priors table.",
}
PRESETS = {
    "isoelastic": "Centred prices, product levels pooled in their category.",
    "article": "The published benchmark's model: uncentred prices, independent levels, fixed scales, clipped demand.",
}


@dataclass(frozen=True)
class Priors:
    """Prior means and scales, on the log scale of demand.

    A scale is that of a half-normal prior where scales are learned, and the value itself where they are fixed.
    """

    elasticity_mean: float = declared(
        -2.0, "Mean elasticity", "Where the market's mean elasticity is expected", unit="% units per % price"
    )
    elasticity_sd: float = declared(1.0, "Its uncertainty", "Standard deviation of that expectation", low=1e-3)
    elasticity_category_scale: float = declared(
        1.0,
        "Categories around the market",
        "Typical distance of a category's elasticity from the market's",
        low=1e-3,
    )
    elasticity_product_scale: float = declared(
        1.0,
        "Products around their category",
        "Typical distance of a product's elasticity from its category's",
        low=1e-3,
    )
    level_sd: float = declared(3.0, "Market level", "Standard deviation of the market's mean log units", low=1e-3)
    level_category_scale: float = declared(
        2.0, "Category levels", "Typical distance of a category's log units from the market's", low=1e-3
    )
    level_series_scale: float = declared(
        2.0,
        "Series levels",
        "Typical distance of a product's (and store's) log units from its category's",
        low=1e-3,
    )
    time_scale: float = declared(0.5, "Time effects", "Typical size of a period's effect on log units", low=1e-3)
    covariate_sd: float = declared(
        1.0, "Covariate effects", "Standard deviation of a covariate's market effect", low=1e-3
    )
    covariate_scale: float = declared(
        0.5,
        "Covariates by category",
        "Typical distance of a category's covariate effect from the market's",
        low=1e-3,
    )
    concentration_mean: float = declared(
        1.0,
        "Log concentration",
        "Expected log of the negative binomial's concentration; large is close to Poisson",
    )
    concentration_sd: float = declared(1.5, "Its uncertainty", "Standard deviation of that expectation", low=1e-3)
    concentration_scale: float = declared(
        0.5,
        "Concentration by category",
        "Distance of a category's log concentration from the market's",
        low=1e-3,
    )


ARTICLE_PRIORS = Priors(
    elasticity_mean=-2.0,
    elasticity_sd=1.0,
    elasticity_category_scale=1.0,
    elasticity_product_scale=2.0,
    level_series_scale=3.0,
    time_scale=3.0,
)


@dataclass(frozen=True)
class ModelPlan:
    """The demand model to fit. Raises UserError when fields contradict each other, naming all that do."""

    likelihood: str = declared("negbin", "Likelihood", "How units scatter around expected demand", choices=LIKELIHOODS)
    time_effects: str = declared(
        "category", "Time effects", "What seasons and trends may do to demand", choices=TIME_EFFECTS
    )
    scales: str = declared("learned", "Scales", "Learn the hierarchy's spreads or fix them", choices=SCALES)
    preset: str = declared("isoelastic", "Form", "The model's form", choices=PRESETS, advanced=True)
    priors: Priors = field(default_factory=Priors)

    def __post_init__(self) -> None:
        found = violations(self) + violations(self.priors)
        if self.preset == "article":
            if self.likelihood != "poisson":
                found.append("the article's preset has a Poisson likelihood: set likelihood=poisson")
            if self.scales != "fixed":
                found.append("the article's preset has fixed scales: set scales=fixed")
        if found:
            raise UserError(Problem("plan", what, "Change it and start again.", where="model") for what in found)


ARTICLE_MODEL = ModelPlan(
    likelihood="poisson", time_effects="category", scales="fixed", preset="article", priors=ARTICLE_PRIORS
)
