"""glewlwyd, an OpenID Connect server in C, over TLS, with a database in a temporary directory, set up through its API."""

import contextlib
import http.client
import json
import os
import shutil
import socket
import sqlite3
import ssl
import subprocess
import time
import unittest
import urllib.parse

from browser import TIMEOUT, Browser
from program import DONE, ProgramTest, text_of
from test_oauth1 import rsa_key
from tls import Authority

PROGRAM = shutil.which("glewlwyd")
SCHEMA = "/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3"
CLIENT_ID, CLIENT_SECRET = "judge-at-glewlwyd", "s3cret-of-the-client-at-glewlwyd"
ADMIN, PERSON = ("admin", "password"), ("ada", "s3cret-of-ada")
SCOPES = "openid notes"

CONFIGURATION = """\
port = {port}
bind_address = "127.0.0.1"
external_url = "https://127.0.0.1:{port}"
login_url = "login.html"
api_prefix = "api"
log_mode = "file"
log_file = "{folder}/glewlwyd.log"
log_level = "WARNING"
cookie_secure = 1
use_secure_connection = true
secure_connection_key_file = "{folder}/server.key"
secure_connection_pem_file = "{folder}/server.pem"
secure_connection_ca_file = "{folder}/ca.pem"
hash_algorithm = "SHA256"
user_module_path = "/usr/lib/glewlwyd/user"
user_middleware_module_path = "{folder}/none"
client_module_path = "/usr/lib/glewlwyd/client"
user_auth_scheme_module_path = "/usr/lib/glewlwyd/scheme"
plugin_module_path = "/usr/lib/glewlwyd/plugin"
database = {{ type = "sqlite3"; path = "{folder}/glewlwyd.db"; }};
"""

# The plugin for OpenID Connect (OIDC.md): refresh tokens rotate, and a client must prove that it requested the code.
PLUGIN = {
    "jwt-type": "rsa", "jwt-key-size": "256", "access-token-duration": 3600, "refresh-token-duration": 86400,
    "code-duration": 60, "refresh-token-rolling": True, "refresh-token-one-use": "always", "allow-non-oidc": True,
    "auth-type-code-enabled": True, "auth-type-token-enabled": False, "auth-type-id-token-enabled": True,
    "auth-type-none-enabled": False, "auth-type-password-enabled": False, "auth-type-client-enabled": True,
    "auth-type-device-enabled": True, "auth-type-refresh-enabled": True, "device-authorization-expiration": 600,
    "device-authorization-interval": 1, "pkce-allowed": True, "pkce-required": True, "pkce-method-plain-allowed": False,
    "introspection-revocation-allowed": True, "introspection-revocation-allow-target-client": True,
    "subject-type": "public", "jwks-show": True,
    "oauth-ciba-allowed": True, "oauth-ciba-mode-poll-allowed": True, "oauth-ciba-default-expiry": 600,
    "oauth-ciba-maximum-expiry": 600,
    "oauth-rar-allowed": True, "rar-types-client-property": "details", "rar-allow-auth-unsigned": True,
    "rar-allow-auth-unencrypted": True, "rar-types": {"note": {
        "scopes": ["notes"], "locations": [], "actions": ["read", "write"], "datatypes": [], "enriched": []}},
    "oauth-par-allowed": True, "oauth-par-required": False, "oauth-par-duration": 90,
    "oauth-par-request_uri-prefix": "urn:ietf:params:oauth:request_uri:",
    # A proof needs a nonce, which is for three requests.
    "oauth-dpop-allowed": True, "oauth-dpop-iat-duration": 60, "oauth-dpop-iat-gap-duration": 5,
    "oauth-dpop-nonce-mandatory": True, "oauth-dpop-nonce-counter": 3,
    # The endpoints for clients with a certificate have addresses of their own.
    "client-cert-source": "TLS", "client-cert-use-endpoint-aliases": True, "client-cert-self-signed-allowed": True,
    # Signed requests as RFC 9101 says, and signed answers.
    "request-parameter-allow": True, "request-parameter-ietf-strict": True, "request-maximum-exp": 3600,
    "client-pubkey-parameter": "pubkey", "client-jwks-parameter": "jwks", "oauth-fapi-allow-jarm": True,
}


