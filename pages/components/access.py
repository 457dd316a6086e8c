"""Let only signed-in people in where `[auth]` is configured; without it the server listens to this machine alone."""

from __future__ import annotations

import streamlit as st


def auth_configured() -> bool:
    """True where secrets.toml names an OpenID Connect provider under `[auth]`."""
    return st.secrets.load_if_toml_exists() and "auth" in st.secrets


def allowed() -> bool:
    """True for everybody on an installation without sign-in, else for those who are signed in."""
    return not auth_configured() or bool(st.user.get("is_logged_in"))


def require_access() -> None:
    """Show the sign-in screen and stop, unless the person is let in."""
    if allowed():
        return
    st.title("Isoelastic")
    st.write("Price elasticities from your sales, with honest intervals. Sign in to go on.")
    st.button("Sign in", type="primary", icon=":material/login:", on_click=st.login)
    st.stop()


def viewer() -> str | None:
    """Who asks, as runs remember it; None without sign-in, where everybody may see and change everything."""
    if not auth_configured():
        return None
    # An address that the provider says it has not checked may be somebody else's.
    email = st.user.get("email") if st.user.get("email_verified", True) else ""
    return str(email or st.user.get("sub") or "?")


def owner() -> str:
    """Whose a new run is; empty without sign-in."""
    return viewer() or ""
