"""Tokens that are bound to a key or to a certificate, at servers that verify the proofs."""

import base64
import hashlib
import json
import os
import ssl
import subprocess
import unittest

import jwt
from glewlwyd_server import GlewlwydTest
from mutual_tls_server import CLIENT_ID, MutualTLSServer
from program import LOGIN_NEEDED, UNREACHABLE, USAGE, ProgramTest
from tls import Authority


def verified(proof):
    """Verifies a proof with PyJWT, and returns its header and claims (RFC 9449, 4.3)."""
    header = jwt.get_unverified_header(proof)
    assert header["typ"] == "dpop+jwt" and header["alg"] == "ES256", header
    assert set(header["jwk"]) == {"kty", "crv", "x", "y"}, header
    key = jwt.PyJWK({**header["jwk"], "alg": "ES256"})
    return header, jwt.decode(proof, key, algorithms=["ES256"], options={"require": ["iat", "jti"]}, leeway=5)


def digest(data):
    data = data.encode() if isinstance(data, str) else data
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


class SimulatedProfile(ProgramTest):
    """The simulator brings the key or the certificate of the client, so all can be tried with its own files."""

    def test_ways_of_authentication(self):
        key = "private_key_jwt"
        for method, more in (
                (key, ""), (key, "assertion: { algorithm: PS256 }"), (key, "assertion: { algorithm: ES256 }"),
                (key, "assertion: { algorithm: EdDSA }"), (key, "token_binding: mutual_tls"), ("tls_client_auth", ""),
                ("self_signed_tls_client_auth", "")):
            with self.subTest(method=method, more=more):
                self.new_home()
                said = self.simulated(self.file("machine.yaml", f"""\
provider: machine
grant: client_credentials
endpoints: {{ client_credentials: "https://machine.example/token" }}
client: {{ authentication: {method} }}
hosts: [machine.example]
{more}
"""))
                self.credmgr("add-provider", said["descriptor"], "--client-id", said["client-id"],
                             "--client-secret-file", said["client-secret-file"])
                trust = {"SSL_CERT_FILE": said["authority"]} if "authority" in said else {}
                self.credmgr("login", "machine", environment=trust)
                origin = said.get("listening with TLS on", said["listening on"])
                self.credmgr("request", "machine", origin + "/simulator/resource", environment=trust)

    def test_a_machine(self):
        said = self.simulated(self.file("bank.yaml", """\
            provider: bank
            profile: fapi2
            grant: client_credentials
            issuer: https://bank.example
            endpoints: { client_credentials: "https://bank.example/token" }
            hosts: [bank.example]
            """))
        self.credmgr("add-provider", said["descriptor"], "--client-id", said["client-id"],
                     "--client-secret-file", said["client-secret-file"])
        self.credmgr("login", "bank")
        url = said["listening on"] + "/simulator/resource"
        self.credmgr("request", "bank", url)
        lines = self.credmgr("header", "bank", "--url", url).out.splitlines()
        verified(next(line.removeprefix("DPoP: ") for line in lines if line.startswith("DPoP: ")))


class BoundToKey(GlewlwydTest):
    """glewlwyd verifies pushed requests and proofs, with nonces, at its token endpoint and at its userinfo."""

    def setUp(self):
        super().setUp()
        base = "https://127.0.0.1:{port}/api/oidc"
        text = self.descriptor.replace("endpoints:\n", f"endpoints:\n  pushed_authorization_request: {base}/par\n")
        self.serve_glewlwyd()
        self.add_glewlwyd(descriptor=text + "token_binding: dpop\n")
        self.userinfo = self.service.base + "/api/oidc/userinfo"

    def test_from_login_to_logout(self):
        self.assertRegex(self.log_in(), r"/auth\?client_id=[^&]+&request_uri=urn[^&]+$")
        self.assertIn("sub", json.loads(self.credmgr("request", "glewlwyd", self.userinfo).out))
        outcome = self.credmgr("token", "glewlwyd")
        self.assertIn("the token alone is of no use", outcome.err)
        token = outcome.line
        # The token says to which key glewlwyd bound it, and each proof is of this key.
        bound = jwt.decode(token, options={"verify_signature": False})["cnf"]["jkt"]
        jwk = self.assert_proof(token, "GET")
        self.assertEqual(digest(json.dumps(jwk, sort_keys=True, separators=(",", ":"))), bound)
        self.credmgr("refresh", "glewlwyd")
        renewed = self.credmgr("token", "glewlwyd").line
        self.assertNotEqual(renewed, token)
        self.assertEqual(self.assert_proof(renewed, "POST"), jwk)
        # Other programs get no token that is of no use to them.
        self.credmgr("exec", "glewlwyd=TOKEN", "--", "true", status=USAGE)
        self.credmgr("logout", "glewlwyd")
        self.credmgr("token", "glewlwyd", status=LOGIN_NEEDED)

    def assert_proof(self, token, method):
        """Checks the headers for one request, and returns the public key."""
        lines = self.credmgr("header", "glewlwyd", "--url", self.userinfo + "?x=y", "--method", method).out.splitlines()
        fields = dict(line.split(": ", 1) for line in lines)
        self.assertEqual(fields["Authorization"], "DPoP " + token)
        header, claims = verified(fields["DPoP"])
        self.assertEqual((claims["htm"], claims["htu"], claims["ath"]), (method, self.userinfo, digest(token)))
        return header["jwk"]


