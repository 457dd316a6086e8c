"""Turn a source and its roles into a sales table, or into every reason why not; nothing is dropped without a count."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.data.categories import check_category
from core.data.cells import cells_of
from core.data.checks import check_period, check_product, check_store
from core.data.choices import Choices
from core.data.columns import number_votes
from core.data.covariates import check_covariates
from core.data.draft import Draft
from core.data.findings import Findings
from core.data.number_checks import check_price, check_units
from core.data.numbers import Mark
from core.data.roles import Roles, role_problems
from core.data.sales import RowAccount, SalesTable
from core.data.source import Source
from core.errors import Problem


@dataclass(frozen=True)
class Checked:
    """What validation found. `sales` is None where an error stands in the way."""

    sales: SalesTable | None
    problems: tuple[Problem, ...]
    """Errors first, then warnings and notes, each by the number of rows it touches."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "error")


def validate(source: Source, roles: Roles, choices: Choices | None = None) -> Checked:
    """Check every column that plays a role, all problems at once, and build the table that can be encoded."""
    choices = choices or Choices()
    findings = Findings(len(source.frame), source.shifted)
    for note in (*source.notes, *role_problems(roles, source.columns)):
        findings.say(note)
    if findings.failed:
        return Checked(None, findings.sorted())
    marks = decimal_marks(source, roles, choices, findings)
    draft = _draft(source, roles, choices, marks, findings)
    if not findings.failed and not findings.kept.any():
        findings.say(
            Problem(
                "no-rows-left",
                "No row is left: every one has a problem listed here",
                "Mend the file, or choose other columns or treatments.",
                where="file",
            )
        )
    if findings.failed:
        return Checked(None, findings.sorted())
    frame = cells_of(draft, choices, findings)
    if findings.failed:
        return Checked(None, findings.sorted())
    roles = replace(roles, covariates=tuple(draft.covariates))
    account = RowAccount(source.rows_read, int(findings.kept.sum()), {**source.left_out, **findings.left_out})
    return Checked(SalesTable(frame, account, roles, source.name, source.sha256), findings.sorted())


def _draft(source: Source, roles: Roles, choices: Choices, marks: dict[str, Mark], findings: Findings) -> Draft:
    frame = source.frame
    assert roles.product and roles.price and roles.units
    product = check_product(frame[roles.product], choices, findings)
    price = check_price(frame[roles.price], marks[roles.price], choices, findings)
    period = check_period(frame[roles.period], choices, findings) if roles.period else None
    store = check_store(frame[roles.store], findings) if roles.store else None
    units = check_units(frame[roles.units], marks[roles.units], choices, findings)
    covariates = check_covariates(frame, roles.covariates, marks, units, choices, findings)
    draft = Draft(roles, product, None, period, store, price, units, covariates)
    return check_category(frame[roles.category], draft, choices, findings) if roles.category else draft


def decimal_marks(source: Source, roles: Roles, choices: Choices, findings: Findings) -> dict[str, Mark]:
    """The decimal mark of each column of numbers: what its texts show, else the file's other columns, else habit."""
    names = [name for name in (roles.price, roles.units, *roles.covariates) if name]
    if choices.decimal_mark != "auto":
        chosen: Mark = "comma" if choices.decimal_mark == "comma" else "point"
        return dict.fromkeys(names, chosen)
    votes = {name: number_votes(source.frame[name]) for name in names}
    point, comma = (sum(vote[i] for vote in votes.values()) for i in (0, 1))
    whole: Mark = "comma" if comma > point or (comma == point and source.decimal_hint == "comma") else "point"
    marks: dict[str, Mark] = {}
    for name, (own_point, own_comma, either) in votes.items():
        marks[name] = whole if own_point == own_comma else ("comma" if own_comma > own_point else "point")
        if either and point == comma == 0:
            findings.say(_ambiguous_mark(name, either, marks[name]))
    return marks


def _ambiguous_mark(name: str, texts: int, mark: Mark) -> Problem:
    reading = {"comma": "'1,234' is read as 1.234", "point": "'1,234' is read as 1234 and '1.234' as 1.234"}[mark]
    return Problem(
        "decimal-mark-ambiguous",
        f"{texts:,} different values such as 1,234 or 1.234 could mean a thousand or one and a bit",
        "Say which mark separates decimals if this reading is wrong.",
        where=name,
        severity="warning",
        treatment=reading + ".",
        consequence="A wrong reading changes every number a thousandfold.",
        choice="decimal_mark",
    )
