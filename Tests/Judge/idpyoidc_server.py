"""An OpenID Provider of the `idpyoidc` package over TLS, with a user who is logged in already.

The package has no HTTP server of its own, so this file passes requests and answers on, as the example of the package does.
"""

import hashlib
import json
import logging
import socket

from cryptojwt.utils import b64e
from idpyoidc.server import Server
from idpyoidc.server.exception import OidcEndpointError
from idpyoidc.server.oauth2.add_on import dpop

from service import Response, Service, json_response, oauth_error, redirect

EMAIL = "ada@idpyoidc.example"
CLIENT_ID = "judge-at-idpyoidc"
ALGORITHMS = ["ES256"]
# Codes and refresh tokens can be exchanged for these.
MINTS = {"supports_minting": ["access_token", "refresh_token", "id_token"], "expires_in": 86400}


class Digest:
    """The package compares `ath` with a digest in hexadecimal instead of base64url (RFC 9449, 4.2)."""

    def __init__(self, data):
        self.hexdigest = lambda: b64e(hashlib.sha256(data).digest()).decode()


dpop.sha256 = Digest
for name in ("idpyoidc", "cryptojwt"):
    logging.getLogger(name).setLevel(logging.CRITICAL)


def part(kind, **options):
    return {"class": "idpyoidc.server." + kind, "kwargs": options}


def endpoint(path, kind, *methods, **options):
    return {"path": path, **part(kind, client_authn_method=list(methods), **options)}


def keys(*names):
    return {"key_defs": [{"type": "OCT", "use": ["enc"], "kid": name} for name in names]}


