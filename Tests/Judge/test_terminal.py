"""A login at a real terminal: on a desktop, over SSH, and in a container."""

import contextlib
import os
import re
import signal
import socket
import subprocess

import oauth2_server
from browser import Browser
from oauth2_server import OAuth2Server
from program import ADA, BINARY, DONE, LOGIN_NEEDED, TIMEOUT, ProgramTest

from pyzbar import pyzbar
COLOUR = "\x1b[38;5;16;48;5;231m"
BLOCKS = "█▀▄"


def picture(lines):
    """Returns the pixels of half blocks, 4 by 4 for a module, as a camera would see them: blocks are black."""
    rows = []
    for line in lines:
        for half in ("█▀", "█▄"):
            pixels = bytes(0 if cell in half else 255 for cell in line for _ in range(4))
            rows += [pixels] * 4
    frame = 16
    width = len(rows[0]) + 2 * frame
    white = bytes([255]) * width
    rows = [white] * frame + [white[:frame] + row + white[:frame] for row in rows] + [white] * frame
    return b"".join(rows), width, len(rows)


class TerminalTest(ProgramTest):
    def terminal(self, *arguments, columns=80, **environment):
        values = {**self.environment, "TERM": "xterm-256color", **environment}
        present = {name: value for name, value in values.items() if value is not None}
        return super().terminal(*arguments, columns=columns, environment=present)

    def consent(self, service, terminal):
        code = terminal.wait_for(r"\b[B-Z]{4}-[B-Z]{4}\b").group(0)
        Browser().open(f"{service.base}/activate?user_code={code}")

    def address(self, terminal):
        return terminal.wait_for(r"  (https?://\S+)\r\n").group(1)


class Devices(TerminalTest):
    def shown(self, columns=80, **environment):
        service, provider = self.provided("oauth2-device", interval=1)
        terminal = self.terminal("login", provider, "--account", ADA, columns=columns,
                                 **{"BROWSER": None, **environment})
        self.consent(service, terminal)
        self.assertEqual(terminal.end(), 0, terminal.seen)
        return terminal.seen

    def decoded(self, lines):
        found = pyzbar.decode(picture(lines))
        self.assertEqual(len(found), 1, "\n".join(lines))
        return found[0].data.decode()

    def test_a_camera_reads_the_code_on_any_terminal(self):
        # In the terminal's own colors, a picture would be reversed on a light one.
        for environment in ({}, {"NO_COLOR": "1"}):
            with self.subTest(environment):
                self.new_home()
                seen = self.shown(**environment)
                lines = [line.removeprefix(COLOUR).removesuffix("\x1b[0m") for line in seen.split("\r\n")
                         if line.startswith(COLOUR)]
                self.assertEqual(self.decoded(lines), re.search(r"or open (\S+)", seen).group(1))

    def test_no_picture_where_it_cannot_be_shown(self):
        for environment in ({"columns": 30}, {"LANG": "C"}, {"TERM": "dumb"}):
            with self.subTest(environment):
                self.new_home()
                self.assertFalse(set(BLOCKS) & set(self.shown(**environment)))

    def test_the_time_that_is_left_is_counted_in_one_line(self):
        seen = self.shown()
        self.assertRegex(seen, r"\rcredmgr: waiting for the browser; \d+:\d\d left; Ctrl-C stops\x1b\[K")
        self.assertRegex(seen, r"\r\x1b\[Kcredmgr: logged in to")


