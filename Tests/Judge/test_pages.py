"""The pages of the loopback receiver in a real browser.

CREDMGR_PICTURES=FOLDER renews the documentation's pictures there.
"""

import html
import json
import os
import re
import shlex
import unittest
import urllib.parse
import urllib.request

import oauth2_server
from browser import TIMEOUT
from chromium import PROGRAM, Chromium
from oauth2_server import OAuth2Server
from program import DONE, REFUSED, ProgramTest, text_of
from service import json_response

PICTURES = os.environ.get("CREDMGR_PICTURES")


@unittest.skipUnless(PROGRAM, "there is no chromium")
class Pages(ProgramTest):
    def consent(self, name, button="approve", dark=False, prepare=lambda service: None, **options):
        """Logs in as a user does; returns the browser with the last page, and the login."""
        service = self.serve(OAuth2Server(**options))
        prepare(service)
        provider = self.add(name, service, oauth2_server.PUBLIC_CLIENT)
        login = self.start("login", provider, "--no-browser", stdin=False)
        browser = self.enterContext(Chromium(os.path.join(self.folder, f"chromium-{len(self.homes)}-{dark}"), dark))
        browser.open(login.address())
        press = f"document.querySelector('button[value={button}]')"
        browser.wait_for(press)
        browser.run(press + ".click()")
        return browser, login

    def expect_good(self, browser, word, heading):
        """Checks that the new page says `heading`, is of that kind, and stores nothing."""
        browser.wait_for(f"document.querySelector('main.{word}')")
        self.assertEqual(browser.run("document.querySelector('h1').textContent"), heading)
        self.assertEqual(browser.run("document.title"), heading)
        # The consent page may refer to an icon that the judge's server does not have.
        complaints = [c for c in browser.complaints() if "favicon" not in str(c)]
        self.assertEqual(complaints, [])
        here = browser.run("location.origin")
        self.assertEqual(browser.run("location.href"), browser.run("location.origin+location.pathname"))
        self.assertEqual([url for url in browser.history() if url.startswith(here) and ("?" in url or "#" in url)], [])
        self.assertNotEqual(browser.run("getComputedStyle(document.querySelector('main')).borderRadius"), "0px")
        self.assertLessEqual(browser.run("document.documentElement.scrollWidth"), browser.run("innerWidth"))
        read = browser.read_aloud()
        self.assertIn(("heading", heading), read)
        self.assertIn(("RootWebArea", heading), read)
        self.assertFalse([role for role, _ in read if role in ("image", "img")], "the sign says nothing of its own")
        self.assertEqual(browser.run("document.documentElement.lang"), "en")

    def keep(self, browser, name):
        browser.picture(os.path.join(PICTURES or self.folder, name + ".png"))

    def test_the_page_of_a_completed_login(self):
        for dark in (False, True):
            with self.subTest(dark=dark):
                self.new_home()
                browser, login = self.consent("oauth2-public", dark=dark)
                self.expect_good(browser, "done", "Logged in: Authlib, a client without a secret")
                self.assertEqual(browser.run("document.querySelector('p').textContent"),
                                 "You are logged in as default.\nYou can close this window.")
                self.assertEqual(login.end().status, 0)
                background = browser.run("getComputedStyle(document.body).backgroundColor")
                self.assertEqual(background, "rgb(21, 23, 27)" if dark else "rgb(244, 245, 247)")
                self.keep(browser, "page-done" + ("-dark" if dark else ""))

    def test_refused_with_the_words_of_the_provider(self):
        browser, login = self.consent("oauth2-public", "deny")
        self.expect_good(browser, "refused", "Login refused: Authlib, a client without a secret")
        words = browser.run("document.querySelector('blockquote').textContent")
        outcome = login.end()
        self.assertEqual(outcome.status, REFUSED)
        self.assertIn(words, outcome.err)
        self.keep(browser, "page-refused")

    def test_the_tick_appears_after_the_login(self):
        """The provider accepts the consent but refuses the code."""
        def prepare(service):
            service.routes[("POST", "/token")] = lambda request: json_response({"error": "invalid_grant"}, 400)

        browser, login = self.consent("oauth2-public", prepare=prepare)
        self.expect_good(browser, "refused", "Login refused: Authlib, a client without a secret")
        self.assertNotEqual(login.end().status, 0)

    def test_a_narrow_window(self):
        for button, word in (("approve", "done"), ("deny", "refused")):
            self.new_home()
            browser, login = self.consent("oauth2-public", button)
            browser.wait_for(f"document.querySelector('main.{word}')")
            browser.resize(320, 568)
            self.assertLessEqual(browser.run("document.documentElement.scrollWidth"), 320)
            self.assertLessEqual(browser.run("parseFloat(getComputedStyle(document.querySelector('h1')).fontSize)"), 20)
            login.end()

    def test_the_page_of_a_fragment_after_the_login(self):
        service = self.serve(OAuth2Server())
        provider = self.add("oauth2-implicit", service, oauth2_server.PUBLIC_CLIENT)
        login = self.start("login", provider, "--no-browser", stdin=False)
        redirect = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(login.address()).query))["redirect_uri"]
        with Chromium(os.path.join(self.folder, "chromium")) as browser:
            # The login ends while the page is open, so no process receives its answer.
            browser.open(redirect)
            browser.wait_for("document.querySelector('main')")
            login.process.terminate()
            login.end()
            browser.run(browser.run("document.querySelector('script').textContent"))
            browser.wait_for("document.querySelector('h1').textContent=='The login has ended'")
            self.assertEqual(browser.run("document.querySelector('main').className"), "refused")
            self.assertNotIn("One moment", browser.run("document.body.innerText"))

    def test_the_page_posts_the_fragment(self):
        browser, login = self.consent("oauth2-implicit")
        self.expect_good(browser, "done", "Logged in: Authlib, the token in the fragment")
        outcome = login.end()
        self.assertEqual(outcome.status, 0, outcome.err)
        # The page that passed the answer on shows the result.
        self.assertIn(("StaticText", "Logged in: Authlib, the token in the fragment"), browser.read_aloud())
        own = [url for url in browser.requested() if url.startswith(browser.run("location.origin"))]
        self.assertEqual(len(own), 2, "the page, and what it posts")

    def test_a_redirect_of_another_login(self):
        service, provider = self.provided()
        login = self.start("login", provider, "--no-browser", stdin=False)
        redirect = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(login.address()).query))["redirect_uri"]
        with Chromium(os.path.join(self.folder, "chromium")) as browser:
            browser.open(f"{redirect}?code=somebody-elses&state=wrong")
            browser.wait_for("document.querySelector('main.ignored')")
            self.assertEqual(browser.run("location.search"), "")
            self.keep(browser, "page-ignored")
        login.process.terminate()
        login.end()


