"""One market and its fit, shared by the tests of this folder: fitting is what they take time for."""

import pytest

from core.data.markets import panel_of_market
from core.inference.fit import Fit
from core.panel import Panel
from core.simulation import simulate
from tests.core.inference.structured.fits import LEARNED, MARKET, fitted


@pytest.fixture(scope="package")
def market() -> Panel:
    return panel_of_market(simulate(MARKET), "dense")[0]


@pytest.fixture(scope="package")
def learned(market: Panel) -> Fit:
    return fitted(LEARNED, market)
