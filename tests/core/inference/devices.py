"""Runs in a process of its own with eight simulated devices: `python -m tests.core.inference.devices` prints JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from core.inference.batches import batch_specs, cut, take
from core.inference.dividing import divide, pad_fillers
from core.inference.engines import draw, fit
from core.inference.placement import bytes_per_device, put_panel, site_of
from core.inference.plan import FitPlan, StructuredPlan, SviPlan, plan_with
from core.inference.program import build_program, state_specs
from core.inference.starts import first_start
from core.model.likelihood import log_likelihood
from core.model.plan import ModelPlan
from tests.core.model.test_likelihood import KINDS, predictor_of
from tests.core.panels import market_panel

STEPS = 4_000
BATCH, BATCH_STEPS = 7, 8_000
"""Products a step, two steps an epoch: as many visits to each product as steps of the whole market."""


def likelihoods() -> list[dict]:
    """Value and gradients at the same parameters on one and on several devices, all kinds of model."""
    facts = []
    for market in ({"stores": 2, "covariate": True, "products": 7}, {"products": 3, "categories": 1}):
        panel = market_panel(**market)
        for likelihood, clip in KINDS:
            predictor = predictor_of(panel, likelihood)
            run = jax.value_and_grad(lambda p, d, kind=likelihood, c=clip: log_likelihood(p, d, kind, c))
            value, gradient = run(predictor, panel)
            for count in (2, 4, 8):
                divided, site = divide(panel, count), site_of(f"cpu:{count}")
                padded = replace(
                    predictor,
                    level=pad_fillers(np.asarray(predictor.level), divided.real_series),
                    elasticity=pad_fillers(np.asarray(predictor.elasticity), divided.real_product),
                )
                with site.in_force():
                    other, slopes = jax.jit(run)(padded, put_panel(divided, site))
                one = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(gradient)])
                slopes = replace(
                    slopes,
                    level=slopes.level[np.flatnonzero(divided.real_series)],
                    elasticity=slopes.elasticity[np.flatnonzero(divided.real_product)],
                )
                many = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(slopes)])
                facts.append(
                    {
                        "value": float(value), "other": float(other), "devices": count,
                        "gradient_error": float(np.abs(one - many).max() / np.abs(one).max()),
                    }
                )  # fmt: skip
    return facts


def batches() -> list[dict]:
    """The likelihood at the same parameters: of the market, and the mean over an epoch of mini-batches on devices."""
    panel = market_panel(stores=2, covariate=True, products=11)
    facts = []
    for likelihood, clip in KINDS:
        predictor = predictor_of(panel, likelihood)
        value = float(log_likelihood(predictor, panel, likelihood, clip))
        for devices, count in ((2, 2), (4, 2), (2, 3)):
            divided, site = divide(panel, devices * count), site_of(f"cpu:{devices}")
            cut_up = cut(divided, devices)
            placed = site.put(cut_up, batch_specs(cut_up))
            level = pad_fillers(np.asarray(predictor.level), divided.real_series).reshape(devices, count, -1)
            slope = pad_fillers(np.asarray(predictor.elasticity), divided.real_product).reshape(devices, count, -1)

            def of_batch(number, placed, level, slope, p=predictor, kind=likelihood, c=clip):
                part = replace(p, level=level[:, number].ravel(), elasticity=slope[:, number].ravel())
                panel = take(placed, number)
                return panel.batches * log_likelihood(part, panel, kind, c)

            with site.in_force():
                run = jax.jit(of_batch)
                mean = np.mean([float(run(number, placed, level, slope)) for number in range(count)])
            facts.append({"value": value, "mean": float(mean), "devices": devices, "batches": count})
    return facts


def fillers() -> dict:
    """How loss and gradients change when the parameters of fillers change: not at all."""
    panel, plan = market_panel(products=5), FitPlan(engine="svi", placement="cpu:4", svi=SviPlan(steps=10))
    divided, site = divide(panel, 4), site_of("cpu:4")
    facts = {}
    for choices in ({}, {"loss": "TraceMeanField_ELBO"}, {"parameterisation": "noncentred"}):
        chosen = plan_with(plan, **choices)
        with site.in_force():
            program = build_program(chosen, divided, first_start(chosen, panel, divided))
            placed = put_panel(divided, site)
            params = program.svi.optim.get_params(program.first.optim_state)

            def loss(params, placed, program=program):
                state = program.first._replace(optim_state=program.svi.optim.init(params))
                return program.svi.evaluate(state, placed)

            run = jax.jit(jax.value_and_grad(loss))
            value, gradient = run(site.put(params, state_specs(params)), placed)
            moved = {name: _moved(name, leaf, divided) for name, leaf in params.items()}
            other, _ = run(site.put(moved, state_specs(moved)), placed)
        touched = [
            float(np.abs(np.asarray(leaf)[_fillers(name, divided)]).max(initial=0.0))
            for name, leaf in gradient.items()
            if _fillers(name, divided) is not None
        ]
        facts[str(choices)] = {"value": float(value), "moved": float(other), "gradient": max(touched)}
    return facts


def fits() -> dict:
    """Posterior of one market from one device and several."""
    panel = market_panel(products=13, periods=40, categories=3, mean_units=100.0, filled=1.0)
    plan = FitPlan(engine="svi", svi=SviPlan(steps=STEPS, learning_rate=0.03, particles=4))
    facts = {}
    runs = [(placement, 0) for placement in ("cpu", "cpu:2", "cpu:4", "cpu:8")]
    for placement, batch in [*runs, ("cpu:2", BATCH), ("cpu:4", BATCH)]:
        steps = STEPS if batch == 0 else BATCH_STEPS
        result = fit(plan_with(plan, placement=placement, batch_products=batch, steps=steps), panel)
        draws = draw(result, panel, 10_000, 1)
        facts[f"{placement}, {batch} products a step" if batch else placement] = {
            "outcome": result.outcome.sentence,
            "mean": draws.elasticity_product.mean(axis=0).tolist(),
            "sd": draws.elasticity_product.std(axis=0).tolist(),
            "level": draws.level_series.mean(axis=0).tolist(),
        }
    return facts


def streamed() -> dict:
    """Whether a run streamed to several devices is, bit for bit, the one whose data lie there."""
    panel = market_panel(products=19, stores=2, covariate=True)
    plan = FitPlan(engine="svi", svi=SviPlan(steps=50, batch_products=6))
    facts = {}
    for placement in ("cpu:2", "cpu:4"):
        here = plan_with(plan, placement=placement)
        resident, stream = fit(here, panel), fit(plan_with(here, data_home="host"), panel)
        facts[placement] = {
            "home": stream.diagnostics["data_home"],
            "steps": len(stream.losses),
            "losses": bool((stream.losses == resident.losses).all()),
            "state": all(bool((stream.state[name] == value).all()) for name, value in resident.state.items()),
        }
    return facts


def structured() -> dict:
    """The structured engine's posterior of product elasticities, by number of devices."""
    panel = market_panel(products=13, categories=3, stores=2)
    plan = FitPlan(model=ModelPlan(likelihood="poisson"), structured=StructuredPlan(tolerance=1e-6))
    facts = {}
    for placement in ("cpu", "cpu:2", "cpu:4", "cpu:8"):
        found = fit(plan_with(plan, placement=placement), panel).diagnostics
        facts[placement] = {"mean": np.asarray(found["mean"]).tolist(), "sd": np.asarray(found["sd"]).tolist()}
    return facts


