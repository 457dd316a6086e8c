"""A small OpenID Connect provider for tests: whoever is asked for may sign in, no password."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT = "isoelastic"
PEOPLE = ("ann", "bob")
KEY = RSAKey.generate_key(2048, {"kid": "test", "use": "sig", "alg": "RS256"})
SECRETS = """
[auth]
redirect_uri = "{app}/oauth2callback"
cookie_secret = "only for this test, but long enough"
client_id = "{client}"
client_secret = "only for this test"
server_metadata_url = "{provider}/.well-known/openid-configuration"
"""


def email(name: str) -> str:
    """The address by which the provider names a person."""
    return f"{name}@example.org"


class Handler(BaseHTTPRequestHandler):
    """Discovery, the page on which a person says who they are, the token, the public key."""

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def do_GET(self) -> None:
        at = urlsplit(self.path)
        if at.path == "/.well-known/openid-configuration":
            return self._json(self._discovery())
        if at.path == "/jwks":
            return self._json({"keys": [KEY.as_dict(private=False)]})
        return self._page({name: values[0] for name, values in parse_qs(at.query).items()})

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        name, _, nonce = form["code"][0].partition(":")
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": CLIENT, "sub": name, "email": email(name), "name": name,
            "nonce": nonce, "iat": now, "exp": now + 3_600,
        }  # fmt: skip
        signed = jwt.encode({"alg": "RS256", "kid": "test"}, claims, KEY)
        self._json({"access_token": "a", "token_type": "Bearer", "expires_in": 3_600, "id_token": signed})

    def _discovery(self) -> dict[str, object]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def _page(self, asked: dict[str, str]) -> None:
        links = []
        for name in PEOPLE:
            back = urlencode({"code": f"{name}:{asked.get('nonce', '')}", "state": asked["state"]})
            links.append(f'<a href="{asked["redirect_uri"]}?{back}">{name}</a>')
        self._answer("text/html", " ".join(links).encode())

    def _json(self, value: object) -> None:
        self._answer("application/json", json.dumps(value).encode())

    def _answer(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test says what went wrong."""


@contextmanager
def provider() -> Iterator[str]:
    """A running provider; its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
