"""Time the way from a CSV file to the panel against pandas' own reading of it, each in processes of its own.

`python -m core.benchmark.ingest` writes a simulated market of 11,987 products and 157 weeks (1,881,959 rows) to a
temporary CSV file and prints seconds and peak memory as a Markdown table; docs/ingest.md keeps it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.environment import describe_environment

TASKS = {
    "pandas": "pandas.read_csv, default types",
    "pandas-text": "pandas.read_csv, every column as text, as codes must be read",
    "read": "read_source: bytes to table, sha256 and checks of the file included",
    "panel": "read_source, guess_roles, validate, encode: bytes to panel",
}
REPEATS = 3


def main() -> None:
    """Write the market, run every task in fresh processes, rounds interleaved, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--products", type=int, default=11_987)
    parser.add_argument("--periods", type=int, default=157)
    parser.add_argument("--rounds", type=int, default=5, help="fresh processes per task")
    parser.add_argument("--json", type=Path, help="also write the records here")
    parser.add_argument("--task", nargs=2, metavar=("TASK", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(_measure(*options.task)))
        return
    with tempfile.TemporaryDirectory(prefix="isoelastic-") as folder:
        path = Path(folder) / "market.csv"
        _write_market(path, options.products, options.periods)
        records = [_in_process(task, path) for _ in range(options.rounds) for task in TASKS]
        size = path.stat().st_size
    print(report(records, size, options.products * options.periods))
    if options.json:
        options.json.write_text(json.dumps({"bytes": size, "records": records}, indent=1), encoding="utf-8")


def report(records: list[dict[str, Any]], size: int, rows: int) -> str:
    """The figures as Markdown: best first call, best later call, CPU seconds and peak memory of every task."""
    seen = describe_environment(devices=())
    lines = [
        f"{rows:,} rows, {size / 1e6:.1f} MB; {seen.processor}, {seen.cores} cores, Python {seen.python}, "
        f"pandas {seen.packages['pandas']}.",
        "",
        "| task | first call, s | later calls, s | CPU, s | peak memory, MB | of which before the task, MB |",
        "|---|---|---|---|---|---|",
    ]
    best = {task: _best([r for r in records if r["task"] == task]) for task in TASKS}
    for task, r in best.items():
        lines.append(
            f"| {TASKS[task]} | {r['first']:.2f} | {r['later']:.2f} | {r['cpu']:.2f} | {r['peak'] / 1e6:.0f} "
            f"| {r['before'] / 1e6:.0f} |"
        )
    ours = best["panel"]
    lines.append("")
    for task in ("pandas", "pandas-text"):
        ratios = ", ".join(f"{ours[key] / best[task][key]:.1f} ({name})" for key, name in _COLUMNS.items())
        lines.append(f"File to panel over {TASKS[task]}: {ratios}.")
    lines.append(f"Peak memory of file to panel over the file's size: {ours['peak'] / size:.1f}.")
    return "\n".join(lines)


_COLUMNS = {"first": "first call", "later": "later calls", "cpu": "CPU"}


def _best(records: list[dict[str, Any]]) -> dict[str, float]:
    return {key: min(float(r[key]) for r in records) for key in ("first", "later", "cpu", "peak", "before")}


def _write_market(path: Path, products: int, periods: int) -> None:
    from core.data.markets import write_market
    from core.simulation import MarketPlan, simulate

    write_market(simulate(MarketPlan(products=products, periods=periods)), path)


def _in_process(task: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "core.benchmark.ingest", "--task", task, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _measure(task: str, path: str) -> dict[str, Any]:
    """Seconds of the first call and of the best later one, CPU seconds of the latter, peak memory of the first."""
    call = _call(task, path)
    before = _peak_bytes()
    start = time.perf_counter()
    call()
    first, peak = time.perf_counter() - start, _peak_bytes()
    later, cpu = [], []
    for _ in range(REPEATS):
        start, used = time.perf_counter(), time.process_time()
        call()
        later.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    return {"task": task, "first": first, "later": min(later), "cpu": min(cpu), "peak": peak, "before": before}


def _call(task: str, path: str) -> Callable[[], object]:
    import pandas as pd

    if task == "pandas":
        return lambda: pd.read_csv(path)
    if task == "pandas-text":
        return lambda: pd.read_csv(path, dtype=str)
    from core.data.encoding import encode
    from core.data.guessing import guess_roles
    from core.data.source import read_source
    from core.data.validation import validate

    def panel() -> object:
        source = read_source(path)
        sales = validate(source, guess_roles(source)).sales
        assert sales is not None
        return encode(sales)

    return (lambda: read_source(path)) if task == "read" else panel


def _peak_bytes() -> int:
    """The most memory this process has held since it started; /proc, where there is one, forgets the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
