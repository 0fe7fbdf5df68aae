"""Interference with a login in a browser: by other users of the machine, other pages, and shells."""

import os
import socket
import subprocess
import unittest
import urllib.parse

import oauth2_server
from browser import Browser
from oauth2_server import OAuth2Server
from program import REFUSED, TIMEOUT, USAGE, ProgramTest, text_of

NOBODY = 65534
IMAGE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
NAVIGATION = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


def fetch(url, *arguments, fields=None, user=None):
    """Returns the status and the target of a redirect for another program's request."""
    for name, value in (fields or {}).items():
        arguments += ("-H", f"{name}: {value}")
    done = subprocess.run(["curl", "-sg", "-o", "/dev/null", "-w", "%{http_code} %{redirect_url}", *arguments, url], user=user,
                          capture_output=True, text=True, timeout=TIMEOUT, cwd="/", env={"PATH": "/usr/bin:/bin"})
    status, _, target = done.stdout.partition(" ")
    return int(status), target


class Intruders(ProgramTest):
    def setUp(self):
        super().setUp()
        self.seen = os.path.join(self.folder, "browser-arguments")
        self.quiet = {"BROWSER": self.file(
            "quiet-browser", f"#!/bin/sh\necho \"$@\" >'{self.seen}.new'; mv '{self.seen}.new' '{self.seen}'\n", 0o700)}

    def log_in(self, provider, *arguments):
        """Starts a login and its browser; returns it, the browser's arguments, and the printed address."""
        if os.path.exists(self.seen):
            os.remove(self.seen)
        login = self.start("login", provider, *arguments, stdin=False, environment=self.quiet)
        self.wait_until(lambda: os.path.exists(self.seen))
        return login, text_of(self.seen).strip(), login.address()

    def redirect(self, address):
        return urllib.parse.parse_qs(urllib.parse.urlsplit(address).query)["redirect_uri"][0]

    def optional_state(self, grant="implicit"):
        service = self.serve(OAuth2Server())
        text = (f"provider: lax\ngrant: {grant}\nstate: optional\npkce: none\nscope: [read]\nendpoints:\n"
                f"  authorization: {service.base}/authorize\n  token: {service.base}/token\n"
                f"client: {{ authentication: none }}\nhosts: ['127.0.0.1:{service.port}']\n")
        self.credmgr("add-provider", self.file("lax.yaml", text), "--client-id", oauth2_server.PUBLIC_CLIENT)
        return service

    def test_the_browser_is_redirected_once(self):
        """All users can see a browser's arguments, so they contain nothing of the request."""
        service, provider = self.provided()
        login, shown, address = self.log_in(provider)
        self.assertRegex(shown, r"^http://127\.0\.0\.1:\d+/start/[\w-]{43}$")
        self.assertEqual(fetch(shown, fields=IMAGE)[0], 403)
        self.assertEqual(fetch(shown, fields=NAVIGATION), (302, address))
        self.assertEqual(fetch(shown)[0], 410)
        login.wait_for("opened the login page twice")
        Browser().open(address)
        self.assertEqual(login.end().status, 0)
        self.assertEqual(service.counts["granted:authorization_code"], 1)

    def test_a_remote_browser_gets_the_page(self):
        _, provider = self.provided()
        self.quiet["SSH_CONNECTION"] = "192.0.2.1 1 192.0.2.2 22"
        login, shown, address = self.log_in(provider)
        self.assertEqual(shown, address)
        Browser().open(shown)
        self.assertEqual(login.end().status, 0)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
    def test_another_user_of_the_machine(self):
        service, provider = self.provided()
        login, shown, address = self.log_in(provider)
        self.assertEqual(fetch(shown, user=NOBODY), (403, ""))
        login.wait_for(rf"another user of this machine \(uid {NOBODY}\)")
        # Another user who knows the request still cannot answer it, with or without waiting.
        state = urllib.parse.parse_qs(urllib.parse.urlsplit(address).query)["state"][0]
        answer = f"{self.redirect(address)}?code=forged&state={state}"
        self.assertEqual(fetch(answer, user=NOBODY)[0], 403)
        self.send_and_go(answer)
        Browser().open(shown)
        outcome = login.end()
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(outcome.err.count("another user of this machine"), 1)
        self.assertEqual(service.counts["token:authorization_code"], service.counts["granted:authorization_code"])

    def send_and_go(self, url):
        """Sends a request as another user who closes the connection without waiting for the answer."""
        parts = urllib.parse.urlsplit(url)
        child = os.fork()
        if child == 0:
            os.setuid(NOBODY)
            for linger in (b"\0" * 8, b"\1\0\0\0\0\0\0\0"):
                connection = socket.create_connection((parts.hostname, parts.port))
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                connection.sendall(f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
                connection.close()
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_an_image_with_a_token(self):
        service = self.optional_state()
        login, shown, address = self.log_in("lax")
        forged = f"{self.redirect(address)}?access_token=forged&expires_in=3600"
        self.assertEqual(fetch(forged, fields=IMAGE)[0], 403)
        self.assertEqual(fetch(forged, fields=NAVIGATION)[0], 400)
        self.assertEqual(fetch(forged)[0], 400)
        form = ("-d", "access_token=forged")
        own = {**IMAGE, "Origin": f"http://{urllib.parse.urlsplit(self.redirect(address)).netloc}"}
        for fields in (NAVIGATION, {**NAVIGATION, "Origin": "https://evil.example"}, {**NAVIGATION, "Origin": "null"}, own):
            self.assertEqual(fetch(self.redirect(address), *form, fields=fields)[0], 403)
        Browser().open(shown)
        outcome = login.end()
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(outcome.err.count("does not belong to this login"), 1, "it is told once")
        self.assertTrue(service.accepts(self.credmgr("token", "lax").line))

    def test_a_code_of_another_page(self):
        service = self.optional_state("authorization_code")
        login, _, address = self.log_in("lax")
        redirect = self.redirect(address)
        self.assertEqual(fetch(f"{redirect}?code=forged", fields=IMAGE)[0], 403)
        for origin in ("https://evil.example", f"http://{urllib.parse.urlsplit(redirect).netloc}"):
            self.assertEqual(fetch(redirect, "-d", "code=forged", fields={**NAVIGATION, "Origin": origin})[0], 403)
        self.assertGreaterEqual(fetch(f"{redirect}?code=forged", fields={**NAVIGATION, "Sec-Fetch-Dest": "iframe"})[0], 400)
        self.assertIsNone(login.process.poll())
        # A form on the provider's page is a valid answer.
        own = {**NAVIGATION, "Origin": service.base}
        self.assertEqual(fetch(redirect, "-d", "error=access_denied", fields=own)[0], 200)
        self.assertEqual(login.end().status, REFUSED)

    def test_a_shell_on_the_way_to_the_browser(self):
        service = self.serve(OAuth2Server())
        text = (f"provider: shells\ngrant: authorization_code\nscope: [read]\nendpoints:\n"
                f"  authorization: \"{service.base}/authorize?ui=$(calc.exe)`x`|'\"\n"
                f"  token: {service.base}/token\nclient: {{ authentication: none }}\n")
        self.credmgr("add-provider", self.file("shells.yaml", text), "--client-id", oauth2_server.PUBLIC_CLIENT)
        # Without a local port, the command gets the address itself.
        self.quiet["SSH_TTY"] = "/dev/pts/0"
        login, shown, address = self.log_in("shells")
        self.assertEqual(shown, address)
        self.assertIn("ui=%24%28calc.exe%29%60x%60%7C%27&", shown)
        self.assertRegex(shown, r"^[\w./?:@&=+,%#~!*-]+$")
        Browser().open(shown)
        self.assertEqual(login.end().status, 0)

    def test_pasting_from_a_random_port(self):
        service, provider = self.provided()
        ports = set()
        for name in ("one", "two", "three"):
            running = self.start("login", provider, "--account", name, "--paste", "--no-browser")
            address = running.address()
            ports.add(urllib.parse.urlsplit(self.redirect(address)).port)
            _, _, final = Browser(follows_loopback=False).open(address)
            self.assertEqual(running.end(final + "\n").status, 0)
        self.assertGreater(len(ports), 1)
        self.optional_state()
        outcome = self.credmgr("login", "lax", "--paste", status=USAGE)
        self.assertIn('--no-browser', outcome.err)
