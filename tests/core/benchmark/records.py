"""Records made by hand, for the tests of this folder."""

from dataclasses import replace

from core.benchmark.records import Record, Report, StepSeconds
from core.environment import Environment

MACHINE = Environment("3.13", {"jax": "0.12"}, "Linux", "a processor", 2, 24.0, "cpu", ("cpu",))


def record(seconds=1.0, steps=100, **changes):
    """A successful step record that took `seconds` for `steps` steps."""
    step = seconds / steps
    made = Record(
        case="step", variant="panel", placement="cpu", devices=1, loss="Trace_ELBO", particles=1, guide="AutoNormal",
        n_products=10, n_obs=1_000, compile_seconds=0.5, run_seconds=seconds,
        step_seconds=StepSeconds(step, step * 1.5, step * 2), ns_per_obs_step=step / 1_000 * 1e9, steps=steps,
        environment=MACHINE,
    )  # fmt: skip
    return replace(made, **changes)


def failed(reason="Not run: no GPU.", **changes):
    """A record of a cell that could not run."""
    blank = replace(record(), compile_seconds=None, run_seconds=None, step_seconds=None, ns_per_obs_step=None, steps=0)
    return replace(blank, success=False, error=reason, **changes)


def report(*records, **changes):
    """A finished report of these records."""
    made = Report("2026-01-01T00:00:00Z", "python -m core benchmark", {"rounds": 1}, tuple(records), len(records))
    return replace(made, **changes)
