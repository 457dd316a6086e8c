"""Serve the dashboard: the frame around every page, the access check and the navigation."""

import streamlit as st

from pages.components.access import allowed, require_access
from pages.components.address import follow_address
from pages.components.errors import guarded
from pages.components.intake import open_demo
from pages.components.navigation import all_pages
from pages.components.sidebar import draw_sidebar

st.set_page_config("Isoelastic", "pages/assets/mark.svg", layout="wide")
st.logo("pages/assets/logo.svg", icon_image="pages/assets/mark.svg", size="large")

page = st.navigation(all_pages(), position="sidebar" if allowed() else "hidden")
with guarded():
    require_access()
    follow_address()
    open_demo()
    draw_sidebar()
    page.run()
