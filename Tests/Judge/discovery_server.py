"""Authlib's authorization server with metadata (RFC 8414), client registration (RFC 7591) and deletion (RFC 7592), and
the issuer in the redirect (RFC 9207). Authlib implements each of them."""

import copy
import http.client
import json
import os
import re
import ssl
import types
import urllib.parse

# Authlib requires https, but the judge uses loopback.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

from authlib.oauth2 import rfc6749, rfc7591, rfc7592, rfc8414, rfc9207
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oidc.core.grants import OpenIDCode
from authlib.oidc.discovery import OpenIDProviderMetadata
from joserfc.jwk import ECKey

from oauth2_server import OAuth2Server
from oauth2_store import IDENTITY_SCOPES, SCOPES, Client
from service import Response, json_response, oauth_error, text_response

METHODS = ["client_secret_basic", "client_secret_post", "none"]


class RegistrationRequest(rfc6749.JsonRequest):
    def __init__(self, request):
        super().__init__(request.method, request.url, headers=request.headers)
        self.payload = BasicOAuth2Payload(json.loads(request.body))


class DiscoveryServer(OAuth2Server):
    """`prefix` is the path of the issuer, and `place` the path of its metadata. `change` alters the metadata after
    Authlib's checks. Registration requires `initial_access_token` unless it is empty. Registered clients get the method
    `answers_with`. `manages` says whether clients can be deleted."""

    def __init__(self, prefix="", place=None, change=None, initial_access_token="", answers_with=None, names_issuer=True,
                 methods=METHODS, tls=None, manages=True):
        super().__init__(tls=tls)
        self.issuer = self.base + prefix
        self.change = change or (lambda metadata: None)
        self.initial_access_token = initial_access_token
        if initial_access_token:
            self.secrets.add(initial_access_token)
        self.answers_with = answers_with
        self.names_issuer = names_issuer
        self.methods = methods
        self.redirects = {}
        self.management = {}
        self.manages = manages
        self.place = place or prefix + "/.well-known/openid-configuration"
        self.routes[("GET", self.place)] = self.serve_metadata
        self.routes[("POST", "/register")] = self.register
        store = self

        class Registration(rfc7591.ClientRegistrationEndpoint):
            def get_server_metadata(self):
                return store.metadata()

            def authenticate_token(self, request):
                wanted = store.initial_access_token
                return not wanted or request.headers.get("Authorization") == f"Bearer {wanted}"

            def generate_client_secret(self, request):
                return store.secret("cs-", 40)

            def generate_client_registration_info(self, client, request):
                token = store.secret("rat-", 40)
                store.management[token] = client
                return {"registration_access_token": token,
                        "registration_client_uri": f"{store.base}/register/{client.identifier}",
                        "token_endpoint_auth_method": client.method}

            def save_client(self, client_info, client_metadata, request):
                method = store.answers_with or client_metadata["token_endpoint_auth_method"]
                client = Client(client_info["client_id"], client_info["client_secret"], method)
                store.clients[client.identifier] = client
                store.redirects[client.identifier] = client_metadata["redirect_uris"]
                return client

        class Issuer(rfc9207.IssuerParameter):
            def get_issuer(self):
                return store.issuer

        class Configuration(rfc7592.ClientConfigurationEndpoint):
            def authenticate_token(self, request):
                value = (request.headers.get("Authorization") or "").removeprefix("Bearer ")
                client = store.management.get(value)
                return client and types.SimpleNamespace(check_client=lambda other: other is client)

            def authenticate_client(self, request):
                return store.clients.get(request.uri.rpartition("/")[2])

            def check_permission(self, client, request):
                return True

            def delete_client(self, client, request):
                store.counts["deleted"] += 1
                del store.clients[client.identifier]

            def revoke_access_token(self, request, token):
                pass

        self.registration = Registration(self.authorization)
        self.configuration = Configuration(self.authorization)
        self.issuer_parameter = Issuer()

    def metadata(self):
        return {
            "issuer": self.issuer, "authorization_endpoint": self.base + "/authorize", "token_endpoint": self.base + "/token",
            "device_authorization_endpoint": self.base + "/device", "registration_endpoint": self.base + "/register",
            "revocation_endpoint": self.base + "/revoke", "introspection_endpoint": self.base + "/introspect",
            "userinfo_endpoint": self.base + "/userinfo", "jwks_uri": self.base + "/jwks",
            "response_types_supported": ["code"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials",
                                      "urn:ietf:params:oauth:grant-type:device_code"],
            "scopes_supported": self.scopes, "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": self.methods,
            "revocation_endpoint_auth_methods_supported": METHODS,
            "introspection_endpoint_auth_methods_supported": METHODS,
            "authorization_response_iss_parameter_supported": self.names_issuer,
        }

    def serve_metadata(self, _):
        metadata = self.metadata()
        kind = OpenIDProviderMetadata if "openid" in self.place else rfc8414.AuthorizationServerMetadata
        kind(copy.deepcopy(metadata)).validate()
        changed = self.change(metadata)
        if isinstance(changed, Response):
            return changed
        if isinstance(changed, str):
            return text_response(changed, content_type="application/json")
        return json_response(metadata)

    def register(self, request):
        self.counts["registered"] += 1
        try:
            status, body, _ = self.registration.create_registration_response(RegistrationRequest(request))
        except rfc6749.OAuth2Error as error:
            return oauth_error(error.error, error.description or "", error.status_code)
        return json_response(body, status)

    def handle(self, request):
        if request.path.startswith("/register/"):
            self.routes[(request.method, request.path)] = self.manage
        return super().handle(request)

    def manage(self, request):
        if not self.manages:
            return text_response("no such thing", 405)
        try:
            status, body, _ = self.configuration.create_configuration_response(
                rfc6749.JsonRequest(request.method, request.url, headers=request.headers))
        except rfc6749.OAuth2Error as error:
            return oauth_error(error.error, error.description or "", error.status_code)
        return Response(status, body.encode() if isinstance(body, str) else json.dumps(body).encode())

    def decide(self, request):
        response = super().decide(request)
        location = response.header("Location")
        if not self.names_issuer or location is None:
            return response
        named = types.SimpleNamespace(location=location)
        self.issuer_parameter.add_issuer_parameter(self.authorization, named)
        return Response(response.status, response.body, [("Location", named.location)])


