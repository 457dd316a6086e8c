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


def test_plates_carry_their_sizes(panel):
    source = model_graph(panel, ModelPlan())
    assert 'label="6 products"' in source
    assert 'label="2 categories"' in source
