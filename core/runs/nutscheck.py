"""Turn a finished run and a few of its products into the runs that check it with NUTS on the market of these alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import numpy as np
import pandas as pd

from core.errors import Problem, UserError
from core.inference.plan import FitPlan, plan_with
from core.report.wording import plural
from core.runs.forecast import forecast
from core.runs.requests import RunRequest, RunResult, RunSummary
from core.runs.store import RunRow

USUAL = 20
"""Products that a check takes unless someone chooses."""
MOST = 50
"""Products up to which NUTS answers in minutes."""
BAD_CHOICE = "nuts-check"


def products_to_check(products: pd.DataFrame, most: int = USUAL) -> tuple[str, ...]:
    """All products of a small market; of a larger one those with the largest k-hat, in doubt most, or, where the
    engine reports none, an even choice from few rows to many. `products` are the product rows of an elasticity table.
    """
    if len(products) <= MOST:
        return tuple(products["product"])
    if "k_hat" in products and products["k_hat"].notna().any():
        return tuple(products.nlargest(most, "k_hat")["product"])
    by_rows = products.sort_values("n_obs", kind="stable")["product"].to_numpy()
    return tuple(by_rows[np.linspace(0, len(by_rows) - 1, most).astype(int)])


def check_requests(
    run: RunResult, products: Collection[str], name_of: Callable[[FitPlan], str], owner: str = "", shared: bool = True
) -> tuple[RunRequest, ...]:
    """The same plan with its own engine and with NUTS, on `products` alone; for a run of NUTS the structured engine
    stands beside it. What the run itself has done already, its engine on all its products, is not asked for again.

    `name_of` says what a run of a plan is called by default. Raises UserError for no product or more than 50.
    """
    chosen = tuple(name for name in run.labels.products if name in set(products))
    if not 1 <= len(chosen) <= MOST:
        raise UserError(
            Problem(BAD_CHOICE, f"{len(chosen)} products cannot be checked", f"Choose 1 to {MOST}.", where="products")
        )
    own = run.fit.plan
    other = "structured" if own.engine == "nuts" else "nuts"
    everything = len(chosen) == len(run.labels.products)
    engines = (other,) if everything else (own.engine, other)
    named = run.products if everything else chosen
    return tuple(
        RunRequest(
            run.dataset_id, run.roles, run.choices, plan, name=_name(run, plan, name_of, chosen),
            owner=owner, shared=shared, products=named,
        )
        for plan in (plan_with(own, engine=engine) for engine in engines)
    )  # fmt: skip


def cost_in_words(run: RunResult, products: pd.DataFrame, earlier: Iterable[RunRow]) -> str:
    """What the check of `products`, rows of the run's table, will take; `earlier` are the runs of this installation."""
    rows = int(products["n_obs"].sum())
    engine = "structured" if run.fit.plan.engine == "nuts" else "nuts"
    time = forecast(plan_with(run.fit.plan, engine=engine), rows, earlier)
    what = f"{plural(len(products), 'product')} with {plural(rows, 'row')}"
    slow = "NUTS samples the posterior itself and can take minutes; here " if engine == "nuts" else "Takes "
    return f"{what}. {slow}{time}. It runs in the background, after what waits already."


def partner_of(run_id: str, runs: Iterable[RunSummary]) -> tuple[str, ...]:
    """Other usable runs of the same data set by id: those of the same products first, newest first."""
    listed = tuple(runs)
    own = next((run for run in listed if run.run_id == run_id), None)
    if own is None:
        return ()
    others = [run for run in listed if run.usable and run.dataset_id == own.dataset_id and run.run_id != run_id]
    return tuple(run.run_id for run in sorted(others, key=lambda run: run.products != own.products))


def _name(run: RunResult, plan: FitPlan, name_of: Callable[[FitPlan], str], chosen: tuple[str, ...]) -> str:
    """A run's default name changes with its engine; one that a person gave is kept, and the engine said after it."""
    size = plural(len(chosen), "product")
    base = run.name.removesuffix(f" · {size}")
    if base == name_of(run.fit.plan):
        return f"{name_of(plan)} · {size}"
    engine = "" if plan.engine == run.fit.plan.engine else {"nuts": " · NUTS"}.get(plan.engine, " · Structured")
    return f"{base}{engine} · {size}"
