"""Record where a number was computed: versions, machine, devices. The provenance of fits and timings."""

from __future__ import annotations

import gc
import os
import platform
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

import psutil

PACKAGES = ("jax", "jaxlib", "numpyro", "optax", "numpy", "pandas", "arviz", "streamlit")


@dataclass(frozen=True)
class Environment:
    """Versions and hardware behind a result. `system` is 'Linux x86_64', no build of a kernel, which tells of a host;
    `memory_gb` is the host's total; `devices` JAX's names."""

    python: str
    packages: dict[str, str]
    system: str
    processor: str
    cores: int
    memory_gb: float
    backend: str
    devices: tuple[str, ...]


def describe_environment(devices: tuple[str, ...] | None = None) -> Environment:
    """Describe this process. Starts JAX's backends unless `devices` says what is already known."""
    if devices is None:
        import jax

        devices = tuple(str(device.device_kind) for device in jax.devices())
        backend = jax.default_backend()
    else:
        backend = ""
    return Environment(
        python=platform.python_version(),
        packages=package_versions(),
        system=f"{platform.system()} {platform.machine()}",
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_gb=round(psutil.virtual_memory().total / 2**30, 1),
        backend=backend,
        devices=devices,
    )


def free_memory_bytes() -> int:
    """Host memory that a new fit could still take, in bytes."""
    return int(psutil.virtual_memory().available)


def resident_bytes() -> int:
    """Host memory this process holds now, in bytes."""
    return int(psutil.Process().memory_info().rss)


def settle_memory() -> None:
    """Throw away what nobody needs, and leave what is there now out of searches for garbage until a later call.

    Libraries and compiled models are hundreds of thousands of objects: a full search through them holds up every
    page for a quarter of a second. Does nothing while there are few new objects.
    """
    if len(gc.get_objects()) < MANY_OBJECTS:
        return
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    # Python counts anew how many objects are old: with few of them it looks often, and each look is short.
    gc.collect()


MANY_OBJECTS = 50_000
"""Objects that Python searches in about 20 ms."""


@cache
def package_versions() -> dict[str, str]:
    """Versions of the libraries behind a number, by name."""
    return {name: metadata.version(name) for name in PACKAGES}


@cache
def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
