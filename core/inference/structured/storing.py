"""Keep the engine's state as plain arrays in the panel's own order, and bring it back: checkpoints and fits."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from core.inference.structured.mixture import Component, Mixture, single
from core.inference.structured.passes import Position, Shared
from core.inference.structured.scales import QuasiNewton, Scales
from core.inference.structured.solver import Solver
from core.inference.structured.state import State
from core.inference.structured.upper import Means

LEVELS = Position("product", "series", "row", "product", "series")
Arrays = Mapping[str, np.ndarray]


def arrays_of_state(solver: Solver, state: State) -> dict[str, np.ndarray]:
    """All that the iteration needs to go on bit for bit."""
    places = solver.places
    arrays = {
        f"position_{name}": places.gather(getattr(state.position, name), level)
        for name, level in zip(Position._fields, LEVELS, strict=True)
    }
    arrays |= {f"sums_{name}": np.asarray(part) for name, part in zip(Shared._fields, state.sums, strict=True)}
    arrays |= {"shared": state.means.shared, "market": state.means.market, "covariance": state.covariance}
    arrays |= {"variance": places.gather(state.variance, "product"), "information": state.information}
    arrays |= {"market_covariance": state.market_covariance, "log_phi": state.scales.log_phi}
    arrays["log_scale"] = np.array(list(state.scales.log_scale.values()))
    numbers = (state.scales.log_phi_market, state.iteration, state.damping, state.bound, state.change, state.stalled)
    arrays["numbers"] = np.array([*numbers, state.scale_change], np.float64)
    vector = state.scales.vector()
    pairs = [np.stack(pair) for pair in state.newton.pairs]
    arrays["pairs"] = np.stack(pairs) if pairs else np.zeros((0, 2, vector.size))
    arrays["last"] = np.stack(state.newton.last) if state.newton.last is not None else np.zeros((0, vector.size))
    arrays["trust"] = np.array([state.newton.best, state.newton.radius])
    return {name: np.array(values) for name, values in arrays.items()}


def state_of_arrays(solver: Solver, arrays: Arrays) -> State:
    """The state that `arrays_of_state` wrote, on the devices."""
    places, like = solver.places, solver.first_scales()
    position = Position(
        *(
            places.scatter(np.asarray(arrays[f"position_{name}"]), level)
            for name, level in zip(Position._fields, LEVELS, strict=True)
        )
    )
    phi_market, iteration, damping, bound, change, stalled, scale_change = np.asarray(arrays["numbers"]).tolist()
    log_scale = dict(zip(like.log_scale, np.asarray(arrays["log_scale"]).tolist(), strict=True))
    last = np.asarray(arrays["last"])
    return State(
        position=solver.kernels.put(position, divided=True),
        variance=places.scatter(np.asarray(arrays["variance"]), "product"),
        means=Means(np.asarray(arrays["shared"]), np.asarray(arrays["market"])),
        sums=Shared(*(np.asarray(arrays[f"sums_{name}"]) for name in Shared._fields)),
        scales=Scales(log_scale, phi_market, np.asarray(arrays["log_phi"]), like.learned),
        newton=QuasiNewton(
            tuple((pair[0], pair[1]) for pair in np.asarray(arrays["pairs"])),
            (last[0], last[1]) if len(last) else None,
            *np.asarray(arrays["trust"]).tolist(),
        ),
        covariance=np.asarray(arrays["covariance"]),
        market_covariance=np.asarray(arrays["market_covariance"]),
        iteration=int(iteration), stalled=int(stalled), damping=damping,
        bound=bound, change=change, scale_change=scale_change,
        information=np.asarray(arrays["information"]),
    )  # fmt: skip


def arrays_of_mixture(solver: Solver, mixture: Mixture) -> dict[str, np.ndarray]:
    """Every component's state, one beside the other, with weights and grid."""
    each = [arrays_of_state(solver, part.state) for part in mixture.components]
    arrays = {f"{name}_{i}": values for i, part in enumerate(each) for name, values in part.items()}
    arrays["log_weight"] = np.stack([part.log_weight for part in mixture.components])
    arrays["grid"] = mixture.grid
    arrays["bound"] = np.array(mixture.bound)
    return arrays


def centre_of_arrays(solver: Solver, arrays: Arrays) -> State:
    """The state to go on from: a checkpoint's, or of a fit that has ended, its mixture's first point."""
    return state_of_arrays(solver, _part(arrays, 0) if "log_weight" in arrays else arrays)


def mixture_of_arrays(solver: Solver, arrays: Arrays) -> Mixture:
    """The mixture that `arrays_of_mixture` wrote. The names of the grid follow from the model."""
    if "log_weight" not in arrays:
        return single(state_of_arrays(solver, arrays))
    weights, grid = np.asarray(arrays["log_weight"]), np.asarray(arrays["grid"])
    parts = []
    for i, log_weight in enumerate(weights):
        parts.append(Component(state_of_arrays(solver, _part(arrays, i)), log_weight))
    names = solver.grid_names() if grid.shape[1] else ()
    return Mixture(tuple(parts), names, grid, float(arrays["bound"]), {})


def _part(arrays: Arrays, number: int) -> dict[str, np.ndarray]:
    """One component's arrays under their own names."""
    end = f"_{number}"
    return {name.removesuffix(end): values for name, values in arrays.items() if name.endswith(end)}
