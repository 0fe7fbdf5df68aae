"""Each OAuth 2.0 grant with Authlib's authorization server."""

import json

import oauth2_server
from browser import Browser
from oauth2_server import OAuth2Server
from program import ADA, GRACE, LOGIN_NEEDED, REFUSED, UNREACHABLE, ProgramTest, brief


class Grants(ProgramTest):
    def expect_usable(self, service, provider):
        """Checks that the token, the header and the request each work at the server that issued them."""
        token = self.credmgr("token", provider).line
        self.assertTrue(service.accepts(token))
        header = self.credmgr("header", provider, "--url", service.base + "/resource").line
        self.assertEqual(header, f"Authorization: Bearer {token}")
        before = service.counts["resource"]
        answer = json.loads(self.credmgr("request", provider, service.base + "/resource").out)
        self.assertEqual(answer["login"], "ada")
        posted = self.credmgr("request", provider, service.base + "/resource", "-X", "POST",
                              "-H", "Content-Type: text/plain", "-d", "hello").out
        self.assertEqual(json.loads(posted)["body"], "hello")
        self.assertEqual(service.counts["resource"], before + 2)
        return token

    def test_authorization_code_of_a_public_client(self):
        service, provider = self.provided()
        outcome = self.credmgr("login", provider, "--account", ADA)
        self.assertEqual(outcome.out, "")
        self.assertEqual(service.counts["granted:authorization_code"], 1)
        asked = service.requests("/authorize", "GET")[0].query_fields()
        self.assertEqual(asked["code_challenge_method"], "S256")
        self.assertGreaterEqual(len(asked["state"]), 43, "256 bits")
        self.assertRegex(asked["redirect_uri"], r"^http://127\.0\.0\.1:\d+/")
        self.expect_usable(service, provider)

    def test_client_authentication_in_basic_and_in_the_body(self):
        for name, client in (("oauth2-basic", oauth2_server.CONFIDENTIAL_CLIENT),
                             ("oauth2-post", oauth2_server.POST_CLIENT)):
            with self.subTest(name):
                self.new_home()
                service = self.serve(OAuth2Server())
                provider = self.add(name, service, client, oauth2_server.CLIENT_SECRET)
                self.credmgr("login", provider, "--account", ADA)
                self.expect_usable(service, provider)

    def test_client_credentials(self):
        service, provider = self.provided("oauth2-client-credentials", oauth2_server.CONFIDENTIAL_CLIENT, lifetime=brief())
        self.credmgr("login", provider)
        first = service.tokens[-1].access_token
        service.lifetime = 3600
        self.expire()
        # This grant has no refresh token, so an expired token is requested again.
        self.assertNotEqual(self.expect_usable(service, provider), first)

    def test_implicit_through_the_relay_page(self):
        service, provider = self.logged_in(name="oauth2-implicit")
        self.expect_usable(service, provider)

    def test_implicit_by_pasting(self):
        service, provider = self.provided("oauth2-implicit-app")
        outcome = self.login_by_paste(provider, "--account", ADA)
        self.assertEqual(outcome.status, 0, outcome.err)
        self.expect_usable(service, provider)

    def test_device_code(self):
        service, provider = self.provided("oauth2-device", interval=1, slow_downs=1, pending_polls=1)
        login = self.start("login", provider, "--account", ADA, "--no-browser", stdin=False)
        user_code = login.wait_for(r"\b[B-Z]{4}-[B-Z]{4}\b").group(0)
        status, _, _ = Browser().open(f"{service.base}/activate?user_code={user_code}")
        self.assertEqual(status, 200)
        outcome = login.end()
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(service.counts["slow_down"], 1)
        self.assertEqual(service.counts["hurried"], 0, "polls keep the interval")
        polls = next(iter(service.devices.values())).polls
        self.assertGreaterEqual(polls[1] - polls[0], 5.9, "slow_down adds five seconds")
        self.expect_usable(service, provider)

    def test_the_user_denies_access(self):
        service, provider = self.provided("oauth2-device", interval=1)
        login = self.start("login", provider, "--no-browser", stdin=False)
        user_code = login.wait_for(r"\b[B-Z]{4}-[B-Z]{4}\b").group(0)
        Browser(decision="deny").open(f"{service.base}/activate?user_code={user_code}")
        self.assertEqual(login.end().status, REFUSED)
        self.credmgr("token", provider, status=LOGIN_NEEDED)

    def test_refusal_in_the_browser(self):
        service, provider = self.provided()
        login = self.start("login", provider, "--no-browser", stdin=False)
        Browser(decision="deny").open(login.address())
        self.assertEqual(login.end().status, REFUSED)
        self.assertEqual(service.counts["token:authorization_code"], 0)


