"""Put a panel where a run shall take place: a host panel and a device mode in, arrays on their devices out.

Modes: `cpu`, `gpu` (the first), `all-gpus`, `cpu:N` (N simulated devices: shows that the answer does not depend on the
number of devices, and is no faster). A mode that this process cannot serve comes with its reason. Of several processes
(`hosts`) each brings the devices of the mode that it has; together they are the run's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from core.errors import Problem, UserError
from core.inference import hosts
from core.inference.dividing import divide
from core.model.shards import AXIS, panel_specs
from core.panel import Panel

HELP = {
    "cpu": "All cores as one device.",
    "gpu": "The first GPU.",
    "all-gpus": "Products divided over all GPUs.",
}
MORE_CPUS = "Start the process with JAX_NUM_CPU_DEVICES={count}."


@dataclass(frozen=True)
class Site:
    """Where a run takes place. `mesh` is None on one device."""

    devices: tuple[jax.Device, ...]
    mesh: Mesh | None

    @property
    def shards(self) -> int:
        return len(self.devices)

    @property
    def own_device(self) -> jax.Device:
        """The first device of this process."""
        return next(device for device in self.devices if device.process_index == jax.process_index())

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Trace and run here: sets this thread's default device and, with several devices, its mesh."""
        with jax.default_device(self.own_device):
            if self.mesh is None:
                yield
            else:
                with jax.set_mesh(self.mesh):
                    yield

    def put(self, tree: Any, specs: Any) -> Any:
        """Arrays on their devices: `specs` is a tree of PartitionSpecs like `tree`, used where there is a mesh."""
        if self.mesh is None:
            return jax.device_put(tree, self.devices[0])
        mesh = self.mesh
        is_spec = {"is_leaf": lambda node: isinstance(node, PartitionSpec)}
        where = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs, **is_spec)
        return jax.tree.map(hosts.put, tree, where)


def available_placements() -> dict[str, str]:
    """Every device mode with the reason why it is not available, or ''. Starts JAX's backends."""
    cpus = len(_cpus())
    simulated = f"cpu:{max(cpus, 2)}"
    return {mode: _reason(mode) for mode in (*HELP, simulated)}


def site_of(placement: str) -> Site:
    """The devices of a mode. Raises UserError with the reason where they are not there."""
    reason = _reason(placement)
    if reason:
        usable = ", ".join(mode for mode, why in available_placements().items() if not why)
        raise UserError(
            Problem(
                "placement", f"{placement} is not available: {reason}", f"Choose one of {usable}.", where="placement"
            )
        )
    devices = _devices_of(placement)
    if len(devices) == 1:
        return Site(tuple(devices), None)
    mesh = jax.make_mesh((len(devices),), (AXIS,), axis_types=(AxisType.Auto,), devices=devices)
    return Site(tuple(devices), mesh)


def _devices_of(placement: str) -> list[jax.Device]:
    """The mode's devices of every process, in the order of processes."""
    kind, most = ("gpu", None) if placement == "all-gpus" else (placement.partition(":")[0], _simulated(placement))
    everywhere = jax.devices(kind)
    return [
        device
        for process in range(jax.process_count())
        for device in [one for one in everywhere if one.process_index == process][:most]
    ]


def place(panel: Panel, placement: str) -> Panel:
    """A host panel, divided and put on the devices of a mode. Raises UserError where they are not there."""
    return put_panel(divide(panel, (site := site_of(placement)).shards), site)


def put_panel(panel: Panel, site: Site) -> Panel:
    """An already divided host panel on its devices."""
    if panel.shards != site.shards:
        raise ValueError(f"the panel is divided over {panel.shards} devices, the run over {site.shards}")
    return site.put(panel, panel_specs(panel))


def bytes_per_device(panel: Panel) -> dict[str, int]:
    """Bytes of a placed panel that each device holds."""
    held: dict[str, int] = {}
    for leaf in jax.tree.leaves(panel):
        for shard in leaf.addressable_shards:
            held[str(shard.device)] = held.get(str(shard.device), 0) + int(np.asarray(shard.data.nbytes))
    return held


def free_on_devices(site: Site) -> int | None:
    """Bytes free on that of the devices which has least; None for processors, which keep no count of their own."""
    counts = [device.memory_stats() for device in site.devices if device.process_index == jax.process_index()]
    if not all(count and "bytes_limit" in count for count in counts):
        return None
    return min(int(count["bytes_limit"]) - int(count.get("bytes_in_use", 0)) for count in counts)


def _reason(placement: str) -> str:
    """Why a mode cannot be used in this process; '' where it can."""
    gpus = len(_gpus())
    if placement == "cpu":
        return ""
    if placement == "gpu":
        return "" if gpus else "this machine has no GPU that JAX can use"
    if placement == "all-gpus":
        have = {0: "none", 1: "one"}.get(gpus, str(gpus))
        return "" if gpus >= 2 else f"two GPUs needed; this machine has {have}"
    wanted, have_cpus = _simulated(placement), len(_cpus())
    if have_cpus >= wanted:
        return ""
    return f"this process has {have_cpus} simulated CPU device{'s' * (have_cpus > 1)}. " + MORE_CPUS.format(
        count=wanted
    )


def _simulated(placement: str) -> int:
    return int(placement.partition(":")[2] or 1)


def _cpus() -> list[jax.Device]:
    return jax.local_devices(backend="cpu")


def _gpus() -> list[jax.Device]:
    try:
        return jax.local_devices(backend="gpu")
    except RuntimeError:
        return []
