"""One lock around everything that traces a NumPyro model: its handler stack is one list for the whole process."""

from __future__ import annotations

import threading

TRACING_LOCK = threading.RLock()
"""Hold it around SVI.init, lowering, Predictive, guide.sample_posterior, MCMC.run and the like."""
