"""A Fediverse server as https://docs.joinmastodon.org/methods/apps/ and /methods/oauth/ describe it, with its own kind
of registration and unlimited tokens. Codes, proof keys and tokens are Authlib's."""

import dataclasses
import html

from authlib.oauth2 import rfc6749

from oauth2_server import OAuth2Server
import clock
from oauth2_store import Client
from service import html_response, json_response, redirect, with_query

OUT_OF_BAND = "urn:ietf:wg:oauth:2.0:oob"


@dataclasses.dataclass
class Application(Client):
    redirects: tuple = ()
    scopes: tuple = ()

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri in self.redirects

    def get_allowed_scope(self, scope):
        return rfc6749.util.list_to_scope([s for s in (scope or "").split() if s in self.scopes])


class Mastodon(OAuth2Server):
    """`refuses` is the reason for refusing registrations, if set."""

    scopes = ["read", "write", "push", "follow", "profile"]

    def __init__(self, tls=None, user="ada", refuses=None):
        super().__init__(tls=tls)
        self.user = user
        self.refuses = refuses
        self.registered = []
        self.clients.clear()
        self.routes = {
            ("POST", "/api/v1/apps"): self.create_application,
            ("GET", "/oauth/authorize"): self.authorize,
            ("POST", "/authorize"): self.decide,
            ("POST", "/oauth/token"): self.token,
            ("POST", "/oauth/revoke"): self.revoke_token,
            ("GET", "/api/v1/accounts/verify_credentials"): self.verify_credentials,
        }

    @property
    def host(self):
        return self.base.split("://")[1]

    def create_application(self, request):
        fields = request.form_fields()
        self.registered.append(fields)
        if self.refuses or not fields.get("client_name") or not fields.get("redirect_uris"):
            return json_response({"error": self.refuses or "Validation failed: Name can't be blank"}, 422)
        number = len(self.registered)
        scopes = fields.get("scopes", "read").split()
        if not set(scopes) <= set(self.scopes):
            return json_response({"error": "Validation failed: Scopes doesn't match configured on the server"}, 422)
        redirects = fields["redirect_uris"].split("\n")
        application = Application(
            f"application-{number}", self.secret("cs-", 40), "client_secret_post", tuple(redirects), tuple(scopes))
        self.clients[application.identifier] = application
        return json_response({
            "id": str(number), "name": fields["client_name"], "website": None, "scopes": scopes,
            "redirect_uris": redirects, "redirect_uri": fields["redirect_uris"],
            "client_id": application.identifier, "client_secret": application.secret, "client_secret_expires_at": 0,
        })

    def authorize(self, request):
        fields = request.query_fields()
        application = self.clients.get(fields.get("client_id"))
        if application and application.check_redirect_uri(fields.get("redirect_uri")):
            if not set(fields.get("scope", "read").split()) <= set(application.scopes):
                return redirect(with_query(fields["redirect_uri"], {
                    "error": "invalid_scope", "state": fields.get("state", ""),
                    "error_description": "The requested scope is invalid, unknown, or malformed."}))
        return super().authorize(request)

    # Tokens do not expire and cannot be refreshed.
    def generate(self, grant_type, **arguments):
        token = super().generate(grant_type, **arguments)
        token.pop("expires_in", None)
        token.pop("refresh_token", None)
        return token | {"created_at": int(clock.now())}

    def save_token(self, token, request):
        super().save_token(token, request)
        self.tokens[-1].lifetime = 1 << 40

    def decide(self, request):
        # Without a redirect, the user copies the code.
        fields = request.form_fields()
        response = super().decide(request)
        location = response.header("Location") or ""
        if fields.get("redirect_uri") == OUT_OF_BAND and "code=" in location:
            code = location.split("code=")[1].split("&")[0]
            return html_response(f"<code>{html.escape(code)}</code>")
        return response

    def revoke_token(self, request):
        self.counts["revocation"] += 1
        fields = request.form_fields()
        application = self.clients.get(fields.get("client_id"))
        token = self.find(fields.get("token"))
        if application is None or not application.check_client_secret(fields.get("client_secret", "")):
            return json_response({"error": "unauthorized_client"}, 403)
        if token is not None and token.client_id != application.identifier:
            return json_response({"error": "unauthorized_client"}, 403)
        if token is not None:
            self.revoke(token, whole_family=False)
        return json_response({})

    def verify_credentials(self, request):
        token = self.find((request.headers.get("Authorization") or "").removeprefix("Bearer "))
        if token is None or token.revoked:
            return json_response({"error": "The access token is invalid"}, 401)
        return json_response({"id": "1", "username": self.user, "acct": self.user, "display_name": "Ada"})
