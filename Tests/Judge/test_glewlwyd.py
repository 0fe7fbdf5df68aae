"""glewlwyd verifies certificates of clients, and signed requests; and it signs its answers."""

import base64
import os
import ssl
import subprocess

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from glewlwyd_server import GlewlwydTest
from program import LOGIN_NEEDED, REFUSED
from test_bound_tokens import digest
from test_service_accounts import pem


def content(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class BoundToCertificate(GlewlwydTest):
    def descriptor_with(self, method):
        text = self.descriptor
        for leg in ("token", "device_authorization", "introspect", "revoke"):
            text = text.replace(f"/api/oidc/{leg}\n", f"/api/oidc/mtls/{leg}\n")
        return text + f"token_binding: mutual_tls\nclient: {{ authentication: {method} }}\n"

    def from_login_to_logout(self, method, certificate, key):
        self.add_glewlwyd(
            "--client-certificate", certificate, descriptor=self.descriptor_with(method), secret=content(key))
        self.log_in()
        thumbprint = digest(ssl.PEM_cert_to_DER_cert(content(certificate)))
        for _ in range(2):
            claims = jwt.decode(self.credmgr("token", "glewlwyd").line, options={"verify_signature": False})
            self.assertEqual(claims["cnf"], {"x5t#S256": thumbprint})
            self.credmgr("refresh", "glewlwyd")
        self.assertEqual(self.credmgr("validate", "glewlwyd").line, "active")
        self.credmgr("logout", "glewlwyd")
        self.assertEqual(self.valid_refresh_tokens(), 0)
        self.credmgr("token", "glewlwyd", status=LOGIN_NEEDED)

    def test_a_certificate_of_an_authority(self):
        method = "tls_client_auth"
        self.serve_glewlwyd(token_endpoint_auth_method=[method], tls_client_auth_subject_dn="CN=judge")
        self.from_login_to_logout(method, *self.authority.client("judge"))
        # The authority issued this certificate to someone else.
        certificate, key = self.authority.client("other")
        self.add_glewlwyd(
            "--client-certificate", certificate, descriptor=self.descriptor_with(method), secret=content(key))
        self.log_in(status=REFUSED)

    def test_a_certificate_that_is_its_own_authority(self):
        method = "self_signed_tls_client_auth"
        certificate, key = os.path.join(self.folder, "own.pem"), os.path.join(self.folder, "own.key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=own",
                        "-keyout", key, "-out", certificate], check=True, capture_output=True)
        # glewlwyd compares the registered certificate, but its TLS refuses one of an unknown authority before that.
        with open(self.authority.certificate, "a", encoding="utf-8") as file:
            file.write(content(certificate))
        der = base64.b64encode(ssl.PEM_cert_to_DER_cert(content(certificate))).decode()
        registered = self.public(certificate) | {"x5c": [der]}
        self.serve_glewlwyd(token_endpoint_auth_method=[method], jwks={"keys": [registered]})
        self.from_login_to_logout(method, certificate, key)

    def public(self, certificate):
        key = subprocess.run(
            ["openssl", "x509", "-in", certificate, "-pubkey", "-noout"], check=True, capture_output=True)
        algorithm = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256)
        return algorithm.to_jwk(algorithm.prepare_key(key.stdout), as_dict=True) | {"kid": "own"}


class SignedMessages(GlewlwydTest):
    """glewlwyd wants its endpoint as the audience of an assertion, and `client_id` beside it."""

    def log_in_with(self, algorithm, key, **legs):
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
        self.serve_glewlwyd(token_endpoint_auth_method=["private_key_jwt"], request_object_signing_alg=algorithm,
                            token_endpoint_signing_alg=algorithm, pubkey=public)
        base = "https://127.0.0.1:{port}/api/oidc"
        endpoints = {
            "authorization": f'{{ url: "{base}/auth", parameters: {{ response_mode: jwt }} }}',
            "token": f'{{ url: "{base}/token", parameters: {{ client_id: "{{client_id}}" }} }}',
            "jwks": base + "/jwks", "identity": base + "/userinfo", **legs}
        lines = ["provider: glewlwyd", "grant: authorization_code", "endpoints:"]
        lines += [f"  {name}: {value}" for name, value in endpoints.items()]
        rest = self.descriptor[self.descriptor.index("\nredirect:"):]
        variables = self.descriptor[self.descriptor.index("variables:"):self.descriptor.index("\nendpoints:")]
        lines += [variables, rest, "client: { authentication: private_key_jwt }", "request_object: true",
                  f"assertion: {{ algorithm: {algorithm}, audience: endpoint }}"]
        self.add_glewlwyd(descriptor="\n".join(lines) + "\n", secret=pem(key))
        address = self.log_in()
        self.assertIn('"verified": true', self.credmgr("validate", "glewlwyd", "--json").out)
        self.credmgr("refresh", "glewlwyd")
        return address

    def test_an_elliptic_curve(self):
        address = self.log_in_with("ES256", ec.generate_private_key(ec.SECP256R1()))
        self.assertRegex(address, r"/auth\?client_id=[^&]+&request=[^&]+$")

    def test_rsa_and_a_pushed_request(self):
        # glewlwyd forgets a pushed `response_mode`, and does not sign the answer.
        base = "https://127.0.0.1:{port}/api/oidc"
        par = f'{{ url: "{base}/par", parameters: {{ client_id: "{{client_id}}" }} }}'
        address = self.log_in_with("PS256", rsa.generate_private_key(public_exponent=65537, key_size=2048),
                                   authorization=base + "/auth", pushed_authorization_request=par)
        self.assertRegex(address, r"/auth\?client_id=[^&]+&request_uri=urn[^&]+$")
