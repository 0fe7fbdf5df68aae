"""Setting the clock a day forward or back costs one refresh each time, and no expired token stays in use."""

import json
import os
import time
import unittest

import oauth2_server
from oauth2_server import OAuth2Server
from program import ADA, BINARY, DONE, ProgramTest
from service import json_response
FAKETIME = "/usr/bin/faketime"
# A fake clock works only in a dynamically linked program, which this one always is.
ONLINE = os.path.join(os.path.dirname(BINARY), "credmgr-online")


class MomentServer(OAuth2Server):
    """Returns when a token expires, but not its lifetime."""

    def token(self, request):
        response = super().token(request)
        answer = json.loads(response.body)
        if "expires_in" in answer:
            answer["expires_at"] = int(time.time()) + answer.pop("expires_in")
        return json_response(answer, response.status)


@unittest.skipUnless(os.access(FAKETIME, os.X_OK), "there is no faketime")
class Clocks(ProgramTest):
    def at(self, change, *arguments):
        command = ("--exclude-monotonic", "-f", change, ONLINE) if change else ()
        return self.credmgr(*command, *arguments, binary=FAKETIME if change else ONLINE)

    def follow(self, service):
        """Moves the clock forward, to the true time, back, and to the true time again, with many calls each."""
        provider = self.add("oauth2-public", service, oauth2_server.PUBLIC_CLIENT)
        self.credmgr("login", provider, "--account", ADA)
        for number, change in enumerate(("", "+1d", "", "-1d", ""), start=0):
            tokens = {self.at(change, "token", provider).line for _ in range(6)}
            self.assertEqual(len(tokens), 1, f"a clock at {change or 'the truth'}")
            self.assertTrue(service.accepts(tokens.pop()))
            self.assertEqual(service.counts["token:refresh_token"], number, f"a clock at {change or 'the truth'}")

    def test_a_lifetime(self):
        self.follow(self.serve(OAuth2Server()))

    def test_a_moment_by_the_providers_clock(self):
        self.follow(self.serve(MomentServer()))

    def test_a_clock_that_is_always_wrong(self):
        """By the provider's own numbers, a token is valid for an hour, whatever the clock says."""
        for day in (86_400, -86_400):
            with self.subTest(day):
                self.new_home()
                service = self.serve(MomentServer(lifetime=3600, refreshed_lifetime=3600))
                provider = self.add("oauth2-public", service, oauth2_server.PUBLIC_CLIENT)
                self.at(f"{day:+}", "login", provider, "--account", ADA)
                first = self.at(f"{day:+}", "token", provider).line
                self.assertEqual(service.counts["token:refresh_token"], 0)
                # An hour and a second later on the same clock.
                self.assertNotEqual(self.at(f"{day + 3601:+}", "token", provider).line, first)
                self.assertEqual(service.counts["token:refresh_token"], 1)

    def test_the_programs_use_the_changed_clock(self):
        tomorrow = time.time() + 86_400
        service, provider = self.provided()
        outcome = self.at("+1d", "login", provider, "--account", ADA)
        self.assertEqual(outcome.status, DONE)
        obtained = json.loads(self.credmgr("status", "--json").out)[0]["obtained_at"]
        self.assertIn(obtained[:10], [time.strftime("%Y-%m-%d", time.gmtime(moment)) for moment in (tomorrow, tomorrow + 3600)])
