"""Take data in: the ready-made demo market, an uploaded file, or a market simulated to order."""

from __future__ import annotations

import tempfile
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from core.data.markets import demo_market, market_source, truth_frame
from core.data.source import read_source
from core.declare import declarations
from core.errors import Problem, UserError
from core.runs.files import disk_errors
from core.simulation import MarketPlan, simulate
from core.words import shown_name
from pages.components.access import owner, viewer
from pages.components.address import work_on
from pages.components.forms import show_fields
from pages.components.problems import show_problems
from pages.components.services import datasets, settings
from pages.components.session import workspace
from pages.components.text import escaped

TYPES = ["csv", "tsv", "txt", "parquet", "xlsx", "xls", "ods"]
MARKET_FIELDS = ("products", "periods", "categories", "likelihood", "mean_units", "stores", "covariate", "seed")
PROBLEMS = "intake-problems"
TURN = "upload-turn"


@st.cache_resource(max_entries=1, show_spinner="Making the demo market")
def demo_dataset() -> str:
    """The demo market's id; simulated and kept the first time it is asked for, once for all who ask together."""
    source, truth = demo_market()
    return datasets().add(source, "", truth)


def keep_market(plan: MarketPlan) -> str:
    """Simulate a market, keep it with its truth, and say its id."""
    market = simulate(plan)
    name = f"Simulated market {plan.products:,} x {plan.periods:,}, seed {plan.seed}"
    return datasets().add(market_source(market, name, shop=False), owner(), truth_frame(market, shop=False))


def open_demo() -> None:
    """Work on the demo market where nothing else has been chosen."""
    if not workspace().dataset:
        work_on(dataset=demo_dataset())


def choose_dataset() -> str:
    """The data set in use, with the ways to another one: the list, an upload, a simulated market."""
    demo_dataset()
    known = {info.id: info for info in datasets().list(viewer())}
    if workspace().dataset not in known:
        work_on(dataset=demo_dataset(), run="")
    names = {key: f"{info.name} · {info.rows:,} rows" for key, info in known.items()}
    options = list(names)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Data set", options, options.index(workspace().dataset), format_func=names.__getitem__,
            key=f"dataset-{workspace().dataset}", on_change=_open, args=(f"dataset-{workspace().dataset}",), width=300,
        )  # fmt: skip
        # A new key after every upload: the menu closes, and what was read shows.
        with st.popover("Upload", icon=":material/upload:", key=f"upload-menu-{st.session_state.get(TURN, 0)}"):
            _upload_form()
        with st.popover("Simulate", icon=":material/casino:"):
            _market_form()
    _show_problems()
    return workspace().dataset


def _open(key: str) -> None:
    work_on(dataset=st.session_state[key], run="")


def _upload_form() -> None:
    turn = st.session_state.setdefault(TURN, 0)
    upload = st.file_uploader(
        "Sales file", TYPES, key=f"upload-{turn}", max_upload_size=settings().upload_mb,
        help="One row per product and period (and store): at least product, price and units sold.",
    )  # fmt: skip
    st.caption(f"CSV, TSV, Parquet or Excel, up to {settings().upload_mb:,} MB. It is kept on this server only.")
    if upload is not None:
        with st.spinner("Reading the file"):
            _take(upload)
        st.rerun()


def _take(upload: UploadedFile) -> None:
    """Read an upload and keep it; whatever comes of it, the next run asks for another one and this buffer goes."""
    st.session_state[TURN] += 1
    st.session_state[PROBLEMS] = ()
    try:
        with upload.getbuffer() as content:
            work_on(dataset=keep_upload(upload.name, content), run="")
    except UserError as error:
        st.session_state[PROBLEMS] = (shown_name(upload.name), error.problems)


def keep_upload(name: str, content: bytes | memoryview) -> str:
    """Read the bytes of a file through a temporary copy whose name owes nothing to the upload's; keep it, say its id.

    Raises UserError with every problem of a file that cannot be read.
    """
    suffix = Path(shown_name(name)).suffix.lower()
    folder = settings().data_dir / "uploads"
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with disk_errors(folder), tempfile.TemporaryDirectory(dir=folder) as private:
        path = Path(private) / f"upload{suffix if suffix.strip('.') in TYPES else ''}"
        path.write_bytes(content)
        return datasets().add(read_source(path, shown_name(name)), owner())


def _show_problems() -> None:
    kept: tuple[str, tuple[Problem, ...]] | tuple[()] = st.session_state.get(PROBLEMS, ())
    if not kept:
        return
    name, problems = kept
    with st.container(border=True):
        st.markdown(f":material/error: **{escaped(name)}** could not be read; the data set in use has not changed.")
        show_problems(problems)
        st.button("Dismiss", key="dismiss", on_click=lambda: st.session_state.update({PROBLEMS: ()}))


def _market_form() -> None:
    defaults = {field.name: field.default for field, _ in declarations(MarketPlan)}
    with st.form("market", border=False):
        st.caption("A market whose true elasticities are known: see how close a fit comes.")
        entered = show_fields(MarketPlan, MARKET_FIELDS, defaults, "market", columns=2)
        wanted = st.form_submit_button("Simulate")
    if wanted:
        with st.spinner("Simulating the market"):
            dataset = keep_market(MarketPlan(**entered))
        work_on(dataset=dataset, run="")
        st.rerun()
