"""docker's credential helper: the protocol of docker's own library, and the real client with a registry."""

import json
import os
import shutil
import unittest

import oauth2_server
from oauth2_server import OAuth2Server
from program import ADA, BINARY, DONE, UNEXPECTED, ProgramTest, brief, text_of
from registry_server import RegistryServer
from tls import Authority
DOCKER = shutil.which("docker")

NOT_FOUND = "credentials not found in native keychain"
NO_SERVER = "no credentials server URL"
NO_USERNAME = "no credentials username"


class Docker(ProgramTest):
    def setUp(self):
        super().setUp()
        programs = os.path.join(self.folder, "bin")
        os.mkdir(programs)
        os.symlink(BINARY, os.path.join(programs, "docker-credential-credmgr"))
        self.environment["PATH"] = programs + ":" + self.environment["PATH"]
        self.program = os.path.join(programs, "docker-credential-credmgr")

    def helper(self, action, text="", status=DONE):
        """Runs the helper as docker does; an error is its standard output."""
        outcome = self.run_program(action, stdin=text, binary=self.program)
        self.assertEqual(outcome.status, status, outcome.out + outcome.err)
        return outcome.out.strip()

    def store(self, server, username, secret, status=DONE):
        return self.helper("store", json.dumps({"ServerURL": server, "Username": username, "Secret": secret}), status)

    def get(self, server):
        answer = json.loads(self.helper("get", server))
        self.assertEqual(set(answer), {"ServerURL", "Username", "Secret"})
        return answer["Username"], answer["Secret"]

    def ready(self, **options):
        self.service = self.serve(OAuth2Server(**options))
        self.registry = self.enterContext(RegistryServer(
            lambda username, password: username == "registry-user" and self.service.accepts(password),
            Authority(self.folder).context()))
        self.add("registry", self.service, oauth2_server.PUBLIC_CLIENT, registry_port=self.registry.port)
        self.credmgr("login", "registry", "--account", ADA)
        self.address = f"127.0.0.1:{self.registry.port}"


class Protocol(Docker):
    """The cases of docker/docker-credential-helpers, credentials/credentials_test.go."""

    def test_store(self):
        self.store("https://index.docker.io/v1/", "foo", "bar")
        self.assertEqual(self.get("https://index.docker.io/v1/"), ("foo", "bar"))

    def test_store_without_a_server(self):
        self.assertEqual(self.store("", "foo", "bar", status=UNEXPECTED), NO_SERVER)
        self.assertEqual(self.helper("store", '{"Username": "foo", "Secret": "bar"}', UNEXPECTED), NO_SERVER)

    def test_store_without_a_user(self):
        self.assertEqual(self.store("https://index.docker.io/v1/", "", "bar", status=UNEXPECTED), NO_USERNAME)
        self.assertEqual(self.helper("list"), "{}", "nothing was kept")

    def test_get_and_erase_without_a_server(self):
        for action in ("get", "erase"):
            for text in ("", "\n", " \t\n"):
                self.assertEqual(self.helper(action, text, UNEXPECTED), NO_SERVER)

    def test_missing_files(self):
        self.assertEqual(self.helper("get", "https://index.docker.io/v1/", UNEXPECTED), NOT_FOUND)
        self.store("registry.example", "foo", "bar")
        self.assertEqual(self.helper("get", "https://index.docker.io/v1/", UNEXPECTED), NOT_FOUND)

    def test_erase(self):
        self.store("https://index.docker.io/v1/", "foo", "bar")
        self.helper("erase", "https://index.docker.io/v1/\n")
        self.assertEqual(self.helper("get", "https://index.docker.io/v1/", UNEXPECTED), NOT_FOUND)

    def test_list(self):
        self.store("https://index.docker.io/v1/", "foo", "bar")
        self.store("registry.example:5000", "<token>", "identity")
        self.assertEqual(json.loads(self.helper("list")),
                         {"https://index.docker.io/v1/": "foo", "registry.example:5000": "<token>"})
        self.assertEqual(self.get("registry.example:5000"), ("<token>", "identity"))

    def test_addresses_are_reported_as_docker_wrote_them(self):
        self.store("https://registry.example", "foo", "bar")
        self.assertEqual(json.loads(self.helper("list")), {"https://registry.example": "foo"})
        for asked in ("https://registry.example", "registry.example", "https://registry.example/"):
            self.assertEqual(json.loads(self.helper("get", asked))["ServerURL"], asked)
        self.store("registry.example", "foo", "baz")
        self.assertEqual(json.loads(self.helper("list")), {"registry.example": "foo"}, "one registry is kept once")
        self.assertEqual(self.get("https://registry.example"), ("foo", "baz"))
        self.helper("erase", "https://registry.example")
        self.assertEqual(self.helper("list"), "{}")

    def test_secrets_of_any_kind(self):
        for secret in ("", " two  words ", '"\\/\b\f\n\r\t', "ä€😀", "x" * 100_000, "<>&\u2028"):
            self.store("registry.example", "foo", secret)
            self.assertEqual(self.get("registry.example"), ("foo", secret))

    def test_version(self):
        self.assertRegex(self.helper("version"), r"^docker-credential-credmgr \(\S+\) \S+$")

    def test_unknown_action(self):
        self.assertEqual(self.helper("frobnicate", status=UNEXPECTED), "Unknown credential action `frobnicate`")


