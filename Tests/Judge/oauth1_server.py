"""An OAuth 1.0a provider. oauthlib verifies every signature, but the session extension is implemented here."""

import urllib.parse

from oauthlib import oauth1
from oauthlib.oauth1.rfc5849 import errors

import clock
from service import Response, Service, consent_page, form_response, json_response, redirect, text_response

CLIENT_KEY = "judge0consumer1key22"
CLIENT_SECRET = "c0nsumer-s3cret-of-the-judge"


class Validator(oauth1.RequestValidator):
    """Answers oauthlib's questions from dictionaries, and defines the format of nonces and tokens."""

    enforce_ssl = False
    dummy_client = "no-such-client"
    dummy_request_token = "no-such-request-token"
    dummy_access_token = "no-such-access-token"

    def __init__(self, methods, rsa_public_key):
        super().__init__()
        self.methods = methods
        self.rsa_public_key = rsa_public_key
        self.request_tokens = {}
        self.access_tokens = {}
        self.nonces = set()

    @property
    def allowed_signature_methods(self):
        return self.methods

    def validate_client_key(self, client_key, request):
        return client_key == CLIENT_KEY

    def get_client_secret(self, client_key, request):
        return CLIENT_SECRET if client_key == CLIENT_KEY else "not the secret"

    def get_rsa_key(self, client_key, request):
        return self.rsa_public_key

    def validate_timestamp_and_nonce(self, client_key, timestamp, nonce, request, request_token=None,
                                     access_token=None):
        use = (timestamp, nonce, request_token or access_token)
        if use in self.nonces:
            return False
        self.nonces.add(use)
        return True

    # Temporary credentials.
    def save_request_token(self, token, request):
        self.request_tokens[token["oauth_token"]] = {
            "secret": token["oauth_token_secret"], "callback": request.redirect_uri, "verifier": None,
        }

    def validate_redirect_uri(self, client_key, redirect_uri, request):
        return redirect_uri == "oob" or "://" in redirect_uri

    def verify_request_token(self, token, request):
        return token in self.request_tokens

    def get_redirect_uri(self, token, request):
        return self.request_tokens[token]["callback"]

    def save_verifier(self, token, verifier, request):
        self.request_tokens[token]["verifier"] = verifier["oauth_verifier"]

    def validate_request_token(self, client_key, token, request):
        return token in self.request_tokens

    def get_request_token_secret(self, client_key, token, request):
        return self.request_tokens.get(token, {}).get("secret", "not the secret")

    def validate_verifier(self, client_key, token, verifier, request):
        expected = self.request_tokens.get(token, {}).get("verifier")
        return expected is not None and expected == verifier

    def invalidate_request_token(self, client_key, request_token, request):
        self.request_tokens.pop(request_token, None)

    # Token credentials.
    def save_access_token(self, token, request):
        self.access_tokens[token["oauth_token"]] = {
            "secret": token["oauth_token_secret"],
            "session": token.get("oauth_session_handle"),
            "expires": clock.now() + int(token.get("oauth_expires_in", 3600)),
        }

    def validate_access_token(self, client_key, token, request):
        record = self.access_tokens.get(token)
        return record is not None and clock.now() < record["expires"]

    def get_access_token_secret(self, client_key, token, request):
        return self.access_tokens.get(token, {}).get("secret", "not the secret")

    # Realms are not used.
    def get_default_realms(self, client_key, request):
        return []

    def get_realms(self, token, request):
        return []

    def check_realms(self, realms):
        return True

    def validate_requested_realms(self, client_key, realms, request):
        return True

    def validate_realms(self, client_key, token, request, uri=None, realms=None):
        return True


