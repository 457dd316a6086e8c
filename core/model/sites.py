"""Name the unknowns of the demand model once, with the axes they run over and a sentence each."""

from __future__ import annotations

from dataclasses import dataclass

GLOBAL = "elasticity_global"
CATEGORY = "elasticity_category"
PRODUCT = "elasticity_product"
LEVEL_GLOBAL = "level_global"
LEVEL_CATEGORY = "level_category"
LEVEL_SERIES = "level_series"
TIME = "time_effect"
COVARIATE_GLOBAL = "covariate_global"
COVARIATE_CATEGORY = "covariate_category"
CONCENTRATION_GLOBAL = "concentration_global"
CONCENTRATION_CATEGORY = "concentration_category"


@dataclass(frozen=True)
class Site:
    """One unknown. `axes` are Panel axes; `scale` names the site of its spread around its parent, if it has one."""

    axes: tuple[str, ...]
    label: str
    """What it is called in a picture."""
    meaning: str
    scale: str = ""


SITES: dict[str, Site] = {
    GLOBAL: Site((), "market elasticity", "The market's price elasticity, % units per % price"),
    CATEGORY: Site(("category",), "category elasticity", "A category's price elasticity", "elasticity_category_scale"),
    PRODUCT: Site(("product",), "product elasticity", "A product's price elasticity", "elasticity_product_scale"),
    LEVEL_GLOBAL: Site((), "market sales level", "The market's log units at usual prices"),
    LEVEL_CATEGORY: Site(
        ("category",), "category sales level", "A category's log units at usual prices", "level_category_scale"
    ),
    LEVEL_SERIES: Site(
        ("series",), "series sales level", "A series' log units at its usual price", "level_series_scale"
    ),
    TIME: Site(
        ("category", "period"), "period effect", "A period's effect on log units; shared: period only", "time_scale"
    ),
    COVARIATE_GLOBAL: Site(
        ("covariate",), "market covariate effect", "A covariate's effect on log units in the market"
    ),
    COVARIATE_CATEGORY: Site(
        ("category", "covariate"), "category covariate effect", "A covariate's effect in a category", "covariate_scale"
    ),
    CONCENTRATION_GLOBAL: Site(
        (), "market concentration", "Log concentration of the market's counts; large is close to Poisson"
    ),
    CONCENTRATION_CATEGORY: Site(("category",), "category concentration", "Log concentration of a category's counts"),
}

SCALES: dict[str, str] = {site.scale: name for name, site in SITES.items() if site.scale}
"""Site of each spread -> the site that spreads by it; also the prior's field of the same name."""

POOLED: tuple[str, ...] = (CATEGORY, PRODUCT, LEVEL_CATEGORY, LEVEL_SERIES, TIME, COVARIATE_CATEGORY)
"""Sites that the non-centred parameterisation writes as standardised distances from their parent."""