class IdpyOIDC(Service):
    """Registers clients. With the public keys of a client, it takes only pushed requests, assertions and proofs."""

    def __init__(self, tls, client_keys=None):
        super().__init__(tls)
        # The package compares the whole redirect, despite RFC 8252 (7.3).
        with socket.create_server(("127.0.0.1", 0)) as place:
            self.redirect = f"http://127.0.0.1:{place.getsockname()[1]}/callback"
        methods = ["private_key_jwt"] if client_keys else ["client_secret_basic"]
        endpoints = {
            "provider_info": endpoint(".well-known/openid-configuration", "oidc.provider_config.ProviderConfiguration"),
            "authorization": endpoint(
                "authorization", "oidc.authorization.Authorization", "pushed_authz" if client_keys else "public"),
            "token": endpoint("token", "oidc.token.Token", *methods, revoke_refresh_on_issue=True),
            "userinfo": endpoint("userinfo", "oidc.userinfo.UserInfo", "dpop" if client_keys else "bearer_header"),
            "revocation": endpoint("revocation", "oauth2.token_revocation.TokenRevocation", *methods),
        }
        add_on = {"pkce": {"function": "idpyoidc.server.oauth2.add_on.pkce.add_support",
                           "kwargs": {"essential": True, "code_challenge_method": "S256"}}}
        # The package leaves this out of its metadata, or ignores its own settings there.
        metadata = {"code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": methods,
                    "authorization_response_iss_parameter_supported": True}
        if client_keys:
            endpoints["pushed_authorization"] = endpoint(
                "pushed", "oauth2.pushed_authorization.PushedAuthorization", *methods)
            add_on["dpop"] = {
                "function": "idpyoidc.server.oauth2.add_on.dpop.add_support",
                "kwargs": {"dpop_signing_alg_values_supported": ALGORITHMS, "dpop_endpoints": ["token", "userinfo"]}}
            metadata |= {"require_pushed_authorization_requests": True, "dpop_signing_alg_values_supported": ALGORITHMS}
        else:
            endpoints["registration"] = endpoint(
                "registration", "oidc.registration.Registration", client_secret_expires=False)
        token = part("token.jwt_token.JWTToken", lifetime=3600)
        usage = {"authorization_code": {**MINTS, "max_usage": 1}, "refresh_token": MINTS,
                 "access_token": {"expires_in": 3600}}
        names = {name: name for name in ("session", "register", "session_management")}
        self.server = Server({
            "issuer": self.base, "base_url": self.base, "endpoint": endpoints, "add_on": add_on,
            "key_conf": {"key_defs": [{"type": "EC", "crv": "P-256", "use": ["sig"]}], "uri_path": "jwks.json"},
            "preference": {
                "id_token_signing_alg_values_supported": ALGORITHMS, "subject_types_supported": ["public"],
                "token_endpoint_auth_signing_alg_values_supported": ALGORITHMS, "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "scopes_supported": ["openid", "email", "offline_access"]},
            "authz": part("authz.AuthzHandling", grant_config={"usage_rules": usage, "expires_in": 86400}),
            "authentication": {"user": {"acr": "judge", **part("user_authn.user.NoAuthn", user="ada")}},
            "userinfo": part("user_info.UserInfo", db={"ada": {"email": EMAIL}}),
            "token_handler_args": {
                "jwks_def": {**keys("code"), "private_path": None}, "code": {"kwargs": {"lifetime": 60}}, "token": token, "refresh": token,
                "id_token": part("token.id_token.IDToken")},
            "session_params": {"encrypter": {"kwargs": {"keys": keys("password", "salt")}}},
            "cookie_handler": part(
                "cookie_handler.CookieHandler", encrypter={"kwargs": {"keys": keys("enc", "sig")}}, name=names),
        })
        self.context = self.server.context
        self.context.provider_info.update(metadata)
        # The package logs the keys of each new client, which fails for a client without keys.
        self.server.keyjar.key_summary = str
        if client_keys:
            self.context.cdb[CLIENT_ID] = {"client_id": CLIENT_ID, "redirect_uris": [(self.redirect, {})],
                                           "response_types_supported": ["code"], "application_type": "native"}
            self.server.keyjar.import_jwks({"keys": client_keys}, CLIENT_ID)
        self.endpoints = {"/" + each.endpoint_path: each for each in self.server.endpoint.values()}
        for each in self.server.endpoint.values():
            # The audience of an assertion is the issuer, and not the endpoint (FAPI 2.0, 5.3.2.1).
            each.allowed_targets = [""]

    def accepts(self, token):
        """Returns whether an access token is valid, according to the package."""
        session = self.context.session_manager.get_session_info_by_token(token, grant=True, handler_key="access_token")
        return session["grant"].get_token(token).is_active()

    def handle(self, request):
        if request.path == "/jwks.json":
            return json_response(json.loads(self.server.keyjar.export_jwks_as_json()))
        if request.path not in self.endpoints:
            return json_response({}, 404)
        answering = self.endpoints[request.path]
        http = {"headers": {name.lower(): value for name, value in request.headers.items()}, "method": request.method,
                "url": request.url}
        if request.is_form or not request.body:
            fields = request.form_fields() or request.query_fields()
        else:
            fields = json.loads(request.body)
        # The package also wants the parameters that OpenID Connect requires here, and that FAPI 2.0 (5.3.3.2) forbids.
        fields = {**self.context.par_db.get(fields.get("request_uri"), {}), **fields}
        try:
            asked = answering.parse_request(fields, http_info=http)
            if "error" in asked:
                return json_response(asked.to_dict(), 400)
            answer = answering.process_request(asked, http_info=http)
        except (OidcEndpointError, ValueError) as error:
            return oauth_error("invalid_request", repr(error))
        if "error" in answer:
            return json_response(dict(answer), 400)
        if "http_response" in answer:
            return json_response(answer["http_response"], 201)
        said = answering.do_response(request=asked, **answer)
        if answering.response_placement == "url":
            return redirect(said["response"])
        for field in ("access_token", "refresh_token", "client_secret"):
            if said["response"].startswith("{") and (secret := json.loads(said["response"]).get(field)):
                self.secrets.add(secret)
        return Response(answer.get("response_code", 200), said["response"].encode(), said["http_headers"])
