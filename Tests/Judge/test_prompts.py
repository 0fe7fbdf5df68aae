"""Secrets that a user types or pastes: the prompt names them, echo is off, and one line with Enter is enough."""

import os

import oauth2_server
from browser import Browser
from oauth2_server import OAuth2Server
from program import ADA, DESCRIPTORS, DONE, USAGE, ProgramTest


class Prompts(ProgramTest):
    def typed(self, prompt, secret, *arguments, status=DONE):
        """Types a secret at its prompt; returns the terminal's output."""
        person = self.terminal(*arguments)
        person.wait_for(prompt)
        person.type(secret + "\r")
        self.assertEqual(person.end(), status, person.seen)
        self.assertNotIn(secret, person.seen)
        return person.seen

    def test_a_client_secret_a_token_and_a_variable(self):
        service = self.serve(OAuth2Server())
        self.typed("client secret: ", oauth2_server.CLIENT_SECRET, "add-provider", DESCRIPTORS + "/oauth2-post.yaml",
                   "--client-id", oauth2_server.POST_CLIENT, "--client-secret-file", "-", "--set", f"port={service.port}")
        self.credmgr("login", "oauth2-post", "--account", ADA)
        self.typed("token: ", "typed-token", "login", "oauth2-post", "--account", "by-hand", "--with-token")
        self.assertEqual(self.credmgr("token", "oauth2-post", "--account", "by-hand").line, "typed-token")
        keyed = self.file("keyed.yaml", "provider: keyed\ngrant: client_credentials\nvariables: { key: { secret: true } }\n"
                          "endpoints: { token: { url: 'https://keyed.example/t', parameters: { key: '{key}' } } }\n")
        self.typed("key: ", "typed-key", "add-provider", keyed, "--client-id", "x", "--set", "key=@-")

    def test_the_first_wrong_value_ends_the_prompts(self):
        self.credmgr("add-provider", self.file("fields.yaml", """provider: fields
title: Fields
grant: secrets
variables:
  port: { at_login: true, format: integer, help: the port of the server }
  key: { at_login: true, secret: true }
endpoints: {}
hosts: [fields.example]
"""))
        person = self.terminal("login", "fields")
        person.wait_for("the port of the server of Fields:")
        person.type("x\r")
        self.assertEqual(person.end(), USAGE, person.seen)
        self.assertRegex(person.seen, r"this is not the port of the server of Fields: it must be a whole\s+number")
        self.assertIn("copy the port of the server again", person.seen)
        self.assertNotIn("key of Fields", person.seen)

    def test_an_address_with_a_token_in_it_is_not_shown(self):
        service, provider = self.provided("oauth2-implicit-app")
        self.environment.pop("BROWSER")
        person = self.terminal("login", provider, "--account", ADA)
        address = person.wait_for(r"  (https?://\S+)\r\n").group(1)
        person.wait_for("press Enter")
        _, _, final = Browser().open(address)
        person.type(final + "\r")
        self.assertEqual(person.end(), DONE, person.seen)
        self.assertNotIn(final, person.seen)
        self.assertTrue(service.accepts(self.credmgr("token", provider).line))

    def test_the_next_prompt_has_a_line_of_its_own(self):
        service, provider = self.provided()
        self.credmgr("login", provider)
        person = self.terminal("request", provider, service.base + "/resource")
        self.assertEqual(person.end(), DONE, person.seen)
        self.assertFalse(self.credmgr("request", provider, service.base + "/resource").out.endswith("\n"))
        self.assertTrue(person.seen.endswith("}\r\n"), person.seen)

    def test_control_c_at_a_question(self):
        self.provided("oauth2-implicit-app")
        person = self.terminal("vault", "rotate")
        person.wait_for("Create a new key")
        person.type("\x03")
        self.assertEqual(person.end(), 130, person.seen)
        self.assertRegex(person.seen, r"\r\ncredmgr: .*interrupted\r\n$")

    def test_a_file_without_a_secret(self):
        path = os.path.join(DESCRIPTORS, "oauth2-post.yaml")
        refused = self.credmgr("add-provider", path, "--client-id", "x", "--client-secret-file", path, "--set", "port=1",
                               status=USAGE)
        self.assertIn("invalid client secret:", refused.err)
