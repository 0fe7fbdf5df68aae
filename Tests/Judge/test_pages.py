"""The pages of the loopback receiver in a real browser.

With CREDMGR_PICTURES=FOLDER the pictures of the documentation are made anew there.
"""

import os
import urllib.parse
import unittest

import oauth2_server
from chromium import PROGRAM, Chromium
from oauth2_server import OAuth2Server
from program import REFUSED, ProgramTest

PICTURES = os.environ.get("CREDMGR_PICTURES")


@unittest.skipUnless(PROGRAM, "there is no chromium")
class Pages(ProgramTest):
    def consent(self, name, button="approve", dark=False, **options):
        """Logs in as a person does; returns the browser, which shows the last page, and the login."""
        service = self.serve(OAuth2Server(**options))
        provider = self.add(name, service, oauth2_server.PUBLIC_CLIENT)
        login = self.start("login", provider, "--no-browser", stdin=False)
        browser = self.enterContext(Chromium(os.path.join(self.folder, f"chromium-{len(self.homes)}-{dark}"), dark))
        browser.open(login.address())
        press = f"document.querySelector('button[value={button}]')"
        browser.until(lambda: browser.run(f"!!{press}"))
        browser.run(press + ".click()")
        return browser, login

    def expect_good(self, browser, word, heading):
        """The page that has come says `heading`, is of that kind, and keeps nothing."""
        browser.until(lambda: browser.run(f"!!document.querySelector('main.{word}')"))
        self.assertEqual(browser.run("document.querySelector('h1').textContent"), heading)
        self.assertEqual(browser.run("document.title"), heading)
        # The consent page of the judge's own server may name its icon.
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

    def test_done(self):
        for dark in (False, True):
            with self.subTest(dark=dark):
                self.new_home()
                browser, login = self.consent("oauth2-public", dark=dark)
                self.expect_good(browser, "done", "Consent given: Authlib, a client without a secret")
                self.assertEqual(login.end().status, 0)
                background = browser.run("getComputedStyle(document.body).backgroundColor")
                self.assertEqual(background, "rgb(21, 23, 27)" if dark else "rgb(244, 245, 247)")
                self.keep(browser, "page-done" + ("-dark" if dark else ""))

    def test_refused_with_the_words_of_the_provider(self):
        browser, login = self.consent("oauth2-public", "deny")
        self.expect_good(browser, "refused", "Login refused: Authlib, a client without a secret")
        self.assertEqual(login.end().status, REFUSED)
        self.keep(browser, "page-refused")

    def test_a_fragment_is_handed_over_by_the_page(self):
        browser, login = self.consent("oauth2-implicit")
        self.expect_good(browser, "done", "Consent given: Authlib, the token in the fragment")
        outcome = login.end()
        self.assertEqual(outcome.status, 0, outcome.err)
        # The page that handed it over is the one that says so.
        self.assertIn(("StaticText", "Consent given: Authlib, the token in the fragment"), browser.read_aloud())
        own = [url for url in browser.requested() if url.startswith(browser.run("location.origin"))]
        self.assertEqual(len(own), 2, "the page, and what it posts")

    def test_not_the_awaited_one(self):
        service, provider = self.provided()
        login = self.start("login", provider, "--no-browser", stdin=False)
        redirect = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(login.address()).query))["redirect_uri"]
        with Chromium(os.path.join(self.folder, "chromium")) as browser:
            browser.open(f"{redirect}?code=somebody-elses&state=wrong")
            browser.until(lambda: browser.run("!!document.querySelector('main.ignored')"))
            self.assertEqual(browser.run("location.search"), "")
            self.keep(browser, "page-ignored")
        login.process.terminate()
        login.end()
