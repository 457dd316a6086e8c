"""Roles are guessed from names and contents, one column each, and never survive their file."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.data.guessing import guess_roles, offered_covariates, roles_from_options
from core.data.roles import ROLES, Roles, assign, role_problems
from core.data.source import read_source
from core.errors import UserError
from tests.core.data.tables import GOOD, read, read_rows


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "roles", "covariate"),
    [
        ("dominicks_oj.csv", Roles("brand", "price", "sales"), "feat"),
        ("store_sales.csv", Roles("Product", "Price", "Weekly_Units_Sold", "Date", store="Store"), "Is_Holiday"),
        (
            "retail_price.csv",
            Roles("product_id", "unit_price", "qty", "month_year", "product_category_name"),
            "holiday",
        ),
    ],
)
def test_the_real_files_are_understood(shared_data: Path, name: str, roles: Roles, covariate: str) -> None:
    source = read_source(shared_data / name)
    assert guess_roles(source) == roles
    assert covariate in offered_covariates(source, roles)[:2]


@pytest.mark.data
def test_results_of_the_sale_are_offered_last(shared_data: Path) -> None:
    source = read_source(shared_data / "retail_price.csv")
    offered = offered_covariates(source, guess_roles(source))
    leaks = {"total_price", "customers", "revenue", "profit_60pct"}
    assert leaks <= set(offered[len(offered) // 2 :])


LAYOUTS = {
    "german": (
        "SKU;Verkaufspreis;Menge;KW;Warengruppe;Filiale",
        "007;1,50;3;{i};Obst;12",
        Roles("SKU", "Verkaufspreis", "Menge", "KW", "Warengruppe", "Filiale"),
    ),
    "competition": (
        "item_id,sell_price,sales,date,cat_id,store_id",
        "F1,{i}.5,3,2020-01-0{i},FOODS,CA_1",
        Roles("item_id", "sell_price", "sales", "date", "cat_id", "store_id"),
    ),
    "scanner": (
        "UPC,STORE,WEEK,MOVE,PRICE,DEPT",
        "111,5,{i},8,2.{i}9,CER",
        Roles("UPC", "PRICE", "MOVE", "WEEK", "DEPT", "STORE"),
    ),
    "invoices": (
        "StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country",
        "85123A,LAMP,6,12/{i}/2010 8:26,2.55,17850,UK",
        Roles("StockCode", "UnitPrice", "Quantity", "InvoiceDate", store="Country"),
    ),
    "own": (
        "product,category,period,price,units_sold",
        "p1,c1,{i},1.{i},5",
        Roles("product", "price", "units_sold", "period", "category"),
    ),
    "two prices": (
        "week,product,base_price,net_price,units,revenue",
        "2024-W0{i},a,2,1.{i},3,4.5",
        Roles("product", "net_price", "units", "week"),
    ),
}


@pytest.mark.parametrize(("header", "row", "roles"), LAYOUTS.values(), ids=LAYOUTS)
def test_common_layouts_are_understood(tmp_path: Path, header: str, row: str, roles: Roles) -> None:
    rows = [row.format(i=i) for i in range(1, 8)]
    assert guess_roles(read(tmp_path, "\n".join([header, *rows]))) == roles


def test_contents_overrule_names(tmp_path: Path) -> None:
    source = read(tmp_path, "product,price,units,cost price\nA,low,1,2.5\nA,high,2,3.5\n")
    assert guess_roles(source).price is None


def test_what_cannot_be_guessed_stays_open_and_is_asked_for(tmp_path: Path) -> None:
    source = read(tmp_path, "a,b,c\nx,1.5,3\ny,2.5,4\n")
    roles = guess_roles(source)
    assert roles == Roles()
    problems = role_problems(roles, source.columns)
    assert {problem.where for problem in problems} == {role.name for role in ROLES.values() if role.required}


def test_a_column_that_takes_a_role_gives_up_its_other_one() -> None:
    roles = Roles("a", "b", "c", covariates=("d",))
    assert assign(roles, "units", "b") == Roles("a", None, "b", covariates=("d",))
    assert assign(roles, "period", "d") == Roles("a", "b", "c", "d")
    assert assign(roles, "units", None) == Roles("a", "b", None, covariates=("d",))


def test_options_go_over_guesses(tmp_path: Path) -> None:
    source = read(tmp_path, "product,week,price,cost,units,promo\nA,2024-01-01,1,2,3,0\nA,2024-01-08,2,2,3,1\n")
    roles = roles_from_options(["price=cost", "period="], "promo,", source)
    assert roles == Roles("product", "cost", "units", covariates=("promo",))


def test_a_column_given_to_one_role_is_not_guessed_for_another(tmp_path: Path) -> None:
    source = read_rows(tmp_path, GOOD)
    assert roles_from_options(["category=week"], "", source) == Roles("product", "price", "units", category="week")


def test_every_wrong_option_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        roles_from_options(
            ["cost=price", "price", "units=nothing", "store=product"], "product", read_rows(tmp_path, GOOD)
        )
    assert sorted(problem.code for problem in caught.value.problems) == [
        "map-unreadable", "map-unreadable", "role-missing", "two-roles", "unknown-column",
    ]  # fmt: skip
