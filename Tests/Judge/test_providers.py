"""The shipped descriptors with servers that are independent of credmgr."""

import json

from browser import Browser
from program import ADA, GRACE, LOGIN_NEEDED, REFUSED, ProgramTest, brief
from provider_server import L2P, GitHub, LinkedIn, OCLCToday, OCLCUserAgent


class GitHubTest(ProgramTest):
    descriptor = "shipped-github"

    def provider(self, **options):
        service = self.serve(GitHub(**options))
        return service, self.add(self.descriptor, service, service.client_id, service.client_secret)

    def test_web_flow(self):
        service, provider = self.provider()
        # The provider names the user.
        login = self.credmgr("login", provider, "--grant", "authorization_code", "--scope", "repo", "--scope", "gist")
        self.assertEqual(login.out, "")
        token = self.credmgr("token", provider).line
        self.assertTrue(service.valid(token))
        lines = self.credmgr("header", provider, "--url", service.base + "/user").line.splitlines()
        self.assertIn(f"Authorization: token {token}", lines)
        self.assertIn("Accept: application/vnd.github+json", lines)
        answer = json.loads(self.credmgr("request", provider, service.base + "/user").out)
        self.assertEqual(answer["version"], "2022-11-28")
        status = self.credmgr("status", provider, "--json").out
        for word in (GRACE, "repo", "gist"):
            self.assertIn(word, status)
        self.assertNotIn("repo,gist", status, "granted scopes are separated by commas")

    def test_rotation_and_refused_refresh(self):
        service, provider = self.provider(lifetime=brief())
        self.credmgr("login", provider, "--account", ADA, "--grant", "authorization_code")
        self.expire()
        service.lifetime = 28800
        self.assertTrue(service.valid(self.credmgr("token", provider).line))
        service.refreshes.clear()
        service.access.clear()
        # The error comes with status 200 and form-encoded.
        outcome = self.credmgr("token", provider, "--refresh", status=LOGIN_NEEDED)
        self.assertIn("bad_refresh_token", outcome.err)

    def test_device_flow(self):
        service, provider = self.provider(interval=1)
        login = self.start("login", provider, "--account", ADA, "--grant", "device_code", "--no-browser", stdin=False)
        code = login.wait_for(r"\b[0-9A-F]{4}-[0-9A-F]{4}\b").group(0)
        self.wait_until(lambda: service.counts["authorization_pending"])
        Browser(typed={"user_code": code}).open(f"{service.base}/login/device")
        outcome = login.end()
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertGreater(service.counts["authorization_pending"], 0)
        self.assertEqual(service.counts["slow_down"], 0)
        for request in service.requests("/login/oauth/access_token"):
            self.assertNotIn("client_secret", request.form_fields(), "the device flow sends no secret")
        self.assertTrue(service.valid(self.credmgr("token", provider).line))

    def test_a_wrong_secret_is_reported_in_the_providers_words(self):
        service = self.serve(GitHub())
        provider = self.add(self.descriptor, service, service.client_id, "wrong")
        outcome = self.credmgr("login", provider, "--grant", "authorization_code", status=REFUSED)
        self.assertIn("incorrect_client_credentials", outcome.err)

    def test_logout(self):
        service, provider = self.provider()
        self.credmgr("login", provider, "--account", ADA, "--grant", "authorization_code")
        self.credmgr("logout", provider)
        self.assertEqual(service.counts["deleted"], 1)


class OCLCUserAgentTest(ProgramTest):
    descriptor = "shipped-oclc"

    def provider(self, **options):
        service = self.serve(OCLCUserAgent(**options))
        return service, self.add(
            self.descriptor, service, service.client_id, authenticating_institution=service.authenticating,
            context_institution=service.context, redirect_uri="ncipApp://success")

    def user_agent(self, **options):
        service, provider = self.provider(**options)
        outcome = self.login_by_paste(provider, "--account", ADA)
        self.assertEqual(outcome.status, 0, outcome.err)
        return service, provider

    def test_user_agent_flow(self):
        service, provider = self.user_agent()
        kept = json.dumps(json.loads(self.credmgr("token", provider, "--json").out))
        for value in (service.identity["principalID"], "urn:oclc:wms:da", service.context):
            self.assertIn(value, kept)
        url = service.base + "/ncip/circ"
        header = self.credmgr("header", provider, "--url", url).line
        self.assertIn(', principalID="8eaa9f92-3951-431c-975a-d7df26b8d131", principalIDNS="urn:oclc:wms:da"', header)
        body = self.file("lookup.xml", "<NCIPMessage/>")
        self.assertEqual(self.credmgr("request", provider, url, "-X", "POST", "-H", "Content-Type: application/xml",
                                      "-d", "@" + body).out, "<NCIPMessage/>")

    def test_expires_at_is_utc_and_refresh_keeps_its_token(self):
        service, provider = self.user_agent(lifetime=brief())
        first = next(iter(service.access))
        self.expire()
        second = self.credmgr("token", provider).line
        self.assertNotEqual(second, first)
        self.credmgr("token", provider, "--refresh")
        self.assertEqual(service.counts["refresh"], 2, "the answer has no refresh token: the old one is kept")

    def test_the_user_denies_access(self):
        service, provider = self.provider()
        login = self.start("login", provider, "--paste", "--no-browser")
        _, _, final = Browser(decision="deny").open(login.address())
        outcome = login.end(final + "\n")
        self.assertEqual(outcome.status, REFUSED)
        self.assertIn("User denied access", outcome.err)


