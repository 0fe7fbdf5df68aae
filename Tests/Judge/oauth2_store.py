"""The OAuth 2.0 server's data, in the classes that Authlib requires."""

from dataclasses import dataclass, field

from authlib.oauth2 import rfc6749
from authlib.oauth2.rfc6749 import util
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload

import clock
from service import Response, json_response

USER = "ada"
PUBLIC_CLIENT = "judge-public"
CONFIDENTIAL_CLIENT = "judge-confidential"
POST_CLIENT = "judge-post"
# Reserved characters on purpose: Basic sends them form-encoded (RFC 6749 section 2.3.1).
CLIENT_SECRET = "judge+s3cret/of%the:client&=!"
SCOPES = ["read", "write", "offline"]
IDENTITY_SCOPES = ["openid", "profile", "email"]


@dataclass
class Client(rfc6749.ClientMixin):
    identifier: str
    secret: str
    method: str

    def get_client_id(self):
        return self.identifier

    def get_default_redirect_uri(self):
        return None

    def get_allowed_scope(self, scope):
        return util.list_to_scope([s for s in util.scope_to_list(scope or "") if s in SCOPES + IDENTITY_SCOPES])

    def check_redirect_uri(self, redirect_uri):
        # RFC 8252 section 7.3: only the port may differ; also accepts an app's own scheme.
        return redirect_uri.startswith(("http://127.0.0.1:", "http://[::1]:", "judge.app:", "https://app.example/"))

    def check_client_secret(self, client_secret):
        return bool(self.secret) and self.secret == client_secret

    def check_endpoint_auth_method(self, method, endpoint):
        return method == self.method

    def check_response_type(self, response_type):
        return response_type in ("code", "token")

    def check_grant_type(self, grant_type):
        return grant_type != "client_credentials" or bool(self.secret)


@dataclass
class Code(rfc6749.AuthorizationCodeMixin):
    client_id: str
    redirect_uri: str
    scope: str
    code_challenge: str
    code_challenge_method: str
    expires: float
    nonce: str = ""

    def get_redirect_uri(self):
        return self.redirect_uri

    def get_scope(self):
        return self.scope

    # OpenID Connect Core 1.0
    def get_nonce(self):
        return self.nonce

    get_auth_time = get_acr = get_amr = lambda self: None


@dataclass
class Token(rfc6749.TokenMixin):
    client_id: str
    access_token: str
    refresh_token: str
    scope: str
    issued: float
    lifetime: int
    family: int
    revoked: bool = False
    used: bool = False  # its refresh token was exchanged for a successor
    user: str = USER

    def check_client(self, client):
        return self.client_id == client.get_client_id()

    def get_scope(self):
        return self.scope

    def get_expires_in(self):
        return self.lifetime

    def is_expired(self):
        return clock.now() > self.issued + self.lifetime

    def is_revoked(self):
        return self.revoked

    def get_user(self):
        return self.user

    def get_client(self):
        return None


@dataclass
class Device:
    data: dict
    client_id: str
    scope: str
    interval: float
    polls: list = field(default_factory=list)
    decision: str = ""
    slow_downs_left: int = 0

    def get_client_id(self):
        return self.client_id

    def get_scope(self):
        return self.scope

    def get_user_code(self):
        return self.data["user_code"]

    def is_expired(self):
        return False


class AuthlibRequest(rfc6749.OAuth2Request):
    # Accessing these properties would raise an error.
    args = form = None

    def __init__(self, request):
        super().__init__(request.method, request.url, headers=request.headers)
        self.args, self.form = request.query_fields(), request.form_fields()
        self.payload = BasicOAuth2Payload(self.args | self.form)


class AuthorizationServer(rfc6749.AuthorizationServer):
    def __init__(self, store):
        super().__init__(scopes_supported=store.scopes)
        self.store = store

    def query_client(self, client_id):
        return self.store.clients.get(client_id)

    def save_token(self, token, request):
        self.store.save_token(token, request)

    def create_oauth2_request(self, request):
        return request if isinstance(request, rfc6749.OAuth2Request) else AuthlibRequest(request)

    def handle_response(self, status, body, headers):
        if isinstance(body, dict):
            return json_response(body, status, [(k, v) for k, v in headers if k.lower() == "www-authenticate"])
        return Response(status, (body or "").encode(), list(headers))

    def send_signal(self, name, *args, **kwargs):
        pass
