"""Keep BLAS and LAPACK to one thread while many small matrices are solved: their threads wait by spinning, and on a
machine whose cores are busy with anything else a millisecond's work then takes a second."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

from scipy.linalg import lapack

from core.model.tracing import BLAS_LOCK

NAMES = ("scipy_openblas_{}_num_threads", "scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads")
"""How builds of OpenBLAS spell the two functions; other libraries have neither and are left alone."""
THREADS_FROM = 3_000
"""Size of matrices from which on threads are worth their waiting: at 1,000 they save 0.1 s on idle cores and cost
seconds on busy ones."""


class _Nesting:
    """How many ask for one thread right now, in any thread of this process, and what to go back to."""

    def __init__(self) -> None:
        self.inside = 0
        self.before: list[tuple[Any, int]] = []


_NESTING = _Nesting()


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread inside, as many as before outside, for NumPy's and SciPy's OpenBLAS where they have one.

    The number belongs to the process: the first of overlapping callers sets it, the last puts it back.
    """
    with BLAS_LOCK:
        if not _NESTING.inside:
            _NESTING.before = [(put, get()) for get, put in _functions()]
            for put, _ in _NESTING.before:
                put(1)
        _NESTING.inside += 1
    try:
        yield
    finally:
        with BLAS_LOCK:
            _NESTING.inside -= 1
            if not _NESTING.inside:
                for put, count in _NESTING.before:
                    put(count)


def small_algebra(size: int) -> AbstractContextManager[None]:
    """One thread for matrices of `size` where that is faster; as it was for large ones."""
    return one_thread() if size < THREADS_FROM else nullcontext()


@cache
def _functions() -> tuple[tuple[Any, Any], ...]:
    """Reader and setter of the number of threads, found through the modules that link the libraries."""
    found = []
    for module in (getattr(lapack, "_flapack", None), sys.modules.get("numpy._core._multiarray_umath")):
        try:
            library = ctypes.CDLL(getattr(module, "__file__", None) or "")
        except OSError:
            continue
        for name in NAMES:
            if hasattr(library, name.format("get")) and hasattr(library, name.format("set")):
                found.append((getattr(library, name.format("get")), getattr(library, name.format("set"))))
                break
    return tuple(found)
