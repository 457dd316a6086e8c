"""Turn a request into what an engine reads: kept source, validated sales, panel and labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from core.errors import Problem, UserError
from core.panel import Panel, PanelLabels
from core.report.wording import plural
from core.runs.requests import RunRequest

if TYPE_CHECKING:
    from core.data.sales import SalesTable
    from core.runs.datasets import DatasetStore

EXAMPLES = 3


@dataclass(frozen=True)
class Prepared:
    """A data set ready to be fitted, with the sales table it came from."""

    sales: SalesTable
    problems: tuple[Problem, ...]
    """What was changed or is worth knowing; no errors."""
    panel: Panel
    labels: PanelLabels

    @property
    def n_obs(self) -> int:
        """Cells with data."""
        return int(self.labels.n_obs.sum())


def prepare(datasets: DatasetStore, request: RunRequest, on_phase: Callable[[str], None]) -> Prepared:
    """Read, validate and encode. Raises UserError with every problem that stands in the way."""
    from core.data.encoding import encode
    from core.data.validation import validate

    on_phase("reading")
    checked = validate(datasets.source(request.dataset_id), request.roles, request.choices)
    if checked.sales is None:
        raise UserError(problem for problem in checked.problems if problem.severity == "error")
    on_phase("encoding")
    sales, unknown = chosen_sales(checked.sales, request.products)
    panel, labels = encode(sales)
    return Prepared(sales, (*checked.problems, *unknown), panel, labels)


def chosen_sales(sales: SalesTable, products: tuple[str, ...]) -> tuple[SalesTable, tuple[Problem, ...]]:
    """The sales of the chosen products, all where none are named; a note on names that the data lack.

    Raises UserError where no chosen product is in the data.
    """
    from core.data.sales import of_products

    if not products:
        return sales, ()
    chosen = of_products(sales, products)
    known = set(chosen.frame["product"].astype(str))
    lacking = tuple(name for name in products if name not in known)
    if not lacking:
        return chosen, ()
    what = f"{plural(len(lacking), 'chosen product')} not in the data"
    problem = Problem(
        "products-unknown", what, "Check how they are spelt.", severity="warning", examples=lacking[:EXAMPLES]
    )
    if not known:
        raise UserError(replace(problem, severity="error"))
    return chosen, (problem,)


def pinned_codes(request: RunRequest, labels: PanelLabels) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Codes of the products to watch, and the names among them that the data lack."""
    codes = {name: code for code, name in enumerate(labels.products)}
    known = tuple(codes[name] for name in request.pinned if name in codes)
    return known, tuple(name for name in request.pinned if name not in codes)
