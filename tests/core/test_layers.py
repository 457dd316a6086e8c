"""Rules about imports that no linter states: no device at import, threads in one place."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
THREADS_ALLOWED = {"core/runs/manager.py", "core/model/tracing.py"}
STARTS_NO_BACKEND = """
import importlib, pkgutil, sys
import core
for module in pkgutil.walk_packages(core.__path__, "core."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from jax._src import xla_bridge
sys.exit(bool(xla_bridge._backends))
"""


def modules_importing(name: str) -> set[str]:
    found = set()
    for path in (*ROOT.glob("core/**/*.py"), *ROOT.glob("pages/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(n == name or n.startswith(name + ".") for n in names):
                found.add(path.relative_to(ROOT).as_posix())
    return found


def test_importing_every_module_starts_no_backend():
    assert subprocess.run([sys.executable, "-c", STARTS_NO_BACKEND], cwd=ROOT, check=False).returncode == 0


def test_threads_live_in_the_run_manager():
    assert modules_importing("threading") <= THREADS_ALLOWED
    assert not modules_importing("concurrent.futures")


def test_nothing_is_pickled():
    assert not modules_importing("pickle")