class Places(TerminalTest):
    def test_a_warning_replaces_the_countdown(self):
        service = self.serve(OAuth2Server(interval=1))
        with open(os.path.join(os.path.dirname(__file__), "descriptors/oauth2-device.yaml"), encoding="utf-8") as file:
            text = file.read().replace("oauth2-device", "named").replace(
                "endpoints:", "account: login\nendpoints:\n  identity: http://127.0.0.1:{port}/resource")
        self.credmgr("add-provider", self.file("named.yaml", text), "--client-id", oauth2_server.PUBLIC_CLIENT,
                     "--set", f"port={service.port}")
        for account in ("private", "work"):
            terminal = self.terminal("login", "named", "--account", account, BROWSER=None)
            self.consent(service, terminal)
            self.assertEqual(terminal.end(), 0, terminal.seen)
        self.assertRegex(terminal.seen, r"Ctrl-C stops\x1b\[K\r\x1b\[Kcredmgr: warning: accounts \"private\"")

    def test_over_ssh_the_device_flow_is_preferred(self):
        service = self.serve(OAuth2Server(interval=1))
        text = open(os.path.join(os.path.dirname(__file__), "descriptors/oauth2-device.yaml"), encoding="utf-8").read()
        both = self.file("both.yaml", re.sub(r"(?m)^grant: .*", "grant: [authorization_code, device_code]", text)
                         .replace("oauth2-device", "both")
                         .replace("endpoints:", f"endpoints:\n  authorization: {service.base}/authorize"))
        self.credmgr("add-provider", both, "--client-id", oauth2_server.PUBLIC_CLIENT, "--set", f"port={service.port}")
        terminal = self.terminal("login", "both", "--account", ADA, BROWSER=None, DISPLAY=":0",
                                 SSH_CONNECTION="192.0.2.1 1 192.0.2.2 22")
        self.consent(service, terminal)
        self.assertEqual(terminal.end(), 0, terminal.seen)
        self.assertIn("this is an SSH session, so credmgr uses a device code", terminal.seen)

    def test_elsewhere_the_address_is_pasted(self):
        for place in ({"SSH_TTY": "/dev/pts/0"}, {}):
            with self.subTest(place):
                self.new_home()
                service, provider = self.provided("oauth2-public")
                terminal = self.terminal("login", provider, "--account", ADA, BROWSER=None, **place)
                address = self.address(terminal)
                terminal.wait_for("Ctrl-C stops")
                self.assertEqual(terminal.seen.count("credmgr: "), 3, terminal.seen)
                # On another machine, no process listens at the redirect's address.
                _, _, final = Browser(follows_loopback=False).open(address)
                terminal.type(final + "\n")
                self.assertEqual(terminal.end(), 0, terminal.seen)
                self.assertEqual(service.counts["granted:authorization_code"], 1)

    def test_a_user_can_paste_while_the_browser_is_open(self):
        service, provider = self.provided("oauth2-public")
        terminal = self.terminal("login", provider, "--account", ADA, BROWSER="true")
        address = self.address(terminal)
        terminal.wait_for("last address pasted here")
        _, _, final = Browser(follows_loopback=False).open(address)
        terminal.type(final + "\n")
        self.assertEqual(terminal.end(), 0, terminal.seen)

    def test_the_wait_ends_at_the_timeout(self):
        _, provider = self.provided("oauth2-public")
        terminal = self.terminal("login", provider, "--account", ADA, "--paste", "--timeout", "2s", BROWSER=None)
        terminal.type("rubbish\n")
        terminal.wait_for("(?s)paste that address here.*paste the whole address here")
        self.assertEqual(terminal.end(), LOGIN_NEEDED, terminal.seen)
        self.assertIn("the login timed out after 2 s", terminal.seen)

    def test_every_way_of_pasting_ends_with_the_timeout(self):
        service = self.serve(OAuth2Server())
        for redirect in ("https://elsewhere.example/callback", "ncipapp://success", "oob"):
            with self.subTest(redirect=redirect):
                text = (f"provider: pasted\ngrant: authorization_code\nredirect: {redirect}\nendpoints:\n"
                        f"  authorization: {service.base}/authorize\n  token: {service.base}/token\n"
                        "client: { authentication: none }\n")
                self.credmgr("add-provider", self.file("pasted.yaml", text), "--client-id", "x", "--replace")
                terminal = self.terminal("login", "pasted", "--timeout", "2s", BROWSER=None, DISPLAY=None)
                terminal.type("<rubbish>\n" if redirect != "oob" else "\n")
                terminal.wait_for("and press Enter")
                self.assertEqual(terminal.end(), LOGIN_NEEDED, terminal.seen)
                self.assertIn("the login timed out after 2 s", terminal.seen)
                self.assertIn('run "credmgr login pasted --timeout 2m"', terminal.seen)

    def test_a_browser_that_fails_later_is_reported(self):
        _, provider = self.provided("oauth2-public")
        script = self.file("browser", f"#!/bin/sh\nuntil [ -e {self.folder}/fail ]; do sleep 0.1; done\nexit 3\n", 0o700)
        terminal = self.terminal("login", provider, "--account", ADA, BROWSER=script)
        address = self.address(terminal)
        terminal.wait_for("last address pasted here")
        self.assertNotIn("failed with status", terminal.seen)
        self.file("fail", "")
        terminal.wait_for(r'browser" failed with status 3;\s+open\s+the\s+address\s+above')
        Browser().open(address)
        self.assertEqual(terminal.end(), 0, terminal.seen)

    def test_the_countdown_ends_with_the_login(self):
        _, provider = self.provided("oauth2-device", interval=1)
        terminal = self.terminal("login", provider, "--account", ADA, "--timeout", "3s", BROWSER=None)
        self.assertEqual(terminal.end(), LOGIN_NEEDED, terminal.seen)
        self.assertIn("waiting for at most 3 s", terminal.seen)
        self.assertRegex(terminal.seen, r"\b0:0[1-3] left")

    def test_a_browser_that_does_not_fork_delays_nothing(self):
        _, provider = self.provided("oauth2-public")
        script = self.file("browser", f"#!/bin/sh\necho $$ > {self.folder}/browser.pid\nexec sleep 300\n", 0o700)
        terminal = self.terminal("login", provider, "--account", ADA, BROWSER=script)
        address = self.address(terminal)
        terminal.wait_for("last address pasted here")
        Browser().open(address)
        self.assertEqual(terminal.end(), 0, terminal.seen)
        with open(os.path.join(self.folder, "browser.pid"), encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGTERM)

    def test_control_c_leaves_nothing_behind(self):
        _, provider = self.provided("oauth2-public")
        terminal = self.terminal("login", provider, "--account", ADA, BROWSER="true")
        port = int(re.search(r"127\.0\.0\.1%3A(\d+)", self.address(terminal)).group(1))
        terminal.wait_for("last address pasted here")
        socket.create_connection(("127.0.0.1", port)).close()
        terminal.interrupt()
        self.assertEqual(terminal.end(), 130, terminal.seen)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        self.credmgr("token", provider, status=LOGIN_NEEDED)
        self.assertEqual(self.credmgr("status", "--json").out.strip(), "[]")

    def test_control_c_twice_is_control_c(self):
        _, provider = self.provided("oauth2-public")
        for _ in range(5):
            terminal = self.terminal("login", provider, "--account", ADA, "--no-browser", BROWSER=None)
            terminal.wait_for("Ctrl-C stops")
            terminal.interrupt()
            with contextlib.suppress(ProcessLookupError):  # the program ended first
                terminal.interrupt()
            self.assertEqual(terminal.end(), 130, terminal.seen)
            self.assertIn("interrupted", terminal.seen)
            status = self.credmgr("status", "--json")
            self.assertEqual((status.out.strip(), status.err), ("[]", ""))

    def test_control_c_ends_a_paste(self):
        _, provider = self.provided("oauth2-public")
        for _ in range(5):
            terminal = self.terminal("login", provider, "--account", ADA, "--paste", BROWSER=None)
            terminal.wait_for("address in a browser")
            terminal.interrupt()
            self.assertEqual(terminal.end(), 130, terminal.seen)

    def test_the_hint_repeats_the_login(self):
        _, provider = self.provided("oauth2-public")
        terminal = self.terminal("login", provider, "--account", ADA, "--no-browser", BROWSER=None)
        address = self.address(terminal)
        terminal.wait_for("Ctrl-C stops")
        Browser(decision="deny").open(address)
        terminal.end()
        self.assertIn(f'"credmgr login {provider} --account {ADA} --no-browser"', terminal.seen)