class BoundToCertificate(ProgramTest):
    def setUp(self):
        super().setUp()
        self.authority = authority = Authority(self.folder)
        self.environment["SSL_CERT_FILE"] = authority.certificate
        self.service = self.serve(MutualTLSServer(authority))
        self.certificate, self.key = authority.client("client")

    def add_client(self, *arguments, key=None, status=0):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "descriptors", "mutual-tls.yaml")
        return self.credmgr("add-provider", path, "--client-id", CLIENT_ID, "--client-secret-file", key or self.key,
                            "--set", f"port={self.service.port}", "--replace", *arguments, status=status)

    def test_token_and_request_carry_the_certificate(self):
        # A key without its certificate is not enough.
        self.assertIn("requires a client certificate", self.add_client(status=USAGE).err)
        self.add_client("--client-certificate", self.certificate)
        self.credmgr("login", "mutual-tls")
        answer = self.credmgr("request", "mutual-tls", self.service.base + "/notes").out
        self.assertEqual(json.loads(answer), {"path": "/notes"})
        der = subprocess.run(["openssl", "x509", "-in", self.certificate, "-outform", "DER"], capture_output=True,
                             check=True).stdout
        own = base64.urlsafe_b64encode(hashlib.sha256(der).digest()).decode().rstrip("=")
        self.assertEqual(self.service.seen, [("/token", own), ("/notes", own)])
        self.assertIn("the header alone is of no use", self.credmgr("header", "mutual-tls").err)
        outcome = self.credmgr("token", "mutual-tls")
        self.assertIn("the token alone is of no use", outcome.err)
        self.credmgr("exec", "mutual-tls=TOKEN", "--", "true", status=USAGE)
        # The server binds each token, so one of another certificate is refused, and credmgr gets another token.
        self.service.tokens[outcome.line] = "another"
        self.credmgr("request", "mutual-tls", self.service.base + "/notes")
        self.assertEqual([path for path, _ in self.service.seen[2:]], ["/notes", "/token", "/notes"])
        self.assertEqual({key for _, key in self.service.seen}, {own})

    def test_a_useless_certificate_never_replaces_a_good_one(self):
        self.add_client("--client-certificate", self.certificate)
        encrypted = os.path.join(self.folder, "encrypted.key")
        subprocess.run(["openssl", "pkey", "-in", self.key, "-aes128", "-passout", "pass:x", "-out", encrypted],
                       check=True, capture_output=True)
        _, other = self.authority.client("other")
        for key, why in ((encrypted, "it has a passphrase"), (other, "belongs to another certificate"),
                         (self.certificate, "its private key is missing")):
            refused = self.add_client("--client-certificate", self.certificate, key=key, status=USAGE)
            self.assertIn(why, refused.err)
        # Other users may have read the key.
        os.chmod(self.key, 0o644)
        refused = self.add_client("--client-certificate", self.certificate, status=USAGE)
        self.assertIn("can read", refused.err)
        self.credmgr("login", "mutual-tls")

    @unittest.skipUnless(os.access("/usr/bin/faketime", os.X_OK), "there is no faketime")
    def test_doctor_names_the_end_of_the_certificate(self):
        online = os.path.join(os.path.dirname(self.binary), "credmgr-online")
        self.add_client("--client-certificate", self.certificate)

        def doctor(change):
            command = ("--exclude-monotonic", "-f", change, online, "doctor")
            return self.run_program(*command, binary="/usr/bin/faketime")

        for change, words in (("+1h", r"(?m)^note +descriptors +the client certificate of .* expires in 1 d"),
                              ("+3d", r"(?m)^problem +descriptors +servers will refuse the client certificate of .* expired at ")):
            outcome = doctor(change)
            self.assertRegex(outcome.out, words)
            self.assertIn("--client-certificate FILE", outcome.out)
        _, self.key = chain, _ = self.authority.client("later", "client", days=30)
        self.add_client("--client-certificate", chain)
        self.assertNotIn("client certificate", doctor("+1h").out)

    def test_old_versions_of_TLS_are_refused(self):
        self.service.http.socket.context.maximum_version = ssl.TLSVersion.TLSv1_1
        self.service.http.socket.context.set_ciphers("ALL:@SECLEVEL=0")
        self.add_client("--client-certificate", self.certificate)
        self.assertIn("no trusted TLS connection", self.credmgr("login", "mutual-tls", status=UNREACHABLE).err)
        self.assertEqual(self.service.seen, [])