class OAuth1Server(Service):
    """Accepts only `transport` (header, query, body) and `methods`."""

    def __init__(self, methods=("HMAC-SHA1",), transport="header", lifetime=3600, refreshed_lifetime=3600,
                 rsa_public_key=None):
        super().__init__()
        self.transport = transport
        self.lifetime = lifetime
        self.refreshed_lifetime = refreshed_lifetime
        self.validator = Validator(tuple(methods), rsa_public_key)
        self.provider = oauth1.WebApplicationServer(self.validator)
        self.provider.token_generator = lambda: self.secret(length=28)
        self.secrets.add(CLIENT_SECRET)
        for method in ("GET", "POST"):
            self.routes[method, "/oauth/request_token"] = self.request_token
            self.routes[method, "/oauth/access_token"] = self.access_token
            self.routes[method, "/resource"] = self.resource
            self.routes[method, "/api/items"] = self.resource
        self.routes["GET", "/oauth/authorize"] = self.authorize
        self.routes["POST", "/oauth/authorize"] = self.decide
        self.routes["GET", "/identity"] = self.resource

    def arguments(self, request):
        headers = {name: value for name, value in request.headers.items()}
        return request.url, request.method, request.body.decode("latin-1"), headers

    def transport_of(self, request):
        if (request.headers.get("Authorization") or "").lower().startswith("oauth "):
            return "header"
        if any(name == "oauth_consumer_key" for name, _ in request.form):
            return "body"
        return "query" if any(name == "oauth_consumer_key" for name, _ in request.query) else "none"

    def fits(self, request):
        """Whether the transport fits. A request without a body uses the header instead of a body."""
        found = self.transport_of(request)
        return found == self.transport or (self.transport == "body" and request.method == "GET" and found != "none")

    def wrong_transport(self):
        return text_response("this provider takes the oauth parameters elsewhere", 400)

    def respond(self, answer):
        headers, body, status = answer
        return Response(status, (body or "").encode(), list(headers.items()))

    def request_token(self, request):
        if not self.fits(request):
            return self.wrong_transport()
        response = self.respond(self.provider.create_request_token_response(*self.arguments(request)))
        self.counts["request_token" if response.status == 200 else "request_token_refused"] += 1
        # The authorization page's address contains the temporary token, so only its secret is secret.
        self.secrets.discard(dict(urllib.parse.parse_qsl(response.body.decode())).get("oauth_token"))
        return response

    def authorize(self, request):
        token = request.query_fields().get("oauth_token")
        if token not in self.validator.request_tokens:
            return text_response("unknown request token", 400)
        return consent_page("May credmgr use your account?", "/oauth/authorize", [("oauth_token", token)])

    def decide(self, request):
        fields = request.form_fields()
        token = fields.get("oauth_token")
        record = self.validator.request_tokens.get(token)
        if record is None:
            return text_response("unknown request token", 400)
        if fields.get("decision") != "approve":
            return text_response("refused", 403)
        url = f"{self.base}/oauth/authorize?" + urllib.parse.urlencode({"oauth_token": token})
        headers, body, status = self.provider.create_authorization_response(url, "GET", "", {})
        if status == 302:
            return redirect(headers["Location"])
        verifier = dict(urllib.parse.parse_qsl(body))["oauth_verifier"]
        return text_response(f"Your code is {verifier}")

    def access_token(self, request):
        if not self.fits(request):
            return self.wrong_transport()
        fields = dict(request.query + request.form + self.header_parameters(request))
        if "oauth_session_handle" in fields:
            return self.refresh(request, fields)
        credentials = {
            "oauth_expires_in": str(self.lifetime),
            "oauth_session_handle": self.secret("session-"),
            "oauth_authorization_expires_in": "864000",
            "xoauth_guid": "ADA1815",
        }
        response = self.respond(self.provider.create_access_token_response(*self.arguments(request), credentials))
        self.counts["access_token" if response.status == 200 else "access_token_refused"] += 1
        return response

    def header_parameters(self, request):
        value = request.headers.get("Authorization") or ""
        if not value.lower().startswith("oauth "):
            return []
        pairs = [part.strip().partition("=") for part in value[6:].split(",")]
        return [(urllib.parse.unquote(name), urllib.parse.unquote(text.strip('"'))) for name, _, text in pairs]

    def refresh(self, request, fields):
        """Implements the session extension: the old token's secret signs the request, even after it has expired."""
        old = self.validator.access_tokens.get(fields.get("oauth_token"))
        if old is None or old["session"] != fields["oauth_session_handle"]:
            self.counts["refresh_refused"] += 1
            return text_response("oauth_problem=token_rejected", 401, "application/x-www-form-urlencoded")
        expires, old["expires"] = old["expires"], clock.now() + 60
        try:
            valid, _ = self.provider.validate_protected_resource_request(*self.arguments(request))
        except errors.OAuth1Error:
            valid = False
        old["expires"] = expires
        if not valid:
            self.counts["refresh_refused"] += 1
            return text_response("oauth_problem=signature_invalid", 401, "application/x-www-form-urlencoded")
        self.counts["refresh"] += 1
        token = {
            "oauth_token": self.secret(length=28), "oauth_token_secret": self.secret(length=28),
            "oauth_expires_in": str(self.refreshed_lifetime), "oauth_session_handle": old["session"],
        }
        self.validator.save_access_token(token, None)
        return form_response(token)

    def resource(self, request):
        if not self.fits(request):
            return self.wrong_transport()
        valid, checked = self.provider.validate_protected_resource_request(*self.arguments(request))
        if not valid:
            self.counts["resource_refused"] += 1
            record = self.validator.access_tokens.get(checked.oauth_params.get("oauth_token")) if checked else None
            expired = record is not None and record["expires"] <= clock.now()
            problem = "token_expired" if expired else "signature_invalid"
            return text_response(f"oauth_problem={problem}", 401, "application/x-www-form-urlencoded",
                                 [("WWW-Authenticate", f'OAuth oauth_problem="{problem}"')])
        self.counts["resource"] += 1
        return json_response({"screen_name": "ada", "method": request.method, "target": request.target})