class Provider(Docker):
    def test_a_registry_of_a_provider_gets_a_fresh_token(self):
        self.ready(lifetime=brief())
        self.expire()
        username, secret = self.get(self.address)
        self.assertEqual((username, secret), ("registry-user", self.service.tokens[-1].access_token))
        self.assertEqual(self.service.counts["granted:refresh_token"], 1)

    def test_other_hosts_get_no_credential(self):
        self.ready()
        for address in ("127.0.0.1", f"127.0.0.2:{self.registry.port}", f"127.0.0.1.evil.example:{self.registry.port}",
                        f"evil.example/{self.address}", f"127.0.0.1:{self.service.port}"):
            self.assertEqual(self.helper("get", address, UNEXPECTED), NOT_FOUND, address)
        for address in (f"https://evil.example/?{self.address}", f"https://evil.example#{self.address}"):
            self.assertIn("it contains a user name, query or fragment", self.helper("get", address, UNEXPECTED), address)

    def test_erase_does_not_log_out(self):
        self.ready()
        before = self.get(self.address)
        self.helper("erase", self.address)
        self.assertEqual(self.get(self.address), before)


@unittest.skipUnless(DOCKER, "there is no docker here")
class RealClient(Docker):
    """Requires no engine: without one, the client itself contacts the registry."""

    def docker(self, *arguments, stdin="", status=0):
        outcome = self.run_program(
            "--config", self.configuration, *arguments, stdin=stdin, binary=DOCKER,
            environment={"DOCKER_HOST": f"unix://{self.folder}/no-engine"})
        if status is not None:
            self.assertEqual(outcome.status, status, outcome.out + outcome.err)
        return outcome

    def configure(self, **values):
        self.configuration = os.path.join(self.folder, "docker")
        os.makedirs(self.configuration, exist_ok=True)
        with open(os.path.join(self.configuration, "config.json"), "w", encoding="utf-8") as file:
            json.dump(values, file)

    def is_served(self):
        """Whether the registry sends the image's list to the client, whatever the client does with it."""
        before = self.registry.counts["served"]
        self.docker("manifest", "inspect", "--insecure", f"{self.address}/team/demo:latest", status=None)
        return self.registry.counts["served"] > before

    def test_a_provider_s_registry_after_an_expiry(self):
        self.ready(lifetime=brief())
        self.expire()
        self.configure(credHelpers={self.address: "credmgr"})
        self.assertTrue(self.is_served())
        self.assertEqual(set(self.registry.users), {"registry-user"})
        self.assertEqual(self.service.counts["granted:refresh_token"], 1)

    def test_login_and_logout(self):
        self.registry = self.enterContext(RegistryServer(
            lambda username, password: (username, password) == ("ada", "the-password"), Authority(self.folder).context()))
        self.address = f"127.0.0.1:{self.registry.port}"
        self.configure(credsStore="credmgr")
        self.assertFalse(self.is_served())
        self.docker("login", "--username", "ada", "--password-stdin", self.address, stdin="the-password")
        self.assertNotIn("auth\"", text_of(os.path.join(self.configuration, "config.json")), "docker keeps nothing itself")
        self.assert_nowhere_in(self.homes[-1], {"the-password"})
        self.assertTrue(self.is_served())
        self.docker("logout", self.address)
        self.assertFalse(self.is_served())