class Words(TerminalTest):
    """The messages that a user reads besides the result, at 80 columns."""

    WRONG = (
        ("header", "githb"), ("token", "githb"), ("tokn", "github"), ("login", "github", "--no-browsr"), ("refresh", "linkdin"),
        ("add-provider", "github"), ("add-provider", "oclc", "--client-id", "a"), ("login", "github", "--timeout", "soon"),
        ("vault", "verify"), ("vault", "restore", "nowhere"), ("git-setup", "--local"), ("logout", "github", "--account", "x" * 90),
        ("logout", "github", "--account", "a name with many words in it, more than would fit into one line of any terminal"),
        ("add-provider", "broken.yaml"), ("simulate", "githb"), ("simulate", "github", "--fault", "non"),
    )

    def test_sentences_wrap_between_words_and_commands_do_not_wrap(self):
        self.file("broken.yaml", "provider: broken\nendpoint:\n  token: http://example.org/a\n")
        for arguments in self.WRONG:
            for look in ({"TERM": "dumb"}, {"NO_COLOR": "1"}, {}):
                with self.subTest(arguments=arguments, look=look):
                    piped = subprocess.run([BINARY, *arguments], env=self.environment, cwd=self.folder,
                                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)
                    terminal = self.terminal(*arguments, **look)
                    self.assertEqual(terminal.end(), piped.returncode, terminal.seen)
                    if look:
                        self.assertNotIn("\x1b", terminal.seen)
                    seen = re.sub(r"\x1b\[[0-9;]*m", "", terminal.seen).replace("\r\n", "\n")
                    for line in seen.splitlines():
                        # A command that is longer than a line gets its own line.
                        self.assertTrue(len(line) <= 80 or line.strip().startswith('"'), line)
                        if line.startswith("credmgr: ") and "broken.yaml:" not in line:
                            self.assertEqual(line.count('"') % 2, 0, seen)
                    self.assertEqual(re.sub(r"\n {2,}(?=[^ ^])", " ", seen), re.sub(r"\n {2,}(?=[^ ^])", " ", piped.stderr))


    def test_a_correct_descriptor(self):
        text = "provider: good\ngrant: client_credentials\nendpoints: { token: https://a.example/t }\n"
        path = os.path.basename(self.file("good.yaml", text))
        terminal = self.terminal("check", path, NO_COLOR="1")
        self.assertEqual(terminal.end(), DONE)
        self.assertEqual(terminal.seen, f'credmgr: found no errors in "{path}"\r\n')
        piped = self.credmgr("check", path)
        self.assertEqual((piped.out, piped.err), ("", ""))
        # A warning is not silence.
        self.file("good.yaml", text + 'scope: { default: a b, separator: "," }\n')
        terminal = self.terminal("check", path, NO_COLOR="1")
        self.assertEqual(terminal.end(), DONE)
        self.assertNotIn("found no errors", terminal.seen)


