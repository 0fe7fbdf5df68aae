"""What a provider, or whoever stands in its place, should not answer: a clear error, and nothing is lost."""

import unittest
import urllib.parse

from browser import Browser
from faulty_server import FaultyServer
from program import LOGIN_NEEDED, REFUSED, UNEXPECTED, UNREACHABLE, USAGE, ProgramTest

ADA = ProgramTest.accounts[0]
CLIENT = "judge-public"


class TokenAnswers(ProgramTest):
    def expect(self, fault, *statuses):
        service = self.serve(FaultyServer(fault))
        provider = self.add("faulty", service, CLIENT)
        outcome = self.run_program("login", provider, "--account", ADA)
        self.assertIn(outcome.status, statuses, outcome.err)
        self.assertEqual(outcome.out, "")
        self.assertRegex(outcome.err, r"(?m)^credmgr: error: \S")
        self.assertEqual(service.counts["token"], 1, "a code is sent once")
        self.credmgr("token", provider, status=LOGIN_NEEDED)
        return service, provider, outcome

    def test_html(self):
        self.expect("html", REFUSED, UNEXPECTED)

    def test_not_json(self):
        self.expect("not-json", REFUSED, UNEXPECTED)

    def test_empty(self):
        self.expect("empty", REFUSED, UNEXPECTED)

    def test_no_token(self):
        self.expect("no-token", REFUSED, UNEXPECTED)

    def test_token_is_a_number(self):
        self.expect("token-is-a-number", REFUSED, UNEXPECTED)

    def test_token_that_would_inject_a_header(self):
        self.expect("header-injection", REFUSED, UNEXPECTED)

    def test_error_with_status_200(self):
        self.assertIn("the code is old", self.expect("error-with-200", REFUSED)[2].err)

    def test_refused(self):
        self.assertIn("the code is old", self.expect("refused", REFUSED)[2].err)

    def test_server_error(self):
        self.expect("server-error", REFUSED, UNREACHABLE)

    def test_redirect_is_not_followed(self):
        service, _, _ = self.expect("redirect", REFUSED, UNEXPECTED)
        self.assertEqual(service.counts["followed"], 0)

    def test_body_over_one_mebibyte(self):
        self.expect("too-long", REFUSED, UNEXPECTED, UNREACHABLE)

    def test_a_fault_does_not_cost_what_was_there(self):
        service = self.serve(FaultyServer())
        provider = self.add("faulty", service, CLIENT)
        self.credmgr("login", provider, "--account", ADA)
        token = self.credmgr("token", provider).line
        service.fault = "html"
        self.assertNotEqual(self.run_program("login", provider, "--account", ADA).status, 0)
        self.assertEqual(self.credmgr("token", provider).line, token)

    def test_dead_server(self):
        service = self.serve(FaultyServer())
        provider = self.add("faulty", service, CLIENT)
        login = self.start("login", provider, "--no-browser", stdin=False)
        address = login.address()
        callback = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))
        service.stop()
        Browser().open(callback["redirect_uri"] + "?" + urllib.parse.urlencode(
            {"code": "code-1", "state": callback["state"]}))
        outcome = login.end()
        self.assertEqual(outcome.status, UNREACHABLE, outcome.err)


class Callbacks(ProgramTest):
    def login(self, fault="", *arguments):
        service = self.serve(FaultyServer(fault))
        provider = self.add("faulty", service, CLIENT)
        return service, self.start("login", provider, "--account", ADA, "--no-browser", *arguments, stdin=False)

    def test_wrong_or_missing_state_gets_nothing(self):
        for fault in ("wrong-state", "no-state"):
            with self.subTest(fault):
                service, login = self.login(fault, "--timeout", "2s")
                status, _, _ = Browser().open(login.address())
                self.assertGreaterEqual(status, 400)
                self.assertNotEqual(login.end().status, 0)
                self.assertEqual(service.counts["token"], 0)

    def test_a_forged_callback_does_not_disturb_the_right_one(self):
        service, login = self.login()
        address = login.address()
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))
        for query in ("code=forged&state=" + "A" * 43, "code=forged", "error=access_denied&state=x", ""):
            status, _, _ = Browser().open(f"{asked['redirect_uri']}?{query}")
            self.assertGreaterEqual(status, 400, query)
        status, _, final = Browser().open(address)
        self.assertEqual(status, 200, final)
        outcome = login.end()
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(service.counts["token"], 1)

    def test_a_second_callback_finds_nobody(self):
        service, login = self.login()
        _, _, final = Browser().open(login.address())
        self.assertEqual(login.end().status, 0)
        try:
            status, _, _ = Browser().open(final)
        except OSError:
            status = 404
        self.assertGreaterEqual(status, 400)
        self.assertEqual(service.counts["token"], 1)

    def test_refused_consent(self):
        service, login = self.login("denied")
        Browser().open(login.address())
        outcome = login.end()
        self.assertEqual(outcome.status, REFUSED)
        self.assertIn("the person said no", outcome.err)
        self.assertEqual(service.counts["token"], 0)

    def test_nobody_comes(self):
        _, login = self.login("", "--timeout", "1s")
        self.assertNotEqual(login.end().status, 0)


class Descriptors(ProgramTest):
    def test_endpoints_off_loopback_are_https(self):
        path = self.file("evil.yaml", "provider: evil\ngrant: authorization_code\nendpoints:\n"
                         "  authorization: http://evil.example/authorize\n  token: http://evil.example/token\n")
        outcome = self.run_program("check", path)
        self.assertEqual(outcome.status, USAGE)
        for line in (4, 5):
            self.assertRegex(outcome.out + outcome.err, rf"evil\.yaml:{line}:\d+: error: ")

    def test_a_credential_goes_only_to_its_hosts(self):
        service = self.serve(FaultyServer())
        other = self.serve(FaultyServer())
        provider = self.add("faulty", service, CLIENT)
        self.credmgr("login", provider, "--account", ADA)
        for url in (other.base.replace("127.0.0.1", "localhost") + "/resource", "https://evil.example/"):
            self.assertNotEqual(self.run_program("request", provider, url).status, 0, url)
        self.assertEqual(other.exchanges, [])


if __name__ == "__main__":
    unittest.main()
