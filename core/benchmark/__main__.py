"""`python -m core.benchmark KIND OPTIONS`: run the benchmark or race that a page asked for, options as a JSON text."""

from __future__ import annotations

import json
import sys

from core.benchmark.jobs import run_job

if __name__ == "__main__":
    raise SystemExit(run_job(sys.argv[1], json.loads(sys.argv[2])))