class Lists(TerminalTest):
    """The list of providers is a table at a terminal, and lines for other programs."""

    def listed(self, columns, *arguments):
        terminal = self.terminal("providers", *arguments, columns=columns, NO_COLOR="1")
        self.assertEqual(terminal.end(), 0, terminal.seen)
        return terminal.seen.replace("\r", "").splitlines()

    def test_the_list_of_providers(self):
        for columns in (80, 100, 160):
            with self.subTest(columns=columns):
                lines = self.listed(columns)
                self.assertLessEqual(max(map(len, lines)), columns)
                self.assertRegex(lines[0], r"^    PROVIDER +TITLE +KIND +TO BEGIN +VERIFIED$")
                self.assertEqual(lines[1], "  ai")
                self.assertLess(lines.index("  forge"), lines.index("  other"))
                self.assertTrue([line for line in lines if re.match(
                    r"^    github +GitHub +OAuth, API key +client or API (key|…) +20\d\d-\d\d$", line)], lines)

    def test_a_search(self):
        lines = self.listed(80, "--search", "CLOUDFLARE")
        self.assertEqual([line.split() for line in lines[1:]][0], ["cloud"])
        self.assertIn("    cloudflare ", lines[2])

    def test_lines_for_other_programs(self):
        lines = self.credmgr("providers").out.splitlines()
        [github] = [line for line in lines if line.startswith("  github ")]
        self.assertRegex(github, r"GitHub +OAuth, API key +client or API key +forge +documentation 20\d\d-\d\d$")
