"""Wrong answers of a provider or an impostor cause a clear error, and nothing is lost."""

import signal
import urllib.parse

from browser import Browser
from faulty_server import FaultyServer
from program import ADA, LOGIN_NEEDED, REFUSED, UNEXPECTED, UNREACHABLE, ProgramTest
CLIENT = "judge-public"


class TokenAnswers(ProgramTest):
    def test_each_fault(self):
        unusable, told = (REFUSED, UNEXPECTED), "the code is old"
        for fault, statuses, word in (
            ("html", unusable, ""), ("not-json", unusable, ""), ("empty", unusable, ""), ("no-token", unusable, ""),
            ("token-is-a-number", unusable, ""), ("header-injection", unusable, ""), ("error-with-200", (REFUSED,), told),
            ("refused", (REFUSED,), told), ("server-error", (REFUSED, UNREACHABLE), ""), ("redirect", unusable, ""),
            ("too-long", (*unusable, UNREACHABLE), ""),
        ):
            with self.subTest(fault):
                self.new_home()
                service = self.serve(FaultyServer(fault))
                provider = self.add("faulty", service, CLIENT)
                outcome = self.run_program("login", provider, "--account", ADA)
                self.assertIn(outcome.status, statuses, outcome.err)
                self.assertEqual(outcome.out, "")
                self.assertRegex(outcome.err, r"(?m)^credmgr: error: \S")
                self.assertIn(word, outcome.err)
                self.assertEqual(service.counts["token"], 1, "a code is sent once")
                self.assertEqual(service.counts["followed"], 0, "a redirect is not followed")
                self.credmgr("token", provider, status=LOGIN_NEEDED)

    def test_a_fault_does_not_cost_the_stored_token(self):
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
                service, login = self.login(fault)
                status, _, _ = Browser().open(login.address())
                self.assertGreaterEqual(status, 400)
                login.process.send_signal(signal.SIGINT)
                self.assertEqual(login.end().status, 130)
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

    def test_a_second_callback_is_refused(self):
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

    def test_no_browser_answers(self):
        _, login = self.login("", "--timeout", "1s")
        self.assertNotEqual(login.end().status, 0)
