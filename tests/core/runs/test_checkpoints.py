"""A checkpoint comes back bit for bit or is refused with a sentence."""

import json
from pathlib import Path

import numpy as np
import pytest

from core.errors import UserError
from core.inference.plan import FitPlan, plan_with
from core.runs.checkpoints import Checkpoints, fingerprint

PLAN = FitPlan(engine="svi")
DATA = "a" * 64
STATE = {"params/loc": np.linspace(0, 1, 50, dtype=np.float32), "rng_key": np.array([1, 2], np.uint32)}


@pytest.fixture
def kept(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "checkpoints", PLAN, DATA)


def losses(steps: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=steps).astype(np.float32)


def test_a_checkpoint_comes_back_bit_for_bit(kept: Checkpoints):
    kept.save(100, STATE, losses(100), compile_seconds=2.0, run_seconds=3.0)
    found, refused = kept.latest()
    assert found is not None and refused == ()
    assert found.manifest.step == 100
    assert (found.manifest.compile_seconds, found.manifest.run_seconds) == (2.0, 3.0)
    assert found.losses.tobytes() == losses(100).tobytes()
    assert {name: value.tobytes() for name, value in found.state.items()} == {
        name: value.tobytes() for name, value in STATE.items()
    }


def test_the_last_two_are_kept(kept: Checkpoints, tmp_path: Path):
    for step in (5, 50, 500):
        kept.save(step, STATE, losses(step))
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == [
        "step-000000000050.npz",
        "step-000000000500.npz",
    ]


def test_a_run_that_begins_anew_keeps_its_checkpoints_and_not_the_refused_ones(kept: Checkpoints):
    for step in (500, 600):
        kept.save(step, STATE, losses(step)).write_bytes(b"damaged")
    kept.save(10, STATE, losses(10))
    found, refused = kept.latest()
    assert found is not None and found.manifest.step == 10 and refused == ()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_checkpoint_is_refused_and_the_one_before_used(kept: Checkpoints, share: float):
    kept.save(10, STATE, losses(10))
    path = kept.save(20, STATE, losses(20))
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    found, refused = kept.latest()
    assert found is not None and found.manifest.step == 10
    assert refused == ("The checkpoint of step 20 is damaged. An earlier one, or the beginning, is used instead.",)


def test_every_flipped_byte_of_the_arrays_is_noticed(kept: Checkpoints):
    path = kept.save(20, STATE, losses(20))
    content = bytearray(path.read_bytes())
    place = bytes(content).index(losses(20).tobytes())
    content[place + 7] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(UserError, match="is damaged"):
        kept.load(path)


def test_a_digest_that_does_not_agree_is_refused(kept: Checkpoints):
    path = kept.save(20, STATE, losses(20))
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    arrays["losses"] = arrays["losses"] + 1
    np.savez(path, **arrays)
    with pytest.raises(UserError, match="its digest does not agree"):
        kept.load(path)


@pytest.mark.parametrize(
    ("plan", "data", "reason"),
    [
        (plan_with(PLAN, guide="AutoLaplaceApproximation"), DATA, "belongs to another plan"),
        (plan_with(PLAN, seed=1), DATA, "belongs to another plan"),
        (PLAN, "b" * 64, "belongs to another data set"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(
    kept: Checkpoints, tmp_path: Path, plan: FitPlan, data: str, reason: str
):
    kept.save(20, STATE, losses(20))
    found, refused = Checkpoints(tmp_path / "checkpoints", plan, data).latest()
    assert found is None
    assert len(refused) == 1 and reason in refused[0]


def test_a_checkpoint_of_a_later_format_is_refused(kept: Checkpoints):
    path = kept.save(20, STATE, losses(20))
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    manifest = json.loads(arrays["manifest"].tobytes()) | {"format": 99}
    arrays["manifest"] = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(UserError, match="another version of Isoelastic"):
        kept.load(path)


def test_how_far_a_plan_goes_does_not_change_its_fingerprint():
    assert fingerprint(plan_with(PLAN, steps=9, draws=200, mass=0.8)) == fingerprint(PLAN)
    assert fingerprint(plan_with(PLAN, learning_rate=0.001)) != fingerprint(PLAN)


def test_no_checkpoint_is_no_refusal(kept: Checkpoints):
    assert kept.latest() == (None, ())
