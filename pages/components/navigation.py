"""List the pages once: file, title, icon, address, and the question each answers."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.components.address import show_lost

VIEWS = Path(__file__).parents[1] / "views"
QUESTIONS = {
    "data": ("Data", ":material/table_chart:", "Is my file understood?"),
    "model": ("Model & fit", ":material/tune:", "What will be estimated, how, and is it getting there?"),
    "elasticities": ("Elasticities", ":material/show_chart:", "What did I learn, and how sure am I?"),
    "timings": ("Timings", ":material/speed:", "How much faster, at what accuracy, here?"),
    "runs": ("Runs", ":material/history:", "What did we do before?"),
}


def _front_door() -> None:
    """Streamlit's default page answers at the root alone: lead on, so that the data page has an address of its own."""
    st.switch_page(page("data"))


def all_pages() -> list[st.Page]:
    """Every page that exists, in the order of the work."""
    return [
        st.Page(_front_door, title="Isoelastic", default=True, visibility="hidden"),
        *(
            st.Page(VIEWS / f"{name}.py", title=title, icon=icon, url_path=name, help=question)
            for name, (title, icon, question) in QUESTIONS.items()
            if (VIEWS / f"{name}.py").exists()
        ),
    ]


def page(name: str) -> str:
    """What `st.switch_page` and `st.page_link` take to go to the page `name`."""
    return str(VIEWS / f"{name}.py")


def header(name: str) -> None:
    """Title of the page and the question it answers, on one line."""
    title, _, question = QUESTIONS[name]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.title(title, width="content", anchor=False)
        st.caption(question, width="content")
    show_lost()
