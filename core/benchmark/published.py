"""The figures the article published, as data: shown beside measured ones and always labelled as published."""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = '"10,000x Faster Bayesian Inference: Multi-GPU SVI vs. Traditional MCMC"'
HOST = "a host of 192 virtual CPU cores with four A10G GPUs"
NOTE = (
    f"Published by the article {SOURCE}, not measured here: read off a progress bar on {HOST} and extrapolated by the "
    "article to 1,000,000 steps, compilation included. No accuracy is stated there."
)
STEPS = 1_000_000
"""Steps that every published time stands for."""
PERIODS = 156


@dataclass(frozen=True)
class Published:
    """One published time: hours for the whole fit, of the recipe named, on the devices named."""

    recipe: str
    devices: str
    n_products: int
    n_obs: int
    hours: float
    steps: int = STEPS

    @property
    def step_seconds(self) -> float:
        """Seconds one step would take if the whole time were steps."""
        return self.hours * 3600 / self.steps

    @property
    def ns_per_obs_step(self) -> float:
        return self.step_seconds / self.n_obs * 1e9


_HOURS = {
    10_000: {"CPU": 22.0, "1 GPU": 41 / 60, "4 GPUs": 21 / 60},
    100_000: {"CPU": 202.0, "1 GPU": 6 + 5 / 60, "4 GPUs": 2 + 14 / 60},
    1_000_000: {"CPU": 2_132.0, "1 GPU": 60.0, "4 GPUs": 20 + 50 / 60},
}

PUBLISHED: tuple[Published, ...] = tuple(
    Published("SVI, AutoNormal, RenyiELBO with 4 particles", devices, products, products * PERIODS, hours)
    for products, row in _HOURS.items()
    for devices, hours in row.items()
)

PUBLISHED_NUTS = Published(
    "NUTS, 3,000 draws of which 1,000 warm-up, convergence not assured", "CPU", 10_000, 10_000 * PERIODS, 20.0, 3_000
)