def even() -> str:
    """How a fit ends whose categories divide evenly over the devices."""
    panel = market_panel(products=8, periods=6, categories=4)
    return fit(FitPlan(engine="svi", placement="cpu:2", svi=SviPlan(steps=20)), panel).outcome.sentence


def memory() -> dict:
    """Most bytes a device holds of a market over one device and over several, whole and in mini-batches."""
    panel = market_panel(products=400, periods=52, categories=4)
    held = {}
    for count in (1, 2, 4, 8):
        site, cut_up = site_of(f"cpu:{count}"), cut(divide(panel, 4 * count), count)
        held[count] = max(bytes_per_device(put_panel(divide(panel, count), site)).values())
        held[f"{count}, batches"] = max(bytes_per_device(site.put(cut_up, batch_specs(cut_up))).values())
    return held


def refusal() -> str:
    plan = FitPlan(engine="svi", placement="cpu:2", svi=SviPlan(guide="AutoDiagonalNormal", steps=10))
    return fit(plan, market_panel()).outcome.sentence


def _fillers(name: str, divided) -> np.ndarray | None:
    for site, real in (("elasticity_product_", divided.real_product), ("level_series_", divided.real_series)):
        if name.removeprefix(site).removeprefix("decentered_") in ("auto_loc", "auto_scale"):
            return ~np.asarray(real)
    return None


def _moved(name: str, leaf, divided):
    at = _fillers(name, divided)
    return leaf if at is None else jnp.where(at, leaf + 0.7, leaf)


if __name__ == "__main__":
    parts = (likelihoods, batches, fillers, fits, streamed, structured, memory, refusal, even)
    print(json.dumps({part.__name__: part() for part in parts}))
