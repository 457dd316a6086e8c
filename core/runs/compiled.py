"""Keep compiled programs in the data folder: the next fit of the same market, in any process, starts at once."""

from __future__ import annotations

import os

import jax

from core.settings import Settings

FOLDER = "compiled"
WORTH_KEEPING_SECONDS = 0.2
"""Programs that compile faster are not kept."""
MOST_BYTES = 256 * 2**20
"""What the folder may hold; programs not used for longest go first."""
OWN_FOLDER = "JAX_COMPILATION_CACHE_DIR"
"""JAX's own variable: where it is set, it decides."""


def keep_compiled(settings: Settings) -> None:
    """Keep what this process compiles from now on under the data folder. Touches no device.

    A program is found again by its text, its options, the versions of JAX and XLA and the kind of processor, so it
    does what compiling it anew would do, to the last bit. One that cannot be read is compiled anew.
    """
    if os.environ.get(OWN_FOLDER):
        return
    jax.config.update("jax_compilation_cache_dir", str((settings.data_dir / FOLDER).absolute()))
    jax.config.update("jax_compilation_cache_max_size", MOST_BYTES)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING_SECONDS)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