class Refresh(ProgramTest):
    def test_an_expired_token_is_refreshed_and_the_rotated_one_kept(self):
        service, provider = self.logged_in(lifetime=brief())
        first = service.tokens[-1].access_token
        self.expire()
        second = self.credmgr("token", provider).line
        self.assertNotEqual(second, first)
        self.assertTrue(service.accepts(second))
        self.assertEqual(self.credmgr("token", provider).line, second, "a valid token is not refreshed")
        self.assertEqual(service.counts["granted:refresh_token"], 1)
        third = self.credmgr("token", provider, "--refresh").line
        self.credmgr("refresh", provider)
        self.assertNotIn(third, (first, second))
        self.assertEqual(service.counts["granted:refresh_token"], 3)
        self.assertEqual(service.counts["reuse"], 0)

    def test_min_validity(self):
        service, provider = self.logged_in(lifetime=1800, refreshed_lifetime=7200)
        first = service.tokens[-1].access_token
        self.assertEqual(self.credmgr("token", provider, "--min-validity", "5m").line, first)
        self.assertNotEqual(self.credmgr("token", provider, "--min-validity", "1h").line, first)

    def test_a_provider_that_keeps_its_refresh_token(self):
        service, provider = self.logged_in(lifetime=brief(), refreshed_lifetime=brief(), rotate=False)
        for _ in range(2):
            self.expire()
            self.assertTrue(service.accepts(self.credmgr("token", provider).line))
        self.assertEqual(service.counts["granted:refresh_token"], 2)

    def test_a_refused_refresh_asks_for_a_login_and_opens_nothing(self):
        service, provider = self.logged_in(lifetime=brief())
        service.revoke(service.tokens[-1], whole_family=True)
        self.expire()
        outcome = self.credmgr("token", provider, status=LOGIN_NEEDED)
        self.assertRegex(outcome.err, r"(?m)^credmgr: hint: .*credmgr login")
        self.assertEqual(len(service.requests("/authorize", "GET")), 1)

    def test_an_unreachable_provider_changes_nothing(self):
        service, provider = self.logged_in(lifetime=brief())
        self.expire()
        service.stop()
        self.credmgr("token", provider, status=UNREACHABLE)
        # The refresh token remains, and works once the provider is back.
        self.assertIn("ada", self.credmgr("status", provider).out)

    def test_request_refreshes_once_on_401(self):
        service, provider = self.logged_in()
        service.kill_access()
        answer = json.loads(self.credmgr("request", provider, service.base + "/resource").out)
        self.assertEqual(answer["login"], "ada")
        self.assertEqual(service.counts["granted:refresh_token"], 1)
        self.assertEqual(service.counts["resource_refused"], 1)


class Administration(ProgramTest):
    def test_validate_and_logout(self):
        service, provider = self.logged_in()
        self.credmgr("validate", provider)
        self.assertEqual(service.counts["introspection"], 1)
        token = self.credmgr("token", provider).line
        service.tokens[-1].revoked = True
        self.assertNotEqual(self.run_program("validate", provider).status, 0, "the provider said no")
        service.tokens[-1].revoked = False
        self.credmgr("logout", provider)
        self.assertGreater(service.counts["revocation"], 0)
        self.assertFalse(service.accepts(token), "it is revoked at the provider")
        self.credmgr("token", provider, status=LOGIN_NEEDED)

    def test_two_accounts(self):
        service, provider = self.provided()
        tokens = {}
        for account in (ADA, GRACE):
            self.credmgr("login", provider, "--account", account)
            tokens[account] = service.tokens[-1].access_token
        for account, token in tokens.items():
            self.assertEqual(self.credmgr("token", provider, "--account", account).line, token)
            self.credmgr("use", provider, account)
            self.assertEqual(self.credmgr("token", provider).line, token)
        names = json.dumps(json.loads(self.credmgr("status", provider, "--json").out))
        for account, token in tokens.items():
            self.assertIn(account, names)
            self.assertNotIn(token, names)
        self.credmgr("vault", "verify")
