"""An OAuth 2.0 server on Authlib, which implements grants, PKCE, introspection and revocation. This file adds storage,
rotation of refresh tokens with detection of their reuse (RFC 9700 section 4.14), and counters."""

import dataclasses
import threading
import time

from authlib.oauth2 import rfc6749, rfc6750, rfc7009, rfc7636, rfc7662, rfc8628
from authlib.oauth2.rfc6749 import grants

import clock
from oauth2_store import (
    CLIENT_SECRET, CONFIDENTIAL_CLIENT, POST_CLIENT, PUBLIC_CLIENT, SCOPES, USER, AuthlibRequest, AuthorizationServer, Client,
    Code, Device, Token,
)
from service import Service, consent_page, html_response, json_response


class RequirePKCE(rfc7636.CodeChallenge):
    """Requires S256 from every client."""

    SUPPORTED_CODE_CHALLENGE_METHOD = ["S256"]

    def validate_code_challenge(self, grant, redirect_uri):
        data = grant.request.payload.data
        if not data.get("code_challenge") or data.get("code_challenge_method") != "S256":
            raise rfc6749.InvalidRequestError("PKCE with S256 is required")
        super().validate_code_challenge(grant, redirect_uri)


class OAuth2Server(Service):
    """`lifetime` applies to first access tokens, `refreshed_lifetime` to later ones, in seconds."""

    def __init__(self, lifetime=3600, refreshed_lifetime=3600, rotate=True, refresh_delay=0.0, schemes=("Bearer",),
                 interval=1, slow_downs=0, pending_polls=0, tls=None):
        super().__init__(tls)
        self.lifetime = lifetime
        self.refreshed_lifetime = refreshed_lifetime
        self.rotate = rotate
        self.refresh_delay = refresh_delay
        self.hurry = threading.Event()  # ends every delay
        self.schemes = tuple(schemes)
        self.interval = interval
        self.slow_downs = slow_downs
        self.pending_polls = pending_polls
        self.clients = {
            client.identifier: client
            for client in (
                Client(PUBLIC_CLIENT, "", "none"),
                Client(CONFIDENTIAL_CLIENT, CLIENT_SECRET, "client_secret_basic"),
                Client(POST_CLIENT, CLIENT_SECRET, "client_secret_post"),
            )
        }
        self.secrets.add(CLIENT_SECRET)
        self.codes = {}
        self.tokens = []
        self.devices = {}
        self.families = 0
        self.token_lock = threading.RLock()
        self.authorization = self.build()
        self.routes.update({
            ("GET", "/authorize"): self.authorize,
            ("POST", "/authorize"): self.decide,
            ("POST", "/token"): self.token,
            ("POST", "/device"): self.device,
            ("GET", "/activate"): self.activate,
            ("POST", "/activate"): self.activate_decide,
            ("POST", "/introspect"): lambda r: self.endpoint("introspection", r),
            ("POST", "/revoke"): lambda r: self.endpoint("revocation", r),
            ("GET", "/resource"): self.resource,
            ("POST", "/resource"): self.resource,
            ("GET", "/identity"): self.resource,
            ("GET", "/counters"): lambda _: json_response(dict(self.counts)),
        })

    scopes = SCOPES

    def code_extensions(self):
        """Returns the extensions of the authorization code grant beyond RFC 6749."""
        return [RequirePKCE(required=True)]

    def build(self):
        store = self

        class AuthorizationCodeGrant(grants.AuthorizationCodeGrant):
            TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post", "none"]

            def generate_authorization_code(self):
                return store.secret("code-", 40)

            def save_authorization_code(self, code, request):
                data = request.payload.data
                store.codes[code] = Code(
                    request.client.get_client_id(), request.payload.redirect_uri, request.scope,
                    data["code_challenge"], data["code_challenge_method"], clock.now() + 60, data.get("nonce", ""),
                )

            def query_authorization_code(self, code, client):
                found = store.codes.pop(code, None)  # a code works once, even if its use fails
                if found and found.client_id == client.get_client_id() and clock.now() < found.expires:
                    return found

            def delete_authorization_code(self, authorization_code):
                pass

            def authenticate_user(self, authorization_code):
                return USER

        class RefreshTokenGrant(grants.RefreshTokenGrant):
            TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post", "none"]
            INCLUDE_NEW_REFRESH_TOKEN = store.rotate

            def authenticate_refresh_token(self, refresh_token):
                return store.refresh_candidate(refresh_token)

            def authenticate_user(self, refresh_token):
                return refresh_token.user

            def revoke_old_credential(self, refresh_token):
                refresh_token.used = store.rotate

        class DeviceAuthorization(rfc8628.DeviceAuthorizationEndpoint):
            INTERVAL = store.interval

            def get_verification_uri(self):
                return f"{store.base}/activate"

            def save_device_credential(self, client_id, scope, data):
                store.secrets.add(data["device_code"])
                store.devices[data["device_code"]] = Device(
                    data, client_id, scope, store.interval, slow_downs_left=store.slow_downs
                )

        class DeviceCodeGrant(rfc8628.DeviceCodeGrant):
            def query_device_credential(self, device_code):
                return store.devices.get(device_code)

            def query_user_grant(self, user_code):
                return store.user_grant(user_code)

            def should_slow_down(self, credential):
                return store.should_slow_down(credential)

        class Introspection(rfc7662.IntrospectionEndpoint):
            CLIENT_AUTH_METHODS = ["client_secret_basic", "client_secret_post", "none"]

            def query_token(self, token_string, token_type_hint):
                return store.find(token_string)

            def check_permission(self, token, client, request):
                return token.check_client(client)

            def introspect_token(self, token):
                return {"active": True, "client_id": token.client_id, "username": token.user, "scope": token.scope,
                        "exp": int(token.issued + token.lifetime)}

        class Revocation(rfc7009.RevocationEndpoint):
            CLIENT_AUTH_METHODS = ["client_secret_basic", "client_secret_post", "none"]

            def query_token(self, token_string, token_type_hint):
                return store.find(token_string)

            def revoke_token(self, token, request):
                store.revoke(token, whole_family=request.form["token"] == token.refresh_token)

        server = AuthorizationServer(store)
        server.register_token_generator("default", self.generate)
        server.register_grant(AuthorizationCodeGrant, self.code_extensions())
        server.register_grant(grants.ImplicitGrant)
        server.register_grant(grants.ClientCredentialsGrant)
        server.register_grant(RefreshTokenGrant)
        server.register_grant(DeviceCodeGrant)
        server.register_endpoint(DeviceAuthorization)
        server.register_endpoint(Introspection)
        server.register_endpoint(Revocation)
        return server

    # Tokens.
    def generate(self, grant_type, **arguments):
        lifetime = self.refreshed_lifetime if grant_type == "refresh_token" else self.lifetime
        make = rfc6750.BearerTokenGenerator(
            lambda **_: self.secret("at-", 40), lambda **_: self.secret("rt-", 40), lambda *_: lifetime
        )
        return make(grant_type=grant_type, **arguments)

    def save_token(self, token, request):
        previous = request.refresh_token
        if previous is None:
            self.families += 1
        family = previous.family if previous else self.families
        refresh = token.get("refresh_token") or (previous.refresh_token if previous else "")
        with self.token_lock:
            self.tokens.append(Token(
                request.client.get_client_id(), token["access_token"], refresh, token.get("scope", ""),
                clock.now(), token.get("expires_in", 0), family,
            ))
        self.counts["issued"] += 1

    def find(self, value):
        with self.token_lock:
            for token in reversed(self.tokens):
                if value and value in (token.access_token, token.refresh_token):
                    return token
        return None

    def refresh_candidate(self, value):
        with self.token_lock:
            token = next((t for t in reversed(self.tokens) if value and t.refresh_token == value), None)
            if token is not None and token.used:
                self.counts["reuse"] += 1
                self.revoke(token, whole_family=True)
                return None
            if token is None or token.revoked:
                return None
            if self.rotate:
                token.used = True  # set under the lock: of two simultaneous uses, the second is a reuse
            return token

    def revoke(self, token, whole_family):
        self.counts["revoked"] += 1
        with self.token_lock:
            for other in self.tokens:
                if other is token or (whole_family and other.family == token.family):
                    other.revoked = True

    def kill_access(self):
        """Revokes the newest access token; its refresh token still works."""
        dead = self.tokens[-1]
        dead.revoked = True
        self.tokens.append(dataclasses.replace(dead, access_token="gone", revoked=False))

    def accepts(self, access_token):
        """Whether this is a currently valid access token."""
        token = self.find(access_token)
        return bool(
            token and token.access_token == access_token and not token.is_expired() and not token.is_revoked()
        )

    # Pages and endpoints.
    def authorize(self, request):
        try:
            grant = self.authorization.get_consent_grant(request, USER)
        except rfc6749.OAuth2Error as error:
            self.counts["authorize_refused"] += 1
            return self.authorization.handle_error_response(AuthlibRequest(request), error)
        scope = grant.request.payload.scope or "nothing in particular"
        return consent_page(f"May the program have {scope}?", "/authorize", request.query)

    def decide(self, request):
        user = USER if request.form_fields().get("decision") == "approve" else None
        try:
            grant = self.authorization.get_consent_grant(request, USER)
        except rfc6749.OAuth2Error as error:
            return self.authorization.handle_error_response(AuthlibRequest(request), error)
        return self.authorization.create_authorization_response(grant.request, grant_user=user, grant=grant)

    def token(self, request):
        grant_type = request.form_fields().get("grant_type", "none")
        self.counts[f"token:{grant_type}"] += 1
        if grant_type == "refresh_token" and self.refresh_delay:
            self.hurry.wait(self.refresh_delay)
        response = self.authorization.create_token_response(request)
        if response.status == 200:
            self.counts[f"granted:{grant_type}"] += 1
        return response

    def endpoint(self, name, request):
        self.counts[name] += 1
        return self.authorization.create_endpoint_response(name, request)

    def device(self, request):
        self.counts["device"] += 1
        return self.authorization.create_endpoint_response("device_authorization", request)

    def by_user_code(self, user_code):
        return next((d for d in self.devices.values() if d.get_user_code() == user_code), None)

    def activate(self, request):
        user_code = request.query_fields().get("user_code")
        if self.by_user_code(user_code) is None:
            return html_response('<form method="get"><input name="user_code"><button>Next</button></form>')
        return consent_page("May the device come in?", "/activate", [("user_code", user_code)])

    def activate_decide(self, request):
        fields = request.form_fields()
        device = self.by_user_code(fields.get("user_code"))
        if device is None:
            return html_response("no such code", 400)
        device.decision = fields.get("decision", "deny")
        return html_response("You can go back to your device.")

    def user_grant(self, user_code):
        device = self.by_user_code(user_code)
        device.polls.append(time.monotonic())
        if device.decision == "" or len(device.polls) <= self.pending_polls or device.slow_downs_left:
            return None
        if len(device.polls) > 1 and device.polls[-1] - device.polls[-2] < device.interval - 0.05:
            return None  # too early, whatever the user decides: `should_slow_down` answers
        return USER, device.decision == "approve"

    def should_slow_down(self, device):
        hurried = len(device.polls) > 1 and device.polls[-1] - device.polls[-2] < device.interval - 0.05
        if device.slow_downs_left:
            device.slow_downs_left -= 1
        elif not hurried:
            self.counts["authorization_pending"] += 1
            return False
        else:
            self.counts["hurried"] += 1
        device.interval += 5  # RFC 8628 section 3.5: for this and all later polls
        self.counts["slow_down"] += 1
        return True

    def resource(self, request):
        scheme, _, value = (request.headers.get("Authorization") or "").partition(" ")
        if scheme not in self.schemes or not self.accepts(value):
            self.counts["resource_refused"] += 1
            challenge = ("WWW-Authenticate", 'Bearer error="invalid_token"')
            return json_response({"error": "invalid_token"}, 401, [challenge])
        self.counts["resource"] += 1
        return json_response({"login": USER, "method": request.method, "body": request.body.decode()})
