"""The frame around every page: look, access check, address, navigation, sidebar. Streamlit runs it at every step."""

from pathlib import Path

import streamlit as st

from pages.components.access import allowed, require_access
from pages.components.address import follow_address
from pages.components.errors import guarded
from pages.components.intake import open_demo
from pages.components.navigation import all_pages
from pages.components.sidebar import draw_sidebar

ASSETS = Path(__file__).parent / "assets"

st.set_page_config("Isoelastic", str(ASSETS / "mark.svg"), layout="wide")
st.logo(ASSETS / "logo.svg", icon_image=ASSETS / "mark.svg", size="large")

page = st.navigation(all_pages(), position="sidebar" if allowed() else "hidden")
with guarded():
    require_access()
    follow_address()
    open_demo()
    draw_sidebar()
    page.run()