class OCLCTodayTest(ProgramTest):
    descriptor = "shipped-oclc-today"

    def provider(self):
        service = self.serve(OCLCToday())
        return service, self.add(self.descriptor, service, service.client_id, service.client_secret,
                                 institution=service.context, redirect_uri="http://127.0.0.1/callback")

    def test_today_authorization_code(self):
        service, provider = self.provider()
        self.credmgr("login", provider, "--account", ADA, "--grant", "authorization_code")
        self.credmgr("request", provider, service.base + "/bibs")
        self.credmgr("token", provider, "--refresh")
        self.assertEqual(service.counts["token:refresh_token"], 1)

    def test_today_client_credentials(self):
        service, provider = self.provider()
        self.credmgr("login", provider, "--grant", "client_credentials", "--scope", "WorldCatMetadataAPI",
                     "--scope", f"context:{service.context}")
        self.assertEqual(self.credmgr("request", provider, service.base + "/bibs").out, '{"oclcNumber": "1"}')
        self.assertIn(service.context, self.credmgr("token", provider, "--json").out)


class L2PTest(ProgramTest):
    descriptor = "shipped-l2p"

    def test_device_refresh_validate_request_logout(self):
        service = self.serve(L2P(lifetime=brief()))
        provider = self.add(self.descriptor, service, service.client_id)
        login = self.start("login", provider, "--account", ADA, "--no-browser", stdin=False)
        address = login.wait_for(r"http://\S+\?q=verify&d=[0-9A-F]{10}").group(0)
        self.wait_until(lambda: service.counts["error: authorization pending."])
        Browser().open(address)
        outcome = login.end()
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertGreater(service.counts["error: authorization pending."], 0)
        self.expire()
        token = self.credmgr("token", provider).line
        self.assertEqual(service.counts["token:refresh_token"], 1)
        self.credmgr("token", provider, "--refresh")
        self.assertEqual(service.counts["token:refresh_token"], 2, "the refresh token stays")
        self.assertTrue(service.valid(token))
        self.credmgr("validate", provider)
        answer = json.loads(self.credmgr("request", provider, service.base + "/api.svc/v1/viewUserRole").out)
        self.assertEqual(answer["role"], "student")
        self.credmgr("logout", provider)
        self.assertTrue(service.invalidated)

    def test_after_six_months(self):
        service = self.serve(L2P(lifetime=brief()))
        provider = self.add(self.descriptor, service, service.client_id)
        login = self.start("login", provider, "--account", ADA, "--no-browser", stdin=False)
        Browser().open(login.wait_for(r"http://\S+\?q=verify&d=[0-9A-F]{10}").group(0))
        self.assertEqual(login.end().status, 0)
        service.refreshes.clear()
        self.expire()
        self.credmgr("token", provider, status=LOGIN_NEEDED)


class LinkedInTest(ProgramTest):
    descriptor = "shipped-linkedin"

    def test_login_by_pasting(self):
        service = self.serve(LinkedIn())
        provider = self.add(self.descriptor, service, service.client_id, service.client_secret,
                            redirect_uri=LinkedIn.redirect_uri)
        outcome = self.login_by_paste(provider, "--account", ADA)
        self.assertEqual(outcome.status, 0, outcome.err)
        token = self.credmgr("token", provider).line
        self.assertTrue(service.valid(token))
        answer = json.loads(self.credmgr("request", provider, service.base + "/v2/userinfo").out)
        self.assertEqual(answer["name"], "Ada Lovelace")
        self.credmgr("validate", provider)
        self.credmgr("logout", provider)
        self.assertFalse(service.valid(token))

    def test_a_pasted_address_of_another_login(self):
        service = self.serve(LinkedIn())
        provider = self.add(self.descriptor, service, service.client_id, service.client_secret,
                            redirect_uri=LinkedIn.redirect_uri)
        login = self.start("login", provider, "--paste", "--no-browser")
        login.address()
        outcome = login.end(f"{service.redirect_uri}?code=other&state={'A' * 43}\n")
        self.assertNotEqual(outcome.status, 0)
        self.assertEqual(service.requests("/oauth/v2/accessToken"), [])
