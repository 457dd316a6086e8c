"""Write frozen values as bytes and read them back: arrays by name in an npz, everything else as JSON beside them.

No pickle: what is read can only become plain values, arrays, tables and this project's own dataclasses and enums.
"""

from __future__ import annotations

import importlib
import io
import json
import logging
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from core.errors import Problem, UserError

LOG = logging.getLogger(__name__)
SKELETON = "skeleton"
DAMAGED = (
    OSError, ValueError, LookupError, TypeError, AttributeError, ImportError, EOFError, StopIteration, RuntimeError,
    MemoryError, struct.error, zlib.error, zipfile.BadZipFile, pa.ArrowException,
)  # fmt: skip
"""What the libraries raise over bytes that are cut off or changed: a length that asks for all memory, a block that does
not unpack, a zip that claims to be encrypted or of a later kind, an outline that names nothing or nests without end."""


def to_bytes(value: Any) -> bytes:
    """`value` as the bytes of an uncompressed npz. Raises TypeError for what it cannot hold, naming the type."""
    arrays: dict[str, np.ndarray] = {}
    skeleton = json.dumps(_outline(value, arrays)).encode()
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{SKELETON: np.frombuffer(skeleton, np.uint8)}, **arrays)
    return buffer.getvalue()


def from_bytes(content: bytes) -> Any:
    """The value that `to_bytes` wrote. Raises UserError where the bytes are damaged or of an unknown version."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            return _value(json.loads(stored[SKELETON].tobytes()), stored)
    except DAMAGED as bad:
        raise unreadable() from bad


def to_text(value: Any) -> str:
    """`value`, which must hold no arrays, as JSON."""
    arrays: dict[str, np.ndarray] = {}
    text = json.dumps(_outline(value, arrays))
    if arrays:
        raise TypeError("arrays go to bytes, not to text")
    return text


def from_text(text: str) -> Any:
    """The value that `to_text` wrote. Raises UserError where it is damaged or of an unknown version."""
    try:
        return _value(json.loads(text), {})
    except DAMAGED as bad:
        raise unreadable() from bad


def unreadable() -> UserError:
    """What to say of kept values that cannot be read, or are not those that were asked for."""
    return UserError(
        Problem(
            "stored-unreadable",
            "What was kept cannot be read: it is damaged or of another version",
            "Draw the run again, or start a new one.",
        )
    )


def _outline(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, Enum | np.generic)):
        return value
    if isinstance(value, Enum):
        return {"enum": _address(type(value)), "name": value.name}
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) and not isinstance(value, type):
        inside = {f.name: _outline(getattr(value, f.name), arrays) for f in fields(value) if f.init}
        return {"class": _address(type(value)), "fields": inside}
    if isinstance(value, tuple | list | frozenset):
        kind = next(name for name, made in SEQUENCES.items() if isinstance(value, made))
        return {kind: [_outline(item, arrays) for item in value]}
    if isinstance(value, Mapping):
        return {"dict": [[_outline(key, arrays), _outline(item, arrays)] for key, item in value.items()]}
    if isinstance(value, Path):
        return {"path": str(value)}
    if isinstance(value, pd.DataFrame):
        buffer = io.BytesIO()
        value.to_parquet(buffer)
        return {"frame": _keep(np.frombuffer(buffer.getvalue(), np.uint8), arrays)}
    if hasattr(value, "__array__"):
        return _array_outline(np.asarray(value), arrays)
    raise TypeError(f"a {type(value).__name__} cannot be kept")


SEQUENCES: dict[str, type] = {"tuple": tuple, "list": list, "frozenset": frozenset}


def _array_outline(array: np.ndarray, arrays: dict[str, np.ndarray]) -> Any:
    if array.dtype == object:
        return {"objects": [_outline(item, arrays) for item in array.ravel()], "shape": list(array.shape)}
    return {"array": _keep(array, arrays)}


def _keep(array: np.ndarray, arrays: dict[str, np.ndarray]) -> str:
    name = f"a{len(arrays)}"
    arrays[name] = array
    return name


def _address(kind: type) -> str:
    if not kind.__module__.startswith(tuple(OWN)):
        raise TypeError(f"a {kind.__module__}.{kind.__qualname__} cannot be kept")
    return f"{kind.__module__}:{kind.__qualname__}"


OWN = ["core."]
"""Packages whose dataclasses and enums are values. Tests add their own."""
PLANS = ("core.inference.plan:", "core.model.plan:")
"""Classes of which a choice that is not there any more is passed over: who kept a plan can still read the rest. Of a
result a field too many is a fault."""


def _kind(address: str) -> Any:
    module, name = address.split(":")
    if not module.startswith(tuple(OWN)):
        raise ValueError(f"{module} is not ours")
    kind = getattr(importlib.import_module(module), name)
    if not (is_dataclass(kind) or issubclass(kind, Enum)):
        raise ValueError(f"{address} is no value")
    return kind


def _value(outline: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if not isinstance(outline, dict):
        return outline
    if "class" in outline:
        return _made(outline["class"], outline["fields"], arrays)
    if "enum" in outline:
        return _kind(outline["enum"])[outline["name"]]
    if "dict" in outline:
        return {_value(key, arrays): _value(item, arrays) for key, item in outline["dict"]}
    if "array" in outline:
        return arrays[outline["array"]]
    if "frame" in outline:
        return pd.read_parquet(io.BytesIO(arrays[outline["frame"]].tobytes()))
    if "path" in outline:
        return Path(outline["path"])
    if "objects" in outline:
        return _object_array(outline, arrays)
    kind, items = next(iter(outline.items()))
    return SEQUENCES[kind](_value(item, arrays) for item in items)


def _made(address: str, inside: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    kind = _kind(address)
    known = {f.name for f in fields(kind)} if address.startswith(PLANS) else set(inside)
    made = kind(**{name: _value(item, arrays) for name, item in inside.items() if name in known})
    for name in inside.keys() - known:
        LOG.warning("%s was kept with %.40r = %.80r, which this version does not know", address, name, inside[name])
    return made


def _object_array(outline: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    flat = np.empty(len(outline["objects"]), dtype=object)
    flat[:] = [_value(item, arrays) for item in outline["objects"]]
    return flat.reshape(outline["shape"])