class GlewlwydServer:
    """The test searches for `secrets`. `key` is the private key for ID tokens, and `public` the public key. `client` has
    other properties of the client."""

    def __init__(self, authority, public, key, **client):
        authority.context()
        self.folder, self.public, self.key, self.client = os.path.dirname(authority.certificate), public, key, client
        self.trust = ssl.create_default_context(cafile=authority.certificate)
        self.faults, self.secrets = [], {CLIENT_SECRET, PERSON[1]}

    def __enter__(self):
        # One port for the server, and one for the redirect, because glewlwyd compares the redirect's port.
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            self.port, self.redirect_port = one.getsockname()[1], other.getsockname()[1]
        self.base = f"https://127.0.0.1:{self.port}"
        database = sqlite3.connect(os.path.join(self.folder, "glewlwyd.db"))
        with open(SCHEMA, encoding="utf-8") as schema, contextlib.closing(database):
            database.executescript("PRAGMA synchronous=OFF; BEGIN;" + schema.read() + "COMMIT;")
        path = os.path.join(self.folder, "glewlwyd.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(port=self.port, folder=self.folder))
        self.process = subprocess.Popen([PROGRAM, f"--config-file={path}"], stderr=subprocess.DEVNULL)
        try:
            while not self.answers():
                time.sleep(0.005)
            self.set_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(TIMEOUT)

    def answers(self):
        if self.process.poll() is not None:
            with open(os.path.join(self.folder, "glewlwyd.log"), encoding="utf-8") as file:
                raise AssertionError("glewlwyd does not start: " + file.read())
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True
        except ConnectionRefusedError:
            return False

    def set_up(self):
        admin = Session(self, ADMIN)
        admin.call("POST", "/api/mod/plugin/", {
            "module": "oidc", "name": "oidc", "display_name": "OpenID Connect",
            "parameters": {**PLUGIN, "iss": self.base + "/api/oidc", "key": self.key, "cert": self.public}})
        # Properties of a client that it does not store otherwise.
        clients = json.loads(admin.call("GET", "/api/mod/client/"))[0]
        clients["parameters"]["data-format"] |= {
            "details": {"multiple": True}, "tls_client_auth_subject_dn": {}, "request_object_signing_alg": {},
            "token_endpoint_signing_alg": {}}
        admin.call("PUT", f"/api/mod/client/{clients['name']}", clients)
        for action in ("disable", "enable"):
            admin.call("PUT", f"/api/mod/client/{clients['name']}/{action}", {})
        admin.call("POST", "/api/scope/", {"name": "notes", "display_name": "notes", "description": "notes",
                                           "password_required": False, "scheme": {}})
        admin.call("POST", "/api/user/", {"username": PERSON[0], "password": PERSON[1], "name": "Ada Lovelace",
                                          "scope": ["g_profile", "openid", "notes"], "enabled": True})
        admin.call("POST", "/api/client/", {
            "client_id": CLIENT_ID, "name": "Judge", "confidential": True, "enabled": True, "scope": [],
            "client_secret": CLIENT_SECRET, "token_endpoint_auth_method": ["client_secret_basic"],
            "authorization_type": ["code", "refresh_token", "device_authorization", "client_credentials",
                                   "urn:openid:params:grant-type:ciba"],
            "backchannel_token_delivery_mode": "poll", "details": ["note"],
            "redirect_uri": [f"http://127.0.0.1:{self.redirect_port}/callback"], **self.client})
        self.person = Session(self, PERSON)
        self.person.call("PUT", f"/api/auth/grant/{CLIENT_ID}", {"scope": SCOPES})


class Session:
    """A session of a user logged in at glewlwyd."""

    def __init__(self, server, person):
        self.server, self.cookie = server, ""
        self.call("POST", "/api/auth/", dict(zip(("username", "password"), person)))

    def call(self, method, target, body=None):
        status, _, text = self.exchange(method, target, body)
        if status != 200:
            raise AssertionError(f"glewlwyd: {method} {target}: {status}\n{text}")
        return text

    def exchange(self, method, target, body=None):
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.server.port, timeout=TIMEOUT, context=self.server.trust)
        headers = {"Cookie": self.cookie, **({"Content-Type": "application/json"} if body is not None else {})}
        connection.request(method, target, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read().decode("utf-8", "replace")
        connection.close()
        self.cookie = (response.headers.get("Set-Cookie") or self.cookie).split(";")[0]
        return response.status, response.headers.get("Location"), text

    def consent(self, address, **more):
        """Opens an address as the login page does, which asks a logged-in user to continue.

        Returns the redirect, or None.
        """
        target = address.removeprefix(self.server.base) + ("?" + urllib.parse.urlencode(more) if more else "")
        _, page, _ = self.exchange("GET", target)
        back = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page or "").query)).get("callback_url")
        if not back:
            return page
        _, redirect, _ = self.exchange("GET", back.removeprefix(self.server.base) + "&g_continue")
        return redirect


@unittest.skipUnless(PROGRAM and os.path.exists(SCHEMA), "there is no glewlwyd")
class GlewlwydTest(ProgramTest):
    """Adds glewlwyd as a provider, and logs in there."""

    descriptor = text_of("Tests/Judge/descriptors/glewlwyd.yaml")

    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder)
        self.environment["SSL_CERT_FILE"] = self.authority.certificate

    def serve_glewlwyd(self, **client):
        self.service = self.serve(GlewlwydServer(self.authority, *rsa_key(), **client))

    def add_glewlwyd(self, *arguments, descriptor=None, secret=CLIENT_SECRET):
        path = self.file("glewlwyd.yaml", descriptor or self.descriptor)
        self.credmgr("add-provider", path, "--client-id", CLIENT_ID, "--replace", "--set", f"port={self.service.port}",
                     "--client-secret-file", self.file("client-secret", secret),
                     "--set", f"redirect_port={self.service.redirect_port}", *arguments)

    def log_in(self, *arguments, status=DONE):
        """Logs in at the page that a logged-in user opens; returns its address."""
        login = self.start("login", "glewlwyd", *arguments, "--no-browser", stdin=False)
        address = login.address()
        Browser().open(self.service.person.consent(address))
        self.outcome = login.end()
        self.assertEqual(self.outcome.status, status, self.outcome.err)
        return address

    def valid_refresh_tokens(self):
        """Returns how many of the user's refresh tokens are valid, according to glewlwyd."""
        return sum(token["enabled"] for token in json.loads(self.service.person.call("GET", "/api/oidc/token/")))
