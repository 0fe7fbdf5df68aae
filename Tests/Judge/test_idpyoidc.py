"""The OpenID Provider of the `idpyoidc` package, over TLS, from its address to the logout."""

import json
import os

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from idpyoidc_server import CLIENT_ID, EMAIL, IdpyOIDC
from program import LOGIN_NEEDED, ProgramTest
from test_bound_tokens import digest, verified
from test_service_accounts import pem
from tls import Authority


class OpenIDProvider(ProgramTest):
    accounts = (EMAIL,)

    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder)
        self.environment["SSL_CERT_FILE"] = self.authority.certificate

    def provider(self, *arguments, **options):
        service = self.serve(IdpyOIDC(self.authority.context(), **options))
        self.credmgr("add-provider", service.base, "--as", "idpy", "--yes", "--set", "redirect_uri=" + service.redirect,
                     *arguments)
        return service

    def from_login_to_logout(self, service):
        self.credmgr("login", "idpy", "--timeout", "1m")
        answer = json.loads(self.credmgr("validate", "idpy", "--json").out)
        self.assertEqual((answer["account"], answer["id_token"]["verified"]), (EMAIL, True))
        self.assertEqual(answer["id_token"]["claims"]["iss"], service.base)
        tokens = {self.credmgr("token", "idpy").line}
        # Each refresh token works once.
        for _ in range(2):
            self.credmgr("refresh", "idpy")
            tokens.add(self.credmgr("token", "idpy").line)
        self.assertEqual(len(tokens), 3)
        userinfo = json.loads(self.credmgr("request", "idpy", service.base + "/userinfo").out)
        self.assertEqual(userinfo["sub"], answer["id_token"]["claims"]["sub"])
        return tokens

    def log_out(self, service):
        token = self.credmgr("token", "idpy").line
        self.assertTrue(service.accepts(token))
        self.credmgr("logout", "idpy")
        self.assertFalse(service.accepts(token))
        self.credmgr("token", "idpy", status=LOGIN_NEEDED)

    def test_a_registered_client(self):
        service = self.provider()
        self.from_login_to_logout(service)
        self.log_out(service)

    def test_pushed_requests_assertions_and_proofs(self):
        key = ec.generate_private_key(ec.SECP256R1())
        public = json.loads(ECAlgorithm.to_jwk(key.public_key()))
        service = self.provider("--client-id", CLIENT_ID, "--client-secret-file", self.file("key.pem", pem(key)),
                                client_keys=[{**public, "use": "sig"}])
        # The provider takes nothing else than the profile demands, so credmgr switches the profile on.
        kept = os.path.join(self.environment["CREDMGR_HOME"], "config/providers/idpy.yaml")
        with open(kept, encoding="utf-8") as file:
            self.assertIn("profile: fapi2", file.read())
        tokens = self.from_login_to_logout(service)
        opened, = service.requests("/authorization")
        self.assertEqual(set(opened.query_fields()), {"client_id", "request_uri"})
        lines = self.credmgr("header", "idpy", "--url", service.base + "/userinfo").out.splitlines()
        header, _ = verified(dict(line.split(": ", 1) for line in lines)["DPoP"])
        thumbprint = digest(json.dumps(header["jwk"], sort_keys=True, separators=(",", ":")))
        # All tokens are bound to the account's key.
        bound = {jwt.decode(token, options={"verify_signature": False})["cnf"]["jkt"] for token in tokens}
        self.assertEqual(bound, {thumbprint})
        self.log_out(service)
