"""Start the dashboard: `streamlit run app.py` serves pages/frame.py.

Through `st.App` because Streamlit takes a folder `pages` beside its script for pages of the old kind: the first link to
a page of ours on a fresh server then opens on "Page not found", outside our frame.
"""

from pathlib import Path

import streamlit as st

from pages.startup import get_ready

get_ready()
app = st.App(Path(__file__).parent / "pages" / "frame.py")
