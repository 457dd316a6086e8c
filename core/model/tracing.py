"""Locks around what a process has once: NumPyro's handler stack while a model is traced, and the threads of BLAS."""

from __future__ import annotations

import threading

TRACING_LOCK = threading.RLock()
"""Hold it around SVI.init, lowering, Predictive, guide.sample_posterior, MCMC.run and the like."""

BLAS_LOCK = threading.Lock()
"""Hold it for the moment in which the number of BLAS threads is read or set."""
