"""The shipped descriptor of Mastodon, from registration to revocation, over TLS with our own authority."""

import contextlib
import json
import random
import re
import socket
import urllib.parse

from browser import Browser
from mastodon_server import OUT_OF_BAND, Mastodon
from program import LOGIN_NEEDED, REFUSED, ProgramTest
from tls import Authority


class MastodonTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder)
        self.environment["SSL_CERT_FILE"] = self.authority.certificate
        # The redirect is registered with its port, which the system never assigns automatically (ip(7)).
        self.redirect = None
        while self.redirect is None:
            with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", random.randrange(10_000, 30_000))) as server:
                self.redirect = f"http://127.0.0.1:{server.getsockname()[1]}/callback"

    def instance(self, **options):
        return self.serve(Mastodon(self.authority.context(), **options))

    def add_instance(self, service, *arguments, **options):
        return self.credmgr("add-provider", "mastodon", "--set", f"host={service.host}",
                            "--set", f"redirect_uri={self.redirect}", *arguments, **options)

    def assert_nothing_added(self):
        rows = json.loads(self.credmgr("providers", "--json").out)
        self.assertEqual([row["provider"] for row in rows if row["added"]], [])


class WholeLife(MastodonTest):
    def test_from_the_registration_to_the_revocation(self):
        service = self.instance()
        added = self.add_instance(service)
        self.assertEqual(added.out, "")
        self.assertIn(f'registered the client "application-1" at {service.base}/api/v1/apps', added.err)
        # Exactly the fields on https://docs.joinmastodon.org/methods/apps/#create.
        self.assertEqual(service.registered, [
            {"client_name": "credmgr", "redirect_uris": self.redirect, "scopes": "read write push"}])

        self.assertIn('"ada"', self.credmgr("login", "mastodon").err)
        asked = service.requests("/oauth/authorize")[0].query_fields()
        self.assertEqual({name: asked[name] for name in ("client_id", "redirect_uri", "scope", "response_type")}, {
            "client_id": "application-1", "redirect_uri": self.redirect, "scope": "read", "response_type": "code"})
        sent = service.requests("/oauth/token")[0].form_fields()
        self.assertEqual(sent["client_secret"], service.clients["application-1"].secret)

        token = self.credmgr("token", "mastodon").line
        self.assertTrue(service.accepts(token))
        status = json.loads(self.credmgr("status", "mastodon", "--json").out)[0]
        self.assertEqual((status["account"], status["expires_at"], status["refresh_token"]), ("ada", None, False))
        self.assertEqual(status["scope"], ["read"])
        answer = self.credmgr("request", "mastodon", service.base + "/api/v1/accounts/verify_credentials").out
        self.assertEqual(json.loads(answer)["username"], "ada")
        self.credmgr("validate", "mastodon")
        self.credmgr("logout", "mastodon")
        self.assertFalse(service.accepts(token))
        self.credmgr("token", "mastodon", status=LOGIN_NEEDED)
        # The client still exists.
        self.credmgr("login", "mastodon")
        self.assertEqual(len(service.registered), 1)

    def test_a_code_that_the_user_copies(self):
        service = self.instance()
        self.redirect = OUT_OF_BAND
        self.add_instance(service)
        self.assertEqual(service.registered[0]["redirect_uris"], OUT_OF_BAND)
        running = self.start("login", "mastodon", "--no-browser")
        _, page, _ = Browser(authorities=self.authority.certificate).open(running.address())
        outcome = running.end(re.search("<code>(.*)</code>", page).group(1) + "\n")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertTrue(service.accepts(self.credmgr("token", "mastodon").line))

    def test_two_instances_each_with_its_own_client(self):
        first, second = self.instance(), self.instance(user="grace")
        self.add_instance(first, "--as", "home")
        self.add_instance(second, "--as", "work")
        self.credmgr("login", "home")
        self.credmgr("login", "work")
        tokens = {name: self.credmgr("token", name).line for name in ("home", "work")}
        self.assertTrue(first.accepts(tokens["home"]))
        self.assertTrue(second.accepts(tokens["work"]))
        # One host's token must not go to the other.
        outcome = self.run_program("request", "home", second.base + "/api/v1/accounts/verify_credentials")
        self.assertNotEqual(outcome.status, 0)
        self.assertEqual(second.requests("/api/v1/accounts/verify_credentials")[1:], [])

    def test_another_host_is_another_client(self):
        first, second = self.instance(), self.instance()
        self.add_instance(first)
        self.add_instance(first, "--replace")
        self.assertEqual(len(first.registered), 1)
        # No account is left, and the old secret is not kept.
        self.add_instance(second, "--replace", status=2)
        self.add_instance(second, "--as", "other")
        self.assertEqual(len(second.registered), 1)


class Refusals(MastodonTest):
    def test_more_than_was_registered(self):
        service = self.instance()
        self.add_instance(service)
        outcome = self.credmgr("login", "mastodon", "--scope", "follow", status=REFUSED)
        self.assertIn("invalid_scope", outcome.err)

    def test_a_refused_registration_is_quoted(self):
        service = self.instance(refuses="Validation failed: Redirect URI must be an absolute URI.")
        outcome = self.add_instance(service, status=REFUSED)
        self.assertIn(service.refuses, outcome.err)
        self.assert_nothing_added()

    def test_a_trace_shows_only_public_values(self):
        service = self.instance()
        outcome = self.add_instance(service, "--trace")
        self.assertIn("scopes=read write push", urllib.parse.unquote(outcome.err))
        self.assertIn('"client_secret":"…"', outcome.err)
        self.assertIn(f"> POST {service.base}/api/v1/apps", outcome.err)
