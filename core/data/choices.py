"""What to do about each kind of trouble in a file: one declared choice for each, with the default that is safest."""

from __future__ import annotations

from dataclasses import dataclass

from core.declare import declared, violations
from core.errors import Problem, UserError

LEAVE_OUT = "Leave these rows out."
STOP = "Treat it as an error: the file must be mended first."


@dataclass(frozen=True)
class Choices:
    """How validation treats what it finds. Raises UserError naming every field with an unknown value."""

    decimal_mark: str = declared(
        "auto",
        "Decimal mark",
        "What separates whole from part in numbers",
        choices={
            "auto": "By what the columns show.",
            "point": "1,234.56 is a thousand and some.",
            "comma": "1.234,56 is a thousand and some.",
        },
    )
    date_order: str = declared(
        "auto",
        "Dates",
        "Whether day or month comes first in dates such as 3/4/2024",
        choices={
            "auto": "By what the whole column shows.",
            "day-first": "3/4/2024 is the third of April.",
            "month-first": "3/4/2024 is March the fourth.",
        },
    )
    negative_units: str = declared(
        "net",
        "Returns",
        "Rows with negative units",
        choices={
            "net": "Take returns off the sales of the same product, store and period; leave the others out.",
            "leave-out": LEAVE_OUT,
            "stop": STOP,
        },
    )
    bad_price: str = declared(
        "leave-out",
        "Prices",
        "Rows whose price is missing, unreadable, zero or negative",
        choices={"leave-out": LEAVE_OUT, "stop": STOP},
    )
    bad_units: str = declared(
        "leave-out",
        "Units",
        "Rows whose units are missing or unreadable",
        choices={"leave-out": LEAVE_OUT, "zero": "Missing units mean that nothing was sold.", "stop": STOP},
    )
    bad_period: str = declared(
        "leave-out",
        "Periods",
        "Rows whose date is missing or unreadable",
        choices={"leave-out": LEAVE_OUT, "stop": STOP},
    )
    fractional_units: str = declared(
        "refuse",
        "Fractions",
        "Units that are not whole numbers, beyond rounding noise",
        choices={
            "refuse": "Stop: the model counts whole units.",
            "round": "Round to the nearest whole number.",
            "leave-out": LEAVE_OUT,
        },
    )
    duplicates: str = declared(
        "aggregate",
        "Repeats",
        "Several rows of one product, store and period",
        choices={
            "aggregate": "Add up their units, weight their prices by units.",
            "drop-copies": "Leave out exact copies of a row, then add up.",
            "stop": STOP,
        },
    )
    category_conflict: str = declared(
        "most-frequent",
        "Two categories",
        "Products that stand in more than one category",
        choices={
            "most-frequent": "Put each into the category of most of its rows.",
            "separate": "Treat it as a product of its own in each category.",
            "leave-out": "Leave these products out.",
        },
    )
    constant_price: str = declared(
        "keep",
        "Fixed prices",
        "Products that never change price",
        choices={
            "keep": "Keep them: their elasticity is their category's, and says so.",
            "leave-out": "Leave these products out.",
        },
    )
    missing_covariate: str = declared(
        "leave-out",
        "Covariates",
        "Rows without a value of a covariate",
        choices={"leave-out": LEAVE_OUT, "mean": "Use the column's mean.", "stop": STOP},
    )
    totals: str = declared(
        "leave-out",
        "Totals",
        "Rows whose product is called Total, Sum and the like",
        choices={"leave-out": LEAVE_OUT, "keep": "They are products with odd names: keep them."},
    )

    def __post_init__(self) -> None:
        found = violations(self)
        if found:
            raise UserError(Problem("choice", what, "Change it and try again.", where="data") for what in found)
