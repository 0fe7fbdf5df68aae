"""Scopes by purpose: `login --for`, and the hint after a refusal that concerns scopes."""

import json
import shlex

from oauth2_server import PUBLIC_CLIENT, OAuth2Server
from program import DONE, REFUSED, USAGE, ProgramTest
from service import json_response

DESCRIPTOR = """provider: notes
title: Notes
grant: authorization_code
endpoints: {{ authorization: "{base}/authorize", token: "{base}/token", identity: "{base}/resource" }}
account: login
scope: {{ default: [read], required_header: X-Accepted-Scopes }}
scope_sets:
  look: [read]
  change: [read, write]
  travel: [offline]
hosts: ["{place}"]
git: {{ hosts: ["{place}"] }}
"""


class ScopedServer(OAuth2Server):
    """Refuses a request below /scoped/ whose token does not have the scope."""

    def __init__(self):
        super().__init__()
        self.routes = {**self.routes, ("GET", "/scoped/header"): self.by_header, ("GET", "/scoped/challenge"): self.by_challenge,
                       ("GET", "/scoped/other"): self.by_other_reason}

    def scope(self, request):
        value = request.headers["Authorization"].partition(" ")[2]
        return next(token for token in self.tokens if token.access_token == value).scope.split()

    def by_header(self, request):
        if "write" in self.scope(request):
            return self.resource(request)
        return json_response({"message": "no"}, 403, [("X-Accepted-Scopes", "admin, write")])

    def by_challenge(self, request):
        if {"read", "write", "offline"} <= set(self.scope(request)):
            return self.resource(request)
        challenge = ("WWW-Authenticate", 'Bearer realm="notes", error="insufficient_scope", scope="write offline"')
        return json_response({"message": "no"}, 403, [challenge])

    def by_other_reason(self, request):
        return json_response({"message": "too fast"}, 403, [("X-Accepted-Scopes", "read")])


class Scopes(ProgramTest):
    def setUp(self):
        super().setUp()
        self.service = self.serve(ScopedServer())
        place = self.service.base.removeprefix("http://")
        path = self.file("notes.yaml", DESCRIPTOR.format(base=self.service.base, place=place))
        self.credmgr("add-provider", path, "--client-id", PUBLIC_CLIENT)

    def scope(self):
        return json.loads(self.credmgr("list", "notes", "--json").out)[0]["scope"]

    def request(self, place, status=DONE):
        outcome = self.run_program("request", "notes", f"{self.service.base}/scoped/{place}")
        self.assertEqual(outcome.status, status, outcome.err)
        return outcome

    def follow(self, outcome):
        """Runs the command of the hint."""
        command = outcome.err.split('hint: run "')[1].split('"\n')[0]
        words = shlex.split(command)
        self.assertEqual(words[0], "credmgr")
        self.credmgr(*words[1:])
        return " ".join(words[1:])

    def test_a_login_requests_just_the_scopes_of_its_purposes(self):
        self.credmgr("login", "notes")
        self.assertEqual(self.scope(), ["read"])
        self.credmgr("login", "notes", "--for", "travel")
        self.assertEqual(self.scope(), ["offline"])
        self.credmgr("login", "notes", "--for", "change,travel")
        self.assertEqual(self.scope(), ["read", "write", "offline"])
        self.credmgr("login", "notes", "--for", "look", "--scope", "offline")
        self.assertEqual(self.scope(), ["offline", "read"])
        shown = json.loads(self.credmgr("providers", "notes", "--json").out)
        self.assertEqual(shown["scope_sets"], {"look": ["read"], "change": ["read", "write"], "travel": ["offline"]})
        self.assertIn("change (read write)", self.credmgr("providers", "notes").out)
        outcome = self.credmgr("login", "notes", "--for", "chnge", status=USAGE)
        self.assertIn('unknown purpose "chnge" (did you mean "change"?)', outcome.err)
        self.assertIn('hint: run "credmgr login notes --for change"', outcome.err)
        outcome = self.credmgr("login", "notes", "--for", "look,", status=USAGE)
        self.assertIn("hint: use some of look,change,travel", outcome.err)
        words = self.credmgr("completion", "words", "login", "notes", "--for", "look,c").out
        self.assertEqual(words, "look,change\tread write\n")
        words = self.credmgr("completion", "words", "login", "notes", "--for=t").out
        self.assertEqual(words, "--for=travel\toffline\n")

    def test_a_refusal_names_the_purpose(self):
        self.credmgr("login", "notes")
        outcome = self.request("header", status=REFUSED)
        self.assertIn('the token has none of the scopes "admin", "write"', outcome.err)
        self.assertEqual(self.follow(outcome), "login notes --account ada --step-up --for change")
        self.request("header")
        outcome = self.request("challenge", status=REFUSED)
        self.assertIn('the token does not have the scope "write", "offline"', outcome.err)
        self.assertEqual(self.follow(outcome), "login notes --account ada --step-up --scope write --scope offline")
        self.request("challenge")
        self.assertNotIn("scope", self.request("other", status=REFUSED).err)

    def test_a_token_that_the_user_brought(self):
        self.credmgr("login", "notes")
        token = self.credmgr("token", "notes").line
        self.credmgr("login", "notes", "--with-token", "--account", "ada", stdin=token + "\n")
        self.assertIn("hint: make a token with this scope\n", self.request("header", status=REFUSED).err)

    def test_git_learns_of_the_refused_scope(self):
        self.credmgr("login", "notes")
        question = (f"protocol=http\nhost={self.service.base.removeprefix('http://')}\n"
                    'wwwauth[]=Basic realm="notes"\nwwwauth[]=Bearer error="insufficient_scope", scope="write"\n\n')
        outcome = self.credmgr("git-credential", "get", stdin=question)
        self.assertIn('hint: run "credmgr login notes --account ada --step-up --for change"\n', outcome.err)
        self.assertIn("password=", outcome.out)
