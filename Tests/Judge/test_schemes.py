"""Redirects to an app's scheme with the real xdg-utils: registered for one login, passed on, and restored."""

import glob
import os
import shutil
import signal
import subprocess
import sys
import unittest

from browser import Browser
from chromium import PROGRAM, Chromium
from program import HERE, TIMEOUT, ProgramTest, text_of

TYPE = "x-scheme-handler/judge.app"


@unittest.skipUnless(shutil.which("xdg-mime") and shutil.which("xdg-open"), "there are no xdg-utils")
class Schemes(ProgramTest):
    def setUp(self):
        super().setUp()
        self.service, self.provider = self.provided("oauth2-implicit-app")
        # xdg-open only checks that a display exists.
        self.environment.update(DISPLAY=":0", XDG_CURRENT_DESKTOP="X-Generic")
        del self.environment["BROWSER"]
        self.choices = os.path.join(self.folder, ".config/mimeapps.list")
        self.entries = os.path.join(self.folder, ".local/share/applications")
        # The login starts this browser, which consents and records its final address.
        self.end = os.path.join(self.folder, "end")
        path = self.file("xdg-browser", (
            f"#!{sys.executable}\nimport os, sys\nsys.path.insert(0, {HERE!r})\nfrom browser import Browser\n"
            f"end = Browser().open(sys.argv[1])[2]\nopen({self.end!r} + '.new', 'w').write(end)\n"
            f"os.rename({self.end!r} + '.new', {self.end!r})\n"), 0o700)
        self.browser = {"BROWSER": path}

    def xdg(self, *arguments):
        """A user's own program on the same desktop."""
        done = subprocess.run(arguments, env=self.environment, capture_output=True, text=True, timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, f"{arguments}\n{done.stdout}{done.stderr}")
        return done.stdout.strip()

    def handler(self):
        return self.xdg("xdg-mime", "query", "default", TYPE)

    def log_in(self):
        """Starts a login; returns it and the browser's final address."""
        if os.path.exists(self.end):
            os.remove(self.end)
        login = self.start("login", self.provider, environment=self.browser)
        login.wait_for(r"https?://\S+")
        self.wait_until(lambda: os.path.exists(self.end))
        return login, text_of(self.end)

    def another(self, name="other"):
        """Creates another program of the user's that already has the scheme."""
        os.makedirs(self.entries, exist_ok=True)
        with open(os.path.join(self.entries, f"{name}.desktop"), "w", encoding="utf-8") as file:
            file.write(f"[Desktop Entry]\nType=Application\nName={name}\nExec=true %u\nMimeType={TYPE};\n")
        self.xdg("xdg-mime", "default", f"{name}.desktop", TYPE)

    def expect_nothing_left(self):
        self.assertEqual(glob.glob(self.entries + "/credmgr*"), [])
        for folder, _, names in os.walk(self.homes[-1]):
            self.assertEqual([name for name in names if name.endswith(".redirect")], [], folder)

    def text(self):
        return text_of(self.choices)

    def test_the_browser_delivers_the_redirect(self):
        login, final = self.log_in()
        self.assertTrue(final.startswith("judge.app:/callback#"), final)
        self.assertRegex(self.handler(), r"^credmgr-login-\w+\.desktop$")
        (entry,) = glob.glob(self.entries + "/credmgr*.desktop")
        if shutil.which("desktop-file-validate"):
            self.assertEqual(self.xdg("desktop-file-validate", entry), "")
        self.xdg("xdg-open", final)
        outcome = login.end()
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertTrue(self.credmgr("token", self.provider).line)
        self.expect_nothing_left()
        self.assertFalse(os.path.exists(self.choices))
        self.assertEqual(self.handler(), "")

    def test_the_earlier_scheme_handler_is_restored(self):
        self.another()
        before = self.text()
        login, final = self.log_in()
        self.assertRegex(self.handler(), "^credmgr-login-")
        self.xdg("xdg-open", final)
        self.assertEqual(login.end().status, 0)
        self.assertEqual(self.text(), before)
        self.assertEqual(self.handler(), "other.desktop")
        self.expect_nothing_left()

    def test_changes_of_other_programs_stay(self):
        self.another()
        login, final = self.log_in()
        self.xdg("xdg-mime", "default", "other.desktop", "text/x-judge")
        self.xdg("xdg-open", final)
        self.assertEqual(login.end().status, 0)
        self.assertIn("text/x-judge=other.desktop", self.text())
        self.assertNotIn("credmgr", self.text())
        self.assertEqual(self.handler(), "other.desktop")

    def test_an_address_of_another_login_changes_nothing(self):
        login, final = self.log_in()
        for foreign in ("judge.app:/callback#access_token=theirs&state=wrong", "judge.app:/elsewhere#access_token=theirs",
                        "judge.app:/callback", "judge.app:/callback#error=access_denied"):
            self.xdg("xdg-open", foreign)
        login.wait_for(r"ignored a redirect that does not belong to this login")
        self.assertIsNone(login.process.poll())
        self.xdg("xdg-open", final)
        outcome = login.end()
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertNotEqual(self.credmgr("token", self.provider).line, "theirs")

    def test_an_interrupt_restores_the_earlier_handler(self):
        self.another()
        before = self.text()
        for number in (signal.SIGINT, signal.SIGTERM):
            login, final = self.log_in()
            login.process.send_signal(number)
            self.assertNotEqual(login.end().status, 0)
            self.assertEqual(self.text(), before)
            self.expect_nothing_left()
        # A late redirect finds no waiting login.
        late = self.run_program("redirect", os.path.join(self.homes[-1], "run"), final)
        self.assertEqual((late.status, late.out), (2, ""))
        self.assertIn("no login is waiting for this address", late.err)

    def test_leftovers_of_a_killed_login_are_removed(self):
        self.another()
        before = self.text()
        login, _ = self.log_in()
        login.process.kill()
        login.end()
        self.assertRegex(self.handler(), "^credmgr-login-")
        login, final = self.log_in()
        self.xdg("xdg-open", final)
        self.assertEqual(login.end().status, 0)
        self.assertEqual(self.text(), before)
        self.expect_nothing_left()

    def test_two_logins_at_the_same_time(self):
        """The latest login has the scheme, and each gets its own answer."""
        first, one = self.log_in()
        os.remove(self.end)
        second = self.start("login", self.provider, "--account", "second", environment=self.browser)
        second.wait_for(r"waiting|https?://\S+")
        self.wait_until(lambda: os.path.exists(self.end))
        two = text_of(self.end)
        self.xdg("xdg-open", one)
        self.assertEqual(first.end().status, 0)
        self.xdg("xdg-open", two)
        self.assertEqual(second.end().status, 0)
        self.expect_nothing_left()
        self.assertEqual(self.handler(), "")

    @unittest.skipUnless(PROGRAM and shutil.which("Xvfb"), "there is no chromium, or no Xvfb")
    def test_a_browser_with_a_window(self):
        """Chromium asks the user before it opens the scheme; here it has permission in advance."""
        screen = subprocess.Popen(["Xvfb", "-displayfd", "1", "-nolisten", "tcp"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(lambda: (screen.terminate(), screen.wait(TIMEOUT), screen.stdout.close()))
        self.environment["DISPLAY"] = ":" + screen.stdout.readline().strip()
        allowed = {"protocol_handler": {"allowed_origin_protocol_pairs": {self.service.base: {"judge.app": True}}}}
        browser = self.enterContext(
            Chromium(os.path.join(self.folder, "chromium"), environment=self.environment, preferences=allowed))
        # A browser is already running, so the browser of the login does nothing.
        login = self.start("login", self.provider, environment={"BROWSER": "true"})
        browser.open(login.address())
        press = "document.querySelector('button[value=approve]')"
        browser.wait_for(press)
        browser.run(press + ".click()", gesture=True)
        outcome = login.end()
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertTrue(self.credmgr("token", self.provider).line)
        self.expect_nothing_left()

    def test_pasting_registers_nothing(self):
        login = self.start("login", self.provider, "--paste", "--no-browser")
        _, _, final = Browser().open(login.address())
        self.assertFalse(os.path.exists(self.entries))
        self.assertEqual(login.end(final + "\n").status, 0)