class ResourceServer(DiscoveryServer):
    """As DiscoveryServer, with a protected resource at `/mcp` (RFC 9728), like an MCP server. Tokens are only for this
    resource (RFC 8707): a request without it is refused. `POST` needs the scope `write`, and `PUT` a login of level
    `gold` (RFC 9470)."""

    well_known = "/.well-known/oauth-protected-resource"

    def __init__(self, **options):
        super().__init__(**options)
        self.address = self.base + "/mcp"
        for method in ("GET", "POST", "PUT"):
            self.routes[(method, "/mcp")] = self.mcp
        self.routes[("GET", self.well_known + "/mcp")] = lambda _: json_response(self.resource_metadata())

    def resource_metadata(self):
        return {"resource": self.address, "authorization_servers": [self.issuer], "scopes_supported": ["read", "write"],
                "bearer_methods_supported": ["header"]}

    def refuse(self, status, **parameters):
        parameters["resource_metadata"] = self.base + self.well_known + "/mcp"
        challenge = "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parameters.items())
        return json_response({"error": parameters.get("error", "")}, status, [("WWW-Authenticate", challenge)])

    def mcp(self, request):
        value = (request.headers.get("Authorization") or "").removeprefix("Bearer ")
        if not value:
            return self.refuse(401, scope="read")
        if not self.accepts(value):
            return self.refuse(401, error="invalid_token")
        if request.method == "POST" and "write" not in self.find(value).scope.split():
            return self.refuse(403, error="insufficient_scope", scope="write")
        if request.method == "PUT" and self.level != "gold":
            return self.refuse(401, error="insufficient_user_authentication", acr_values="gold", max_age="60")
        return json_response({"scope": self.find(value).scope})

    level = ""

    def authorize(self, request):
        fields = request.query_fields()
        if fields.get("resource") != self.address:
            return oauth_error("invalid_target", "no token for another resource")
        self.level = fields.get("acr_values", self.level)
        return super().authorize(request)

    def token(self, request):
        if request.form_fields().get("resource") != self.address:
            return oauth_error("invalid_target", "no token for another resource")
        return super().token(request)


