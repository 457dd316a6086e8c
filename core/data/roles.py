"""Say which column of a file plays which part in the model: the parts there are, and what a choice of them lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

from core.errors import Problem


@dataclass(frozen=True)
class Roles:
    """Column names of a file by the part they play; None where a file has no such column."""

    product: str | None = None
    price: str | None = None
    units: str | None = None
    period: str | None = None
    category: str | None = None
    store: str | None = None
    covariates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Role:
    """What a role is for, and the words that its columns go by, best first."""

    name: str
    label: str
    help: str
    required: bool
    words: tuple[str, ...]


ROLES: Mapping[str, Role] = {
    role.name: role
    for role in (
        Role(
            "product",
            "Product",
            "What gets an elasticity of its own: article, SKU, brand. Its codes stay as they are spelt.",
            True,
            (
                r"(product|item|article|artikel|sku|material|produkt|prod)[ ]?(id|code|no|nr|nummer|number|key|num)?",
                r"sku.*|upc|ean|gtin|asin|barcode|stock ?code",
                r"(product|item|article|produkt|artikel).*name|bezeichnung|name",
                r"brand|marke|description|model|title|(.* )?(product|item|sku|article)( .*)?",
            ),
        ),
        Role(
            "price",
            "Price",
            "What one unit cost the buyer. Not revenue, not the list price where an actual price exists.",
            True,
            (
                r"price|preis|prix|precio|prezzo",
                r"(unit|net|actual|paid|sales|selling|avg|average|mean|shelf|retail|current|final)[ ]?(price|preis)",
                r"(unit|sales|selling|stück|einzel|netto|verkaufs)[ ]?preis|price (per )?(unit|piece|each)|asp|vk",
                r"price .*|.* price|.*preis",
                r"(base|list|regular|normal|msrp|rrp)[ ]?price|uvp",
            ),
        ),
        Role(
            "units",
            "Units",
            "How many were sold: a whole number. Not money, not a share.",
            True,
            (
                r"units|(units? sold|sold units?|units? sales|sales units?)",
                r"qty|quantity|menge|stück|anzahl|quantite|cantidad|absatz|pieces|sold",
                r"(weekly|daily|monthly|total|order|ordered|sales?|sold)[ ]?(units?|qty|quantity|volume)( sold)?",
                r".*units?( sold)?|.*(qty|quantity).*|(sales )?(volume|count|demand)",
                r"sales|verkäufe|ventes|ventas|move|movement",
            ),
        ),
        Role(
            "period",
            "Period",
            "When it was sold: day, week or month. Lets seasons and trends be told apart from prices.",
            False,
            (
                r"(week|day|month|period|date|datum|sales? ?date|order ?date|invoice ?date)",
                r"(week|date|day|month|year) (year|week|date|id|start|end|beginning|ending|month)|year ?(month|week)",
                r"woche|monat|tag|kw|kalenderwoche|zeitraum|semaine|fecha|date .*|.* date|.*datum",
                r".*(week|period|month).*|time ?stamp|date ?time|time|year|jahr",
            ),
        ),
        Role(
            "category",
            "Category",
            "Group of products that borrow strength from one another: department, class, family.",
            False,
            (
                r"category|kategorie|categorie|categoria",
                r"(product|item) ?(category|group|class|type|family)( (name|id|code))?|cat(egory)? (name|id|code)|cat",
                r"(department|dept)( id| no| nr| name)?|warengruppe|segment|family|class|group|division|section",
                r"subcategory|commodity|.*category.*|.*department.*|.*gruppe",
            ),
        ),
        Role(
            "store",
            "Store",
            "Where it was sold. Each product then has a level of its own in every store.",
            False,
            (
                r"store|shop|outlet|filiale|markt|branch|magasin|tienda",
                r"(store|shop|outlet|branch|filial)[ ]?(id|no|nr|number|code|name|key|num|nummer)",
                r"location|site|region|channel|market|country|warehouse",
            ),
        ),
    )
}


def assigned(roles: Roles) -> dict[str, str]:
    """The single-column roles that have one."""
    return {f.name: getattr(roles, f.name) for f in fields(roles) if f.name != "covariates" and getattr(roles, f.name)}


def role_problems(roles: Roles, columns: Iterable[str]) -> list[Problem]:
    """Every required role without a column, unknown column, and column with two roles."""
    known = list(columns)
    problems = []
    for role in ROLES.values():
        name = getattr(roles, role.name)
        if name is None and role.required:
            problems.append(
                Problem(
                    "role-missing",
                    f"No column is chosen for {role.label.lower()}",
                    f"Choose one: {role.help} The file has {_listed(known)}.",
                    where=role.name,
                )
            )
    parts = [*assigned(roles).items(), *(("covariate", name) for name in roles.covariates)]
    for role_name, name in parts:
        if name not in known:
            problems.append(
                Problem(
                    "unknown-column",
                    f"The file has no column '{name}'",
                    f"Choose one of {_listed(known)}.",
                    where=role_name,
                )
            )
    for name in dict.fromkeys(name for _, name in parts):
        twice = [role_name for role_name, other in parts if other == name]
        if len(twice) > 1:
            problems.append(
                Problem(
                    "two-roles", f"The column is chosen as {' and as '.join(twice)}", "Keep one of them.", where=name
                )
            )
    return problems


def assign(roles: Roles, role: str, column: str | None) -> Roles:
    """The roles with `role` played by `column`, which loses any other role it had."""
    freed = {other: None for other, name in assigned(roles).items() if column is not None and name == column}
    covariates = tuple(name for name in roles.covariates if name != column)
    return replace(roles, **{**freed, role: column}, covariates=covariates)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:30]) + (" ..." if len(names) > 30 else "")
