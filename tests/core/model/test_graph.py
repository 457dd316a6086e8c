"""The drawn model is the traced one."""

import re

import pytest

from core.data.markets import panel_of_market
from core.model.demand import site_names
from core.model.graph import model_graph
from core.model.plan import ModelPlan
from core.simulation import MarketPlan, simulate


@pytest.fixture(scope="module")
def panel():
    return panel_of_market(simulate(MarketPlan(products=6, periods=4, categories=2, covariate=True)))[0]


@pytest.mark.parametrize("plan", [ModelPlan(), ModelPlan("poisson", "none", "fixed")], ids=["default", "smallest"])
def test_every_sampled_site_is_a_node(panel, plan):
    drawn = set(re.findall(r'^"(\w+)" \[', model_graph(panel, plan), flags=re.MULTILINE))
    assert drawn == {*site_names(panel, plan), "units"}


def test_products_depend_on_their_category_and_units_on_products(panel):
    source = model_graph(panel, ModelPlan())
    assert '"elasticity_category" -> "elasticity_product"' in source
    assert '"elasticity_product" -> "units"' in source


def test_sites_carry_plain_names_and_the_size_of_their_plate(panel):
    source = model_graph(panel, ModelPlan())
    assert 'label="product elasticity\\nnormal, 6 products"' in source
    assert 'label="category elasticity\\nnormal, 2 categories"' in source
    assert 'label="spread of product elasticity\\nhalf normal"' in source


def test_no_label_stands_where_an_arrow_may_cross_it(panel):
    labelled = [line for line in model_graph(panel, ModelPlan()).splitlines() if "label=" in line]
    assert labelled and all(line.startswith('"') and " -> " not in line for line in labelled)


def test_no_label_is_the_raw_name_of_a_site(panel):
    labels = re.findall(r'label="([^"]*)"', model_graph(panel, ModelPlan()))
    assert labels and not [label for label in labels if "_" in label or "global" in label or "scale" in label]
