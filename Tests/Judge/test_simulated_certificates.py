"""The simulator as a provider that checks certificates (RFC 8705): for credmgr, for curl, and for Python's TLS."""

import base64
import hashlib
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import unittest
import urllib.parse

from program import ADA, DONE, REFUSED, USAGE, ProgramTest, is_test_build
from tls import Authority

DESCRIPTOR = """\
provider: bank
grant: {grant}
endpoints:
  authorization: https://bank.example/authorize
  token: https://bank.example/token
  introspection: https://bank.example/introspect
client: {{ authentication: {method} }}
token_binding: mutual_tls
scope: [read]
hosts: [bank.example]
"""


def thumbprint(path):
    text = content(path)
    text = text[text.index("-----BEGIN CERTIFICATE-----"):]
    text = text[:text.index("-----END CERTIFICATE-----")] + "-----END CERTIFICATE-----\n"
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(text)).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def content(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class SimulatedCertificates(ProgramTest):
    def simulate(self, method, *options, grant="[authorization_code, client_credentials]"):
        self.said = self.simulated(self.file("bank.yaml", DESCRIPTOR.format(method=method, grant=grant)), *options)
        self.origin = self.said["listening with TLS on"]
        self.own = self.said["client-secret-file"]

    def send(self, path, client=None, form=None, token=None, origin=None):
        """Sends a request as another program: with Python's TLS, and the strictest checks of the server."""
        uri = urllib.parse.urlsplit(origin or self.origin)
        if uri.scheme == "https":
            context = ssl.create_default_context(cafile=self.said["authority"])
            context.verify_flags |= ssl.VERIFY_X509_STRICT
            if client:
                context.load_cert_chain(*((client,) if isinstance(client, str) else client))
            connection = http.client.HTTPSConnection(uri.netloc, context=context)
        else:
            connection = http.client.HTTPConnection(uri.netloc)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        with_body = form is not None and urllib.parse.urlencode({"client_id": "simulator-client", **form})
        connection.request("POST" if with_body else "GET", path, with_body or None, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read()), answer.headers.get("WWW-Authenticate", "")

    def token(self, client=None, **options):
        return self.send("/bank.example/token", client, {"grant_type": "client_credentials"}, **options)

    def resource(self, client=None, token=None, **options):
        return self.send("/simulator/resource", client, token=token, **options)

    def assert_refused(self, *clients, origin=None):
        for client in clients:
            status, answer, _ = self.token(client, origin=origin)
            self.assertEqual((status, answer["error"]), (401, "invalid_client"), client)

    def assert_bound(self, client, *others):
        """Checks that a token is of use only with the certificate of its request."""
        status, answer, _ = self.token(client)
        self.assertEqual(status, 200, answer)
        token = answer["access_token"]
        self.assertEqual(self.resource(client, token)[0], 200)
        for other in others:
            status, _, challenge = self.resource(other, token)
            self.assertEqual(status, 401)
            self.assertRegex(challenge, '^Bearer .*error="invalid_token"')
        self.assertEqual(self.resource(token=token, origin=self.said["listening on"])[0], 401)
        known = self.send("/bank.example/introspect", client, {"token": token})[1]
        path = client if isinstance(client, str) else client[0]
        self.assertEqual((known["active"], known["cnf"]), (True, {"x5t#S256": thumbprint(path)}))

    def test_a_certificate_of_an_authority(self):
        self.simulate("tls_client_auth")
        foreign = Authority(self.folder)
        other, late = foreign.client("other", "simulator-client"), foreign.client("late", "simulator-client", -1)
        self.assert_bound(self.own, None, other)
        self.assert_refused(None, other, late)
        # Without TLS, no client has a certificate.
        self.assert_refused(None, origin=self.said["listening on"])

    def test_a_certificate_of_the_authority_of_the_clients_file(self):
        authority = Authority(self.folder)
        first, second = authority.client("first", "machine"), authority.client("second", "machine")
        text = "".join(content(path) for path in (first[1], first[0], authority.certificate))
        self.simulate("tls_client_auth", "--client-secret-file", self.file("client.pem", text))
        self.assert_bound(first, None, second)
        self.assert_bound(second, None, first)
        self.assert_refused(None, authority.client("third"), authority.client("late", "machine", -1))

    def test_a_registered_certificate(self):
        self.simulate("self_signed_tls_client_auth")
        other = Authority(self.folder).client("other", "simulator-client")
        self.assert_bound(self.own, None, other)
        self.assert_refused(None, other)

    def test_a_useless_file_of_the_client(self):
        authority = Authority(self.folder)
        text = DESCRIPTOR.format(method="self_signed_tls_client_auth", grant="client_credentials")
        path = self.file("bank.yaml", text)
        late, good = authority.client("late", days=-1), authority.client("good")
        for files, why in ((reversed(late), "has expired"), (good[:1], "private key is missing")):
            client = self.file("client.pem", "".join(content(file) for file in files))
            refused = self.credmgr("simulate", path, "--client-secret-file", client, status=USAGE)
            self.assertIn(why, refused.err)
        client = self.file("client.pem", "".join(content(file) for file in reversed(good)))
        os.chmod(client, 0o644)
        self.assertIn("can read", self.credmgr("simulate", path, "--client-secret-file", client, status=USAGE).err)

    def test_setup_asks_for_the_secret_and_the_certificate(self):
        self.simulate("client_secret_basic", grant="client_credentials")
        secret, pem = content(self.own).split("\n", 1)
        trust = {**self.environment, "SSL_CERT_FILE": self.said["authority"]}
        ways = self.credmgr("setup", self.said["descriptor"], "--json").out
        self.assertIn('"--client-certificate"', ways)
        person = self.terminal("setup", self.said["descriptor"], environment=trust, columns=200)
        for question, answer in (("client ID: ", self.said["client-id"]), ("client secret: ", secret),
                                 ("certificate and its private key: ", self.file("client.pem", pem))):
            person.wait_for(question)
            person.type(answer + "\r")
        person.wait_for('logged in to "bank"')
        self.credmgr("request", "bank", self.origin + "/simulator/resource", environment=trust)

    @unittest.skipUnless(is_test_build(), "a release build has the clock of the machine")
    def test_a_wrong_clock_is_named(self):
        self.simulate("private_key_jwt", grant="client_credentials")
        client = ("--client-id", self.said["client-id"], "--client-secret-file", self.own)
        self.credmgr("add-provider", self.said["descriptor"], *client)
        trust = {"SSL_CERT_FILE": self.said["authority"]}
        for offset, words in ((-3700, r"is 1 h 1 min behind the provider's"), (3700, r"is 1 h 1 min ahead of the provider's")):
            wrong = {**trust, "CREDMGR_CLOCK_OFFSET": str(offset)}
            refused = self.credmgr("login", "bank", environment=wrong, status=REFUSED).err
            self.assertRegex(refused, r"the client assertion is invalid: i.*; the clock of this machine " + words)
            self.assertIn('hint: run "credmgr doctor" to check the clock of this machine', refused)
        self.credmgr("login", "bank", environment=trust)

    def test_a_secret_beside_the_certificate(self):
        for method in ("client_secret_basic", "client_secret_post", "client_secret_jwt"):
            with self.subTest(method=method):
                self.new_home()
                self.simulate(method, grant="client_credentials")
                client = ("--client-id", self.said["client-id"], "--client-secret-file")
                self.credmgr("add-provider", self.said["descriptor"], *client, self.own)
                trust = {"SSL_CERT_FILE": self.said["authority"]}
                self.credmgr("login", "bank", environment=trust)
                # The same from two files.
                secret, pem = content(self.own).split("\n", 1)
                secret, pem = self.file("secret", secret + "\n"), self.file("client.pem", pem)
                add = ("add-provider", self.said["descriptor"], "--replace", *client)
                self.assertIn("requires both a client secret", self.credmgr(*add, pem, status=USAGE).err)
                self.assertIn("client certificate and its private key", self.credmgr(*add, secret, status=USAGE).err)
                os.chmod(pem, 0o644)
                refused = self.credmgr(*add, secret, "--client-certificate", pem, status=USAGE)
                self.assertIn("can read", refused.err)
                os.chmod(pem, 0o600)
                self.credmgr(*add, secret, "--client-certificate", pem)
                self.credmgr("login", "bank", environment=trust)
                self.credmgr("request", "bank", self.origin + "/simulator/resource", environment=trust)

    def test_the_resource_by_its_address(self):
        self.simulate("tls_client_auth")
        trust = {"SSL_CERT_FILE": self.said["authority"]}
        resource = self.origin + "/simulator/resource"
        self.credmgr("add-provider", resource, "--as", "found", "--client-id", self.said["client-id"],
                     "--client-secret-file", self.own, "--yes", environment=trust)
        self.credmgr("login", "found", "--account", ADA, environment=trust)
        self.credmgr("request", "found", resource, environment=trust)

    def test_curl(self):
        self.simulate("tls_client_auth")

        def curl(*arguments):
            return subprocess.run(["curl", "--silent", "--cacert", self.said["authority"], *arguments], check=True,
                                  capture_output=True, text=True).stdout

        form = ("--data", "grant_type=client_credentials&client_id=simulator-client", self.origin + "/bank.example/token")
        token = json.loads(curl("--cert", self.own, *form))["access_token"]
        self.assertEqual(json.loads(curl(*form))["error"], "invalid_client")
        resource = ("--header", f"Authorization: Bearer {token}", "--output", os.devnull, "--write-out", "%{http_code}",
                    self.origin + "/simulator/resource")
        self.assertEqual((curl("--cert", self.own, *resource), curl(*resource)), ("200", "401"))

    def test_the_printed_commands_work_as_they_are(self):
        for grant in ("client_credentials", "authorization_code"):
            with self.subTest(grant=grant):
                self.new_home()
                path = self.file("bank.yaml", DESCRIPTOR.format(method="tls_client_auth", grant=grant))
                running = self.start("simulate", path, "--json", stdin=False)
                self.addCleanup(running.process.wait)
                self.addCleanup(running.process.terminate)
                text = ""
                while not text.endswith("\n}\n"):
                    text += running.process.stdout.readline()
                said = json.loads(text)
                trust = f"SSL_CERT_FILE={said['authority_file']} "
                add, login, request = said["commands"]
                account = f" --account {ADA}" if grant == "authorization_code" else ""
                for command in (add, login + account, request, trust + "credmgr refresh bank-sim", request,
                                trust + "credmgr validate bank-sim", trust + "credmgr header bank-sim"):
                    outcome = self.run_program("-c", command, binary="/bin/sh")
                    self.assertEqual(outcome.status, 0, f"{command}\n{outcome.err}")
                self.assertRegex(outcome.out, "^Authorization: Bearer ")

    def test_a_user_at_a_terminal(self):
        path = self.file("bank.yaml", DESCRIPTOR.format(method="self_signed_tls_client_auth", grant="client_credentials"))
        person = self.terminal("simulate", path, columns=0)
        person.wait_for("press Ctrl-C to stop")
        commands = re.findall(r"\n  ((?:SSL_CERT_FILE=\S+ )?credmgr [^\r\n]+)", person.seen)
        self.assertEqual(len(commands), 3, person.seen)
        for command in commands:
            outcome = self.run_program("-c", command, binary="/bin/sh")
            self.assertEqual(outcome.status, DONE, f"{command}\n{outcome.err}")
        person.interrupt()
        self.assertEqual(person.end(), DONE, person.seen)
        # The provider is recognized by its address with TLS alone.
        self.assertIn('removed "bank-sim" and its accounts', person.seen)
        self.assertFalse(os.path.exists(re.search(r"authority (\S+)", person.seen).group(1)))

    def test_the_temporary_directory(self):
        path = self.file("bank.yaml", DESCRIPTOR.format(method="none", grant="client_credentials"))
        missing = os.path.join(self.folder, "missing")
        refused = self.credmgr("simulate", path, environment={"TMPDIR": missing}, status=USAGE)
        self.assertIn("export TMPDIR=/var/tmp", refused.err)
        self.assertFalse(os.path.exists(missing))
        # Also a user who quits leaves no private key behind.
        running = self.start("simulate", path)
        text = ""
        while not text.endswith("ready\n"):
            text += running.process.stdout.readline()
        descriptor = re.search(r"descriptor (\S+)", text).group(1)
        self.assertTrue(os.path.exists(descriptor))
        running.process.send_signal(signal.SIGQUIT)
        running.process.wait()
        self.assertFalse(os.path.exists(os.path.dirname(descriptor)))

    def test_the_issuer_names_the_addresses_for_certificates(self):
        self.simulate("tls_client_auth", grant="client_credentials")
        self.credmgr("add-provider", self.said["listening on"], "--as", "found", "--client-id", self.said["client-id"],
                     "--client-secret-file", self.own, "--yes")
        trust = {"SSL_CERT_FILE": self.said["authority"]}
        self.credmgr("login", "found", environment=trust)
        self.credmgr("validate", "found", environment=trust)
