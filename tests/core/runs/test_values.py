"""What is written is read back equal, and nothing but our own values can be read."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.errors import UserError
from core.inference.fit import Ending, Outcome
from core.inference.plan import FitPlan, plan_with
from core.runs.requests import RunRequest
from core.runs.snapshots import RunState
from core.runs.values import from_bytes, from_text, to_bytes, to_text


def test_nested_values_come_back_equal():
    plan = plan_with(FitPlan(), engine="svi", steps=123, likelihood="poisson")
    request = RunRequest("d" * 64, {"product": "SKU"}, ("a", None, 1.5), plan, pinned=("007", "é"))
    assert from_text(to_text(request)) == request
    assert from_text(to_text(Path("a/b"))) == Path("a/b")


def test_enums_come_back_as_members():
    outcome = Outcome(Ending.CONVERGED, "Converged.", usable=True)
    assert from_bytes(to_bytes(outcome)).ending is Ending.CONVERGED
    assert from_text(to_text(RunState.PAUSED)) is RunState.PAUSED


def test_arrays_come_back_bit_for_bit_with_their_type():
    values = np.array([1.0, np.nan, -np.inf, 1e-40], np.float32)
    back = from_bytes(to_bytes({"x": values, "flags": np.array([True, False])}))
    assert back["x"].tobytes() == values.tobytes()
    assert back["x"].dtype == np.float32
    assert back["flags"].dtype == bool


def test_object_arrays_and_tables_come_back():
    names = np.array(["001", None, "1e5"], dtype=object)
    frame = pd.DataFrame({"product": pd.Categorical(["b", "a"]), "units": [1.0, 2.0]})
    back = from_bytes(to_bytes((names, frame)))
    assert back[0].tolist() == names.tolist()
    pd.testing.assert_frame_equal(back[1], frame)


def test_a_field_added_later_takes_its_default():
    outline = json.loads(to_text(plan_with(FitPlan(), draws=123)))
    del outline["fields"]["draws"]
    assert from_text(json.dumps(outline)) == FitPlan()


def test_a_value_that_lacks_what_has_no_default_is_unreadable():
    outline = json.loads(to_text(Outcome(Ending.FAILED, "x", usable=False)))
    del outline["fields"]["sentence"]
    with pytest.raises(UserError):
        from_text(json.dumps(outline))


def with_field(value: object, owner: str, name: str) -> str:
    """A value as text, every dataclass of the name `owner` in it with one more field."""
    outline = json.loads(to_text(value), object_hook=lambda part: plus(part, owner, name))
    return json.dumps(outline)


def plus(part: dict, owner: str, name: str) -> dict:
    return {**part, "fields": {**part["fields"], name: 7}} if part.get("class", "").endswith(f":{owner}") else part


@pytest.mark.parametrize("owner", ["FitPlan", "SviPlan", "ModelPlan", "Priors"])
def test_a_choice_that_a_plan_no_longer_has_is_passed_over_and_named(owner: str, caplog: pytest.LogCaptureFixture):
    request = RunRequest("d" * 64, None, None, plan_with(FitPlan(), engine="svi", steps=123))
    assert from_text(with_field(request, owner, "momentum")) == request
    assert "'momentum' = 7" in caplog.text and owner in caplog.text


def test_a_plan_whose_rest_does_not_read_well_is_unreadable(caplog: pytest.LogCaptureFixture):
    text = with_field(FitPlan(), "FitPlan", "momentum")
    with pytest.raises(UserError, match="cannot be read"):
        from_text(text.replace("core.model.plan:Priors", "core.model.plan:Gone"))
    with pytest.raises(UserError, match="engine"):
        from_text(text.replace('"engine": "structured"', '"engine": "gone"'))
    assert "momentum" not in caplog.text


def test_a_field_too_many_elsewhere_is_unreadable():
    request = RunRequest("d" * 64, None, None, FitPlan())
    for value, owner in ((Outcome(Ending.FAILED, "x", usable=False), "Outcome"), (request, "RunRequest")):
        with pytest.raises(UserError, match="cannot be read"):
            from_text(with_field(value, owner, "momentum"))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"\x00" * 100])
def test_damaged_bytes_are_a_user_error(content: bytes):
    with pytest.raises(UserError, match="cannot be read"):
        from_bytes(content)


@pytest.mark.parametrize(
    "address", ["os:system", "subprocess:Popen", "core.settings:os", "core.settings:load_settings"]
)
def test_only_our_own_dataclasses_are_made(address: str):
    with pytest.raises(UserError, match="cannot be read"):
        from_text(json.dumps({"class": address, "fields": {}}))


def test_a_value_that_cannot_be_kept_is_named():
    with pytest.raises(TypeError, match="a complex cannot be kept"):
        to_text(1j)


def damaged(content: bytes, seed: int) -> bytes:
    """The bytes with a few changed, or the end lost."""
    random = np.random.default_rng(seed)
    changed = bytearray(content)
    for at in random.integers(0, len(content), 3):
        changed[at] = int(random.integers(256))
    return bytes(changed[: int(random.integers(1, len(content)))] if seed % 4 == 0 else changed)


def test_bytes_damaged_anywhere_are_read_or_are_a_user_error():
    content = to_bytes({"frame": pd.DataFrame({"a": [1.0, 2.0]}), "x": np.arange(5.0), "e": Ending.CONVERGED})
    refused = 0
    for seed in range(300):
        try:
            from_bytes(damaged(content, seed))
        except UserError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    "text", ["{}", '{"tuple": 1}', "[" * 100_000, '{"objects": [1], "shape": [99]}', '{"enum": 3}']
)
def test_damaged_text_is_a_user_error(text: str):
    with pytest.raises(UserError, match="cannot be read"):
        from_text(text)


def test_what_is_not_of_the_packages_of_values_is_not_even_imported(monkeypatch: pytest.MonkeyPatch):
    outline = json.dumps({"class": "tests.core.runs.test_values:Kept", "fields": {"x": 1}})
    with pytest.raises(UserError, match="cannot be read"):
        from_text(outline)
    monkeypatch.setattr("core.runs.values.OWN", ["core.", "tests."])
    assert from_text(outline) == Kept(1)


@dataclass(frozen=True)
class Kept:
    x: int