class DocumentServer(DiscoveryServer):
    """As DiscoveryServer, without registration: a client's identifier is the URL of a document with its metadata
    (draft-ietf-oauth-client-id-metadata-document-01), which this server fetches."""

    def __init__(self, authorities, **options):
        super().__init__(**options)
        known = self.clients
        server = self

        class Documents(dict):
            def get(self, identifier, default=None):
                return known.get(identifier) or server.documented(identifier, authorities) or default

        self.clients = Documents()

    def metadata(self):
        metadata = super().metadata() | {"client_id_metadata_document_supported": True}
        del metadata["registration_endpoint"]
        return metadata

    def documented(self, identifier, authorities):
        place = urllib.parse.urlsplit(identifier)
        if place.scheme != "https" or not place.path or place.fragment:
            return None
        context = ssl.create_default_context(cafile=authorities)
        connection = http.client.HTTPSConnection(place.netloc, context=context, timeout=10)
        connection.request("GET", place.path)
        answer = connection.getresponse()
        if answer.status != 200:
            return None
        document = json.loads(answer.read())
        if document["client_id"] != identifier or document.get("token_endpoint_auth_method") != "none":
            return None

        class Documented(Client):
            def check_redirect_uri(self, redirect_uri):
                # RFC 8252 section 7.3: only the port may differ.
                return re.sub(r"^(http://127\.0\.0\.1):[0-9]+/", r"\1/", redirect_uri) in document["redirect_uris"]

            def check_grant_type(self, grant_type):
                return grant_type in document["grant_types"]

        return Documented(identifier, "", "none")


class OpenIDServer(DiscoveryServer):
    """As DiscoveryServer, with OpenID Connect: the scope `openid` returns an ID token and requires a nonce.
    `turns_nonce` changes the nonce."""

    scopes = SCOPES + IDENTITY_SCOPES
    subject = "248289761001"
    email = "ada@example.org"

    def __init__(self, turns_nonce=lambda nonce: nonce, **options):
        self.turns_nonce = turns_nonce
        self.key = ECKey.generate_key("P-256")
        # The keys that the server publishes; `None` makes the answer 503.
        self.published = [self.key]
        super().__init__(**options)
        self.routes[("GET", "/jwks")] = self.jwks
        self.routes[("GET", "/userinfo")] = self.userinfo

    def jwks(self, request):
        self.counts["jwks"] += 1
        if self.published is None:
            return text_response("maintenance", 503)
        return json_response({"keys": [key.as_dict(private=False) for key in self.published]})

    def code_extensions(self):
        server = self

        class Code(OpenIDCode):
            def exists_nonce(self, nonce, request):
                return any(code.nonce == nonce for code in server.codes.values())

            def get_client_algorithm(self, client):
                return "ES256"

            def resolve_client_private_key(self, client):
                return server.key

            def get_client_claims(self, client):
                return {"iss": server.issuer}

            def get_authorization_code_claims(self, authorization_code):
                claims = super().get_authorization_code_claims(authorization_code)
                return claims | {"nonce": server.turns_nonce(authorization_code.nonce)}

            def generate_user_info(self, user, scope):
                return {"sub": server.subject}

            def encode_id_token(self, token, request):
                text = super().encode_id_token(token, request)
                server.secrets.add(text)
                return text

        return super().code_extensions() + [Code(require_nonce=True)]

    def userinfo(self, request):
        token = (request.headers.get("Authorization") or "").removeprefix("Bearer ")
        if not self.accepts(token):
            return json_response({"error": "invalid_token"}, 401)
        return json_response({"sub": self.subject, "email": self.email})
