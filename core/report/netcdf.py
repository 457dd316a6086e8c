"""Turn a posterior into a NetCDF file of named draws that ArviZ and xarray read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import xarray as xr

from core.inference.fit import Fit
from core.inference.plan import plan_to_dict
from core.model.sites import SITES
from core.posterior.posterior import Posterior

AXES = ("category", "product", "series", "period", "covariate")


def posterior_tree(posterior: Posterior, fit: Fit | None = None) -> xr.DataTree:
    """Groups `posterior` (draws; dimensions chain, draw, then named axes) and `constant_data` (rows, prices, units).

    Axes are named by the file's own category, product, period and covariate names; a series is named by its product
    and, where there are stores, its store. Draws of all chains stand in one chain. Arrays are not copied.
    """
    sizes = _axis_names(posterior)
    variables = {}
    for name, values in _draws(posterior).items():
        dims = ("chain", "draw", *_axes(name, values, sizes))
        variables[name] = xr.Variable(dims, values[None], attrs=_meaning(name))
    coords = _coordinates(posterior, sizes, {dim for variable in variables.values() for dim in variable.dims})
    draws = xr.Dataset(
        variables,
        coords={**coords, "chain": [0], "draw": np.arange(posterior.n_draws)},
        attrs={"inference_library": "numpyro", "created_by": "isoelastic", **_plan(fit)},
    )
    return xr.DataTree.from_dict({"posterior": draws, "constant_data": _constant_data(posterior, sizes)})


def write_posterior(path: Path, posterior: Posterior, fit: Fit | None = None) -> None:
    """Write `posterior_tree` as NetCDF-4 to `path`. Raises OSError where the disk refuses."""
    # Made in memory first: HDF5 that meets a full disk brings down the whole process when its file is closed.
    Path(path).write_bytes(posterior_tree(posterior, fit).to_netcdf(engine="h5netcdf"))


def series_names(posterior: Posterior) -> list[str]:
    """'product' or 'product / store' for every series."""
    labels = posterior.labels
    products = [labels.products[code] for code in posterior.product_of_series]
    if not labels.stores:
        return products
    stores = (labels.stores[code] for code in labels.store_of_series)
    return [f"{product} / {store}" for product, store in zip(products, stores, strict=True)]


def _axis_names(posterior: Posterior) -> dict[str, list[str]]:
    labels = posterior.labels
    names = {
        "category": list(labels.categories),
        "product": list(labels.products),
        "series": series_names(posterior),
        "period": list(labels.periods),
        "covariate": list(labels.covariates),
    }
    return {axis: names[axis] for axis in AXES}


def _draws(posterior: Posterior) -> dict[str, np.ndarray]:
    draws = posterior.draws
    return {
        "elasticity_global": draws.elasticity_global,
        "elasticity_category": draws.elasticity_category,
        "elasticity_product": draws.elasticity_product,
        "level_series": draws.level_series,
        **draws.others,
    }


def _axes(name: str, values: np.ndarray, sizes: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Named axes of a site where its shape agrees with them, as of the shared time effect; else axes of its own."""
    site = SITES.get(name)
    shape = values.shape[1:]
    for axes in (site.axes, site.axes[-1:]) if site else ():
        if shape == tuple(len(sizes[axis]) for axis in axes):
            return axes
    return tuple(f"{name}_dim_{at}" for at in range(len(shape)))


def _meaning(name: str) -> dict[str, str]:
    return {"long_name": SITES[name].meaning} if name in SITES else {}


def _coordinates(posterior: Posterior, names: Mapping[str, list[str]], used: set[object]) -> dict[str, xr.Variable]:
    labels = posterior.labels
    coords = {axis: _text(axis, names[axis]) for axis in AXES if axis in used}
    if "product" in used:
        category = [labels.categories[code] for code in posterior.category_of_product]
        coords["category_of_product"] = _text("product", category)
    if "series" in used:
        coords["product_of_series"] = _text("series", [labels.products[code] for code in posterior.product_of_series])
        if labels.stores:
            coords["store_of_series"] = _text("series", [labels.stores[code] for code in labels.store_of_series])
    return coords


def _constant_data(posterior: Posterior, names: Mapping[str, list[str]]) -> xr.Dataset:
    labels = posterior.labels
    by_product = {"n_obs": labels.n_obs, "price_sd": labels.price_sd}
    by_series = {"reference_price": labels.reference_price, "mean_units": labels.mean_units}
    return xr.Dataset(
        {
            **{name: ("product", np.asarray(values)) for name, values in by_product.items()},
            **{name: ("series", np.asarray(values)) for name, values in by_series.items()},
        },
        coords={"product": _text("product", names["product"]), "series": _text("series", names["series"])},
    )


def _text(axis: str, names: list[str]) -> xr.Variable:
    # HDF5 ends a text at its first zero sign, and refuses one inside.
    return xr.Variable((axis,), np.array([name.replace("\0", "\ufffd") for name in names], dtype=object))


def _plan(fit: Fit | None) -> dict[str, str]:
    if fit is None:
        return {}
    return {"plan": json.dumps(plan_to_dict(fit.plan)), "outcome": fit.outcome.sentence}
