"""Say what a picture of a report shows: the message of each chart in words."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from core.benchmark.ratios import Speedup
from core.benchmark.records import Record
from core.report.wording import plural, seconds, share


def label_of(record: Record) -> str:
    """A record in a few words: 'panel · RenyiELBO x 4 · cpu', with its steps where they are a choice."""
    loss = f"{record.loss} x {record.particles}" if record.particles > 1 else record.loss
    steps = plural(record.steps, "step") if record.case == "posterior" and record.loss else ""
    return " · ".join(part for part in (record.variant, loss, record.placement, steps) if part)


def speedup_words(found: Sequence[Speedup], baseline: str) -> str:
    """The fastest of what was compared with the baseline, if any."""
    ours = [speedup for speedup in found if speedup.record.variant != baseline]
    if not ours:
        return f"Nothing to compare with {baseline} yet."
    best = max(ours, key=lambda speedup: speedup.times)
    return (
        f"Times faster than {baseline} on the CPU, log scale: the fastest is {label_of(best.record)}, "
        f"{times_text(best.times)} ({best.what})."
    )


def times_text(times: float) -> str:
    """'17 x', '1,200 x', '0.8 x'."""
    return f"{times:,.0f} x" if times >= 10 else f"{times:.2g} x"


def accuracy_words(data: pd.DataFrame, ends: Sequence[Record], n_obs: int) -> str:
    """What error each fit reached in what time, and when the article's steps would end."""
    if data.empty:
        return "No fit has been measured yet."
    parts = [
        f"{row['what']} reached {row['error']:.3f} in {seconds(row['seconds'])}, its 90 % intervals hold "
        f"{share(row['cover 90 %'])}"
        for row in data.to_dict("records")
    ]
    parts += [
        f"the article's {record.steps:,} steps would take {seconds(record.total_seconds or 0.0)} (extrapolated)"
        for record in ends
    ]
    return f"Error against known elasticities on {plural(n_obs, 'row')}: " + "; ".join(parts) + "."


def scaling_words(data: pd.DataFrame) -> str:
    """How many times the seconds that so many times the rows took, for each line."""
    parts = []
    for what, part in data.groupby("what", sort=False):
        if len(part) > 1:
            first, last = part.iloc[0], part.iloc[-1]
            grown, slower = last["rows"] / first["rows"], last["seconds"] / first["seconds"]
            parts.append(f"{what}: {grown:,.0f} times the rows took {slower:,.3g} times as long")
    return "Seconds against rows. " + "; ".join(parts) + "." if parts else "No scaling has been measured yet."
