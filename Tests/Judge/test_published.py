"""A descriptor that an organisation publishes: fetched once over TLS, shown, agreed to, and updated on request."""

import hashlib
import json
import os

from oauth2_server import PUBLIC_CLIENT, OAuth2Server
from program import DONE, REFUSED, UNREACHABLE, USAGE, ProgramTest
from service import Response, Service
from tls import Authority

DESCRIPTOR = """# Our organisation's client.
provider: notes
title: Notes
grant: authorization_code
endpoints:
  authorization: {base}/authorize
  token: {base}/token
  identity: {base}/resource
scope: [read]
client: {{ id: {client} }}
account: login
hosts: ["{place}"]
"""


class Publisher(Service):
    def __init__(self, tls):
        super().__init__(tls)
        self.text = ""
        self.routes[("GET", "/descriptors/notes.yaml")] = self.descriptor
        self.routes[("GET", "/moved.yaml")] = lambda _: Response(302, b"", [("Location", "https://elsewhere.example/notes.yaml")])

    def descriptor(self, _):
        self.counts["fetched"] += 1
        return Response(200, self.text.encode(), [("Content-Type", "application/yaml")])


class Published(ProgramTest):
    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder)
        self.environment["SSL_CERT_FILE"] = self.authority.certificate
        self.publisher = self.serve(Publisher(self.authority.context()))
        self.service = self.serve(OAuth2Server())
        self.address = self.publisher.base + "/descriptors/notes.yaml"
        self.publisher.text = DESCRIPTOR.format(
            base=self.service.base, place=self.service.base.removeprefix("http://"), client=PUBLIC_CLIENT)

    def installed(self, name="notes"):
        with open(os.path.join(self.homes[-1], "config/providers", name + ".yaml"), encoding="utf-8") as file:
            return file.read()

    def answered(self, answer, *arguments, question="Add it as|Use the new", status=DONE):
        person = self.terminal(*arguments, columns=200)
        person.wait_for(question)
        person.type(answer + "\r")
        self.assertEqual(person.end(), status, person.seen)
        return person.seen

    def test_a_descriptor_is_fetched_shown_and_agreed_to(self):
        shown = self.answered("n", "add-provider", self.address, status=USAGE)
        for line in self.publisher.text.splitlines():
            self.assertIn(line, shown)
        self.assertIn("nothing was added", shown)
        outcome = self.credmgr("add-provider", self.address, status=USAGE)
        self.assertIn(f'hint: run "credmgr add-provider {self.address} --yes" to use it', outcome.err)
        self.assertFalse(os.path.exists(os.path.join(self.homes[-1], "config/providers")))
        shown = self.answered("y", "add-provider", self.address)
        digest = hashlib.sha256(self.publisher.text.encode()).hexdigest()
        self.assertIn(digest, shown)
        self.assertIn("tokens go to 127.0.0.1", shown)
        self.assertEqual(self.installed(), f"# Fetched from {self.address}\n# SHA-256 {digest}\n{self.publisher.text}")
        # The client of the organisation needs no registration, and the address is not asked again.
        count = self.publisher.counts["fetched"]
        self.credmgr("login", "notes")
        self.assertTrue(self.service.accepts(self.credmgr("token", "notes").line))
        self.assertEqual(self.publisher.counts["fetched"], count)
        self.assertIn("has already been added", self.credmgr("add-provider", self.address, "--yes", status=USAGE).err)

    def test_an_update_shows_the_difference(self):
        self.credmgr("add-provider", self.address, "--yes", "--as", "ours")
        self.assertIn("provider: ours\n", self.installed("ours"))
        self.assertIn("has not changed", self.credmgr("add-provider", "ours", "--update").err)
        before = self.installed("ours")
        self.publisher.text = self.publisher.text.replace("scope: [read]", "scope: [read, write]\nexpiry: { margin: 90s }")
        shown = self.answered("n", "add-provider", "ours", "--update", status=USAGE)
        self.assertRegex(shown, r"has changed:\r\n\r\n  -scope: \[read\]\r\n  \+scope: \[read, write\]\r\n  \+expiry: ")
        self.assertNotIn("title: Notes", shown)
        self.assertEqual(self.installed("ours"), before)
        outcome = self.credmgr("add-provider", "ours", "--update", status=USAGE)
        self.assertIn('hint: run "credmgr add-provider ours --update --yes" to use it', outcome.err)
        self.answered("y", "add-provider", "ours", "--update")
        self.assertIn("[read, write]", self.installed("ours"))
        self.credmgr("login", "ours")
        self.assertEqual(json.loads(self.credmgr("list", "--json").out)[0]["scope"], ["read", "write"])

    def test_an_update_to_another_host_asks_as_every_change_does(self):
        self.credmgr("add-provider", self.address, "--yes")
        self.credmgr("login", "notes")
        self.publisher.text = self.publisher.text.replace("hosts: [", 'hosts: ["evil.example", ')
        person = self.terminal("add-provider", "notes", "--update", columns=200)
        person.wait_for("Use the new descriptor")
        person.type("y\r")
        person.wait_for("Do you agree")
        person.type("n\r")
        self.assertEqual(person.end(), USAGE, person.seen)
        self.assertNotIn("evil.example", self.installed())

    def test_an_update_brings_the_new_client(self):
        self.credmgr("add-provider", self.address, "--yes")
        self.publisher.text = self.publisher.text.replace(PUBLIC_CLIENT, "another-client")
        self.credmgr("add-provider", self.address, "--update", "--yes")
        shown = json.loads(self.credmgr("providers", "notes", "--json").out)
        self.assertEqual(shown["client_id"], "another-client")

    def test_an_edited_copy(self):
        self.credmgr("add-provider", self.address, "--yes")
        path = os.path.join(self.homes[-1], "config/providers/notes.yaml")
        with open(path, "a", encoding="utf-8") as file:
            file.write("# Mine.\n")
        outcome = self.credmgr("add-provider", "notes", "--update", "--yes")
        self.assertIn("warning: your file differs from the fetched file", outcome.err)
        self.assertIn("-# Mine.", outcome.err)
        self.assertNotIn("Mine", self.installed())

    def test_refused(self):
        for address, status, words in (
                (self.publisher.base + "/descriptors/other.yaml", REFUSED, "status 404"),
                (self.publisher.base + "/moved.yaml", REFUSED, "redirects to https://elsewhere.example/notes.yaml"),
                ("http://descriptors.example/notes.yaml", USAGE, "must use https"),
                (f"https://127.0.0.1:{self.service.port}/notes.yaml", UNREACHABLE, "TLS")):
            with self.subTest(address=address):
                self.assertIn(words, self.credmgr("add-provider", address, "--yes", status=status).err)
        self.publisher.text = "<html>\n"
        self.assertIn("error", self.credmgr("add-provider", self.address, "--yes", status=USAGE).err)
        self.publisher.text = DESCRIPTOR.format(base=self.service.base, place="x.example", client="c").replace("notes", "openai")
        self.credmgr("add-provider", "openai", "--update", status=USAGE)
        self.assertFalse(os.path.exists(os.path.join(self.homes[-1], "config/providers")))

    def test_setup(self):
        person = self.terminal("setup", self.address, columns=200)
        person.wait_for('Add it as "notes"')
        person.type("y\r")
        self.assertEqual(person.end(), DONE, person.seen)
        self.assertIn('logged in to Notes as "ada"', person.seen)
