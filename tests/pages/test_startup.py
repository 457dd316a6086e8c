"""A server imports what its pages need before the first visitor comes, and starts no device for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
READY = """
import gc, sys
from pages.startup import SWITCH_SECONDS, get_ready
get_ready()
from jax._src.xla_bridge import backends_are_initialized
assert not backends_are_initialized(), "a device was started"
assert abs(sys.getswitchinterval() - SWITCH_SECONDS) < 1e-5
assert gc.get_freeze_count() > 100_000 > len(gc.get_objects())
from pathlib import Path
import jax, core.settings
assert jax.config.jax_compilation_cache_dir == str(core.settings.load_settings().data_dir.absolute() / "compiled")
missing = [p for p in Path("pages/components").glob("*.py") if f"pages.components.{p.stem}" not in sys.modules]
assert not missing, missing
"""


def test_a_server_is_ready_before_its_first_visitor():
    ended = subprocess.run(
        [sys.executable, "-c", READY], cwd=ROOT, env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-2000:]