class Simulator(ProgramTest):
    PROVIDER = """\
provider: sample
title: Sample
grant: authorization_code
endpoints: { authorization: "https://sample.example/authorize", token: "https://sample.example/token" }
hosts: [api.sample.example]
git: { hosts: [git.sample.example] }
"""

    def test_the_user_learns_the_next_step(self):
        """The first two shown commands log in unchanged, next to a provider with the same name."""
        person = self.terminal("simulate", self.file("sample.yaml", self.PROVIDER), "--fault", "no-expiry", columns=0)
        person.wait_for("press Ctrl-C to stop")
        commands = re.findall(r"\n  (credmgr [^\r\n]+)", person.seen)
        self.assertEqual(len(commands), 3, person.seen)
        self.assertTrue(commands.pop().startswith("credmgr setup http://127.0.0.1:"), person.seen)
        self.credmgr("add-provider", self.file("sample.yaml", self.PROVIDER), "--client-id", "real")
        for command in commands:
            self.assertEqual(self.run_program("-c", command.replace("credmgr", f"exec '{self.binary}'", 1), binary="/bin/sh").status, DONE)
        self.assertEqual([account["provider"] for account in json.loads(self.credmgr("status", "--json").out)], ["sample-sim"])
        address = re.search(r"listening on (\S+)", person.seen).group(1)
        with urllib.request.urlopen(address + "/", timeout=TIMEOUT) as response:
            self.assertEqual(response.headers["Refresh"], "5")
            page = html.unescape(response.read().decode())
        for text in ("Simulated Sample", *commands, "no-expiry", "logins: 1"):
            self.assertIn(text, page)
        if PROGRAM:
            with Chromium(os.path.join(self.folder, "chromium"), dark=True) as browser:
                browser.resize(320, 568)
                for path in ("/", "/simulator/device"):
                    browser.open(address + path)
                    browser.wait_for(f"location.pathname=={path!r}&&document.querySelector('main')")
                    self.assertEqual(browser.complaints(), [])
                    self.assertEqual(browser.run("getComputedStyle(document.body).backgroundColor"), "rgb(21, 23, 27)")
                    self.assertLessEqual(browser.run("document.documentElement.scrollWidth"), 320)
                    self.assertIn("simulation on this machine", browser.run("document.body.innerText"))
                    self.keep(browser, "simulator" + path.replace("/", "-").rstrip("-"))
        self.credmgr("git-setup")
        self.assertIn(address.removeprefix("http://"), text_of(self.environment["GIT_CONFIG_GLOBAL"]))
        # At the end, nothing points to an address that no longer answers.
        person.interrupt()
        self.assertEqual(person.end(), DONE, person.seen)
        self.assertIn('removed "sample-sim" and its accounts', person.seen)
        self.assertEqual(json.loads(self.credmgr("status", "--json").out), [])
        added = [row["provider"] for row in json.loads(self.credmgr("providers", "--json").out) if row["added"]]
        self.assertEqual(added, ["sample"])
        self.assertNotIn(address.removeprefix("http://"), text_of(self.environment["GIT_CONFIG_GLOBAL"]))

    def test_a_locked_vault(self):
        """The simulator cannot remove the provider, but git no longer asks for an address that does not answer."""
        passphrase = self.file("passphrase", "correct horse battery staple\n", 0o600)
        person = self.terminal("simulate", self.file("sample.yaml", self.PROVIDER), columns=0)
        person.wait_for("press Ctrl-C to stop")
        command = re.search(r"\n  credmgr (add-provider [^\r\n]+)", person.seen).group(1)
        self.credmgr(*shlex.split(command))
        self.credmgr("git-setup")
        address = re.search(r"listening on http://(\S+)", person.seen).group(1)
        self.assertIn(address, text_of(self.environment["GIT_CONFIG_GLOBAL"]))
        self.credmgr("vault", "protect", "passphrase", environment={"CREDMGR_PASSPHRASE_FILE": passphrase})
        self.credmgr("vault", "protect", "key-file", "--remove", "--yes", environment={"CREDMGR_PASSPHRASE_FILE": passphrase})
        person.interrupt()
        self.assertEqual(person.end(), DONE, person.seen)
        self.assertIn('cannot remove "sample-sim": the vault is locked', person.seen)
        self.assertIn('hint: run "credmgr vault unlock && credmgr logout sample-sim --all --keep-remote", '
                      'then run "credmgr remove-provider sample-sim --keep-remote"', person.seen)
        path = self.environment["GIT_CONFIG_GLOBAL"]
        self.assertNotIn(address, text_of(path) if os.path.exists(path) else "")

    keep = Pages.keep
