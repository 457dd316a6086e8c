"""Offer what a run found as files, each made when it is asked for."""

from __future__ import annotations

import tempfile
from pathlib import Path

import streamlit as st

from core.report.exports import to_csv, to_parquet, to_xlsx
from core.report.netcdf import write_posterior
from core.report.results import manifest, to_json
from core.report.tables import elasticity_table
from core.runs.files import file_name
from core.runs.requests import RunResult
from pages.components.services import result

EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def run_downloads(run_id: str, key: str) -> None:
    """Buttons for every file; `key` keeps them apart where they stand twice on a page."""
    found = result(run_id)
    stem = file_name(found.name)
    files = {
        "Elasticities, CSV": ("elasticities.csv", "text/csv", lambda: to_csv(elasticity_table(found.posterior))),
        "Elasticities, Excel": ("elasticities.xlsx", EXCEL, lambda: _excel(found)),
        "Elasticities, Parquet": (
            "elasticities.parquet",
            "application/octet-stream",
            lambda: to_parquet(elasticity_table(found.posterior)),
        ),
        "Posterior draws, NetCDF": ("posterior.nc", "application/x-netcdf", lambda: _netcdf(found)),
        "Manifest, JSON": ("manifest.json", "application/json", lambda: to_json(_manifest(found)).encode()),
    }
    for label, (name, kind, make) in files.items():
        st.download_button(
            label, make, f"{stem}-{name}", kind, key=f"{key}-{name}", icon=":material/download:", on_click="ignore",
            width="stretch",
        )  # fmt: skip


def _manifest(found: RunResult) -> dict[str, object]:
    return manifest(found.fit, found.account, found.dataset_name, found.dataset_id)


def _excel(found: RunResult) -> bytes:
    about = {"data": found.dataset_name, "run": found.name, "outcome": found.fit.outcome.sentence}
    return to_xlsx(elasticity_table(found.posterior), about)


def _netcdf(found: RunResult) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "posterior.nc"
        write_posterior(path, found.posterior, found.fit)
        return path.read_bytes()
