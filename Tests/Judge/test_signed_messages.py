"""Signed requests (RFC 9101), signed answers (JARM), assertions and ID tokens. PyJWT signs and verifies the other side."""

import json
import time

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from program import REFUSED, ProgramTest
from service import Service, json_response, oauth_error, redirect, with_query
from test_service_accounts import pem

KEYS = {
    "PS256": (rsa.generate_private_key(public_exponent=65537, key_size=2048), RSAAlgorithm),
    "ES256": (ec.generate_private_key(ec.SECP256R1()), ECAlgorithm),
    "EdDSA": (ed25519.Ed25519PrivateKey.generate(), OKPAlgorithm),
}


class Provider(Service):
    """Accepts only signed requests and assertions of one algorithm, and signs its answers and ID tokens with it."""

    def __init__(self, algorithm, client_key, forges=()):
        super().__init__()
        self.algorithm, self.client_key, self.forges = algorithm, client_key, forges
        self.key, self.kind = KEYS[algorithm]
        self.codes, self.faults = {}, []

    def sign(self, claims, part):
        key = ec.generate_private_key(ec.SECP256R1()) if part in self.forges else self.key
        algorithm = "ES256" if part in self.forges else self.algorithm
        return jwt.encode(claims, key, algorithm, headers={"kid": "one"})

    def verified(self, text, typ=None):
        if typ and jwt.get_unverified_header(text)["typ"] != typ:
            raise jwt.InvalidTokenError("typ")
        return jwt.decode(text, self.client_key.public_key(), algorithms=[self.algorithm], audience=self.base,
                          issuer="app", options={"require": ["exp", "iat", "iss", "aud", "jti"]})

    def handle(self, request):
        try:
            return self.answer(request)
        except (jwt.PyJWTError, KeyError) as error:
            self.faults.append(repr(error))
            return oauth_error("invalid_request", repr(error))

    def answer(self, request):
        if request.path == "/jwks":
            key = {**json.loads(self.kind.to_jwk(self.key.public_key())), "kid": "one", "use": "sig"}
            key.pop("key_ops", None)
            return json_response({"keys": [{"kty": "oct", "k": "AAAA"}, key]})
        if request.path == "/authorize":
            sent = request.query_fields()
            if set(sent) != {"client_id", "request"}:
                raise KeyError(str(sorted(sent)))
            asked = self.verified(sent["request"], "oauth-authz-req+jwt")
            if asked["exp"] - asked["nbf"] > 3600 or asked["response_mode"] != "jwt":
                raise KeyError("nbf")
            self.codes["code-1"] = asked
            answer = {"iss": self.base, "aud": "app", "exp": int(time.time()) + 60, "code": "code-1",
                      "state": asked["state"]}
            return redirect(with_query(asked["redirect_uri"], {"response": self.sign(answer, "answer")}))
        if request.path == "/token":
            form = request.form_fields()
            self.verified(form["client_assertion"])
            asked = self.codes.pop(form["code"])
            now = int(time.time())
            claims = {"iss": self.base, "sub": "ada", "aud": "app", "iat": now, "exp": now + 60, "nonce": asked["nonce"]}
            return json_response({"access_token": "token-1", "token_type": "Bearer", "expires_in": 3600,
                                  "id_token": self.sign(claims, "id_token")})
        if request.path == "/revoke":
            return json_response({})
        return json_response({"sub": "ada", "name": "Ada"})


class SignedMessages(ProgramTest):
    def login(self, algorithm, status=0, **options):
        key = KEYS[algorithm][0]
        provider = self.serve(Provider(algorithm, key, **options))
        text = f"""
            provider: signing
            grant: authorization_code
            endpoints:
              authorization: {{ url: "{provider.base}/authorize", parameters: {{ response_mode: jwt }} }}
              token: {provider.base}/token
              identity: {provider.base}/me
              revocation: {provider.base}/revoke
              jwks: {provider.base}/jwks
            issuer: {provider.base}
            account: name
            scope: [openid]
            nonce: true
            client: {{ authentication: private_key_jwt }}
            assertion: {{ algorithm: {algorithm} }}
            request_object: true
            id_token_signed_response_alg: {algorithm}
            """
        file = self.file("signing.yaml", "\n".join(line[12:] for line in text.splitlines()) + "\n")
        self.credmgr("add-provider", file, "--client-id", "app", "--client-secret-file", self.file("key.pem", pem(key)),
                     "--replace", "--yes")
        return provider, self.credmgr("login", "signing", status=status)

    def test_all_algorithms(self):
        for algorithm in KEYS:
            with self.subTest(algorithm):
                provider, _ = self.login(algorithm)
                self.assertEqual(provider.faults, [])
                answer = json.loads(self.credmgr("validate", "signing", "--json").out)
                self.assertEqual((answer["account"], answer["id_token"]["verified"]), ("Ada", True))
                self.assertEqual(answer["id_token"]["claims"]["sub"], "ada")
                self.credmgr("logout", "signing")

    def test_forged_messages(self):
        for part, words in (("answer", "invalid signed redirect"), ("id_token", "invalid ID token")):
            with self.subTest(part):
                provider, outcome = self.login("ES256", status=REFUSED, forges=(part,))
                self.assertEqual(provider.faults, [])
                self.assertIn(words, outcome.err)
                self.assertIn("its signature is wrong", outcome.err)
                self.assertEqual("code-1" in provider.codes, part == "answer", "no code goes to the token endpoint")
