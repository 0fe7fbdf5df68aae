"""An OAuth 1.0a provider built on Authlib as documented: Authlib does all checks and writes all messages."""

import urllib.parse

from authlib.oauth1 import AuthorizationServer, OAuth1Request, ResourceProtector
from authlib.oauth1.rfc5849.errors import OAuth1Error
from authlib.oauth1.rfc5849.models import ClientMixin, TemporaryCredential
from authlib.oauth1.rfc5849.signature import SIGNATURE_HMAC_SHA1, SIGNATURE_PLAINTEXT, SIGNATURE_RSA_SHA1

from service import Response, Service, consent_page, json_response

CLIENT_KEY = "judge-consumer"
CLIENT_SECRET = "c0nsumer-s3cret-for-authlib"
METHODS = [SIGNATURE_HMAC_SHA1, SIGNATURE_RSA_SHA1, SIGNATURE_PLAINTEXT]


class Client(ClientMixin):
    rsa_public_key = None

    def get_default_redirect_uri(self):
        return "oob"

    def get_client_secret(self):
        return CLIENT_SECRET

    def get_rsa_public_key(self):
        return self.rsa_public_key


class Memory:
    """Stores what Authlib requires of a server."""

    SUPPORTED_SIGNATURE_METHODS = METHODS

    def __init__(self, service):
        super().__init__()
        self.service = service
        self.client = Client()
        self.temporary, self.tokens, self.nonces = {}, {}, set()

    def get_client_by_id(self, client_id):
        return self.client if client_id == CLIENT_KEY else None

    def exists_nonce(self, nonce, request):
        use = (nonce, request.timestamp, request.token)
        known = use in self.nonces
        self.nonces.add(use)
        return known


class Authorization(Memory, AuthorizationServer):
    TOKEN_RESPONSE_HEADER = [("Content-Type", "application/x-www-form-urlencoded")]

    def create_oauth1_request(self, request):
        return request if isinstance(request, OAuth1Request) else oauth1_request(request)

    def handle_response(self, status_code, payload, headers):
        body = urllib.parse.urlencode(payload) if payload else ""
        return Response(status_code, body.encode(), list(headers))

    def create_temporary_credential(self, request):
        token = TemporaryCredential(
            oauth_token=self.service.secret(), oauth_token_secret=self.service.secret(),
            client_id=request.client_id, oauth_callback=request.redirect_uri)
        self.service.secrets.discard(token["oauth_token"])  # the page's address contains it
        self.temporary[token["oauth_token"]] = token
        return token

    def get_temporary_credential(self, request):
        return self.temporary.get(request.token)

    def delete_temporary_credential(self, request):
        self.temporary.pop(request.token, None)

    def create_authorization_verifier(self, request):
        request.credential["oauth_verifier"] = self.service.secret()
        return request.credential["oauth_verifier"]

    def create_token_credential(self, request):
        token = TemporaryCredential(
            oauth_token=self.service.secret(), oauth_token_secret=self.service.secret(), client_id=request.client_id)
        self.tokens[token["oauth_token"]] = token
        return token


class Protector(Memory, ResourceProtector):
    def get_token_credential(self, request):
        return self.service.authorization.tokens.get(request.token)


def oauth1_request(request):
    body = request.form_fields() or None
    return OAuth1Request(request.method, request.url, body, {name: value for name, value in request.headers.items()})


class AuthlibOAuth1Server(Service):
    def __init__(self, rsa_public_key=None):
        super().__init__()
        self.authorization, self.protector = Authorization(self), Protector(self)
        for memory in (self.authorization, self.protector):
            memory.client.rsa_public_key = rsa_public_key
        self.secrets.add(CLIENT_SECRET)
        self.routes["POST", "/initiate"] = self.authorization.create_temporary_credentials_response
        self.routes["GET", "/authorize"] = lambda request: consent_page(
            "May credmgr use your account?", "/authorize?" + request.query_string, [])
        self.routes["POST", "/authorize"] = self.decide
        self.routes["POST", "/token"] = self.authorization.create_token_response
        self.routes["GET", "/photos"] = self.routes["POST", "/photos"] = self.photos

    def decide(self, request):
        page = OAuth1Request("GET", request.url, None, {})
        person = type("Person", (), {"id": "ada"}) if request.form_fields()["decision"] == "approve" else None
        return self.authorization.create_authorization_response(page, grant_user=person)

    def photos(self, request):
        try:
            form = request.form_fields() or None
            checked = self.protector.validate_request(
                request.method, request.url, form, {name: value for name, value in request.headers.items()})
        except OAuth1Error as error:
            return self.authorization.handle_error_response(error)
        self.counts["photos"] += 1
        return json_response({"owner": checked.client_id})
