"""Runs the real programs as a user does, each test in its own home, which is searched for secrets afterwards."""

import base64
import contextlib
import functools
import http.client
import os
import re
import shutil
import stat
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse
from dataclasses import dataclass

import clock
from browser import TIMEOUT, Browser
from oauth2_server import CLIENT_SECRET, PUBLIC_CLIENT, OAuth2Server
from terminal import Terminal

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BINARY = os.path.abspath(os.environ.get("CREDMGR_BIN", os.path.join(HERE, "../../.build/debug/credmgr")))
DESCRIPTORS = os.path.join(HERE, "descriptors")
ADA, GRACE = "ada.lovelace@example.org", "grace-hopper"

# The documented exit statuses.
DONE, UNEXPECTED, USAGE, LOGIN_NEEDED, REFUSED, UNREACHABLE, LOCKED = range(7)


@functools.cache
def is_test_build():
    """Whether the program has fault points and a movable clock, which release builds lack."""
    with open(BINARY, "rb") as file:
        return b"CREDMGR_FAULT" in file.read()


def brief():
    """Returns the lifetime in seconds for something that expires in a test: longer than any pause between commands if
    the test can move the clock."""
    return 60 if is_test_build() else 1


def text_of(path):
    """Returns the text of a file in the project."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def installed(program, folder):
    """Returns a copy of the program in another directory, for another user or next to other files."""
    os.makedirs(folder, exist_ok=True)
    place = os.path.join(folder, program)
    try:
        os.link(os.path.join(os.path.dirname(BINARY), program), place)
    except OSError:  # the directory is on another disk
        shutil.copy(os.path.join(os.path.dirname(BINARY), program), place)
    return place


@dataclass
class Outcome:
    status: int
    out: str
    err: str

    @property
    def line(self):
        """Returns standard output without its single line break."""
        return self.out.removesuffix("\n")


class Running:
    """A running program, whose standard error is read while it runs."""

    def __init__(self, process, finished):
        self.process = process
        self.err = ""
        self._ended = False
        self._finished = finished
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in iter(self.process.stderr.readline, ""):
            with self._changed:
                self.err += line
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for(self, pattern, timeout=TIMEOUT):
        """Returns the first match of `pattern` in standard error as soon as it appears."""
        with self._changed:
            self._changed.wait_for(
                lambda: re.search(pattern, self.err) or self._ended, timeout)
            found = re.search(pattern, self.err)
        if found is None:
            self.process.kill()
            raise AssertionError(f"{pattern!r} never came; standard error was:\n{self.err}")
        return found

    def address(self):
        """Returns the address that the user should open."""
        return self.wait_for(r"https?://\S+").group(0).rstrip(".,)")

    def end(self, text=""):
        """Writes `text` to standard input, closes it, and waits for the end."""
        if self.process.stdin:
            try:
                self.process.stdin.write(text)
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        out = self.process.stdout.read()
        self.process.wait(TIMEOUT)
        self._reader.join(TIMEOUT)
        self.process.stdout.close()
        self.process.stderr.close()
        return self._finished(Outcome(self.process.returncode, out, self.err))


class ProgramTest(unittest.TestCase):
    """Checks afterwards that no secret of a server is on standard error or readable in the home."""

    # Account names that no file may contain.
    accounts = ADA, GRACE
    # The shipped descriptors that a test needs, and a program that finds no others: a test build takes 0.1 s to read
    # all of them, which the doctor does each time.
    shipped = None
    binary = BINARY

    @classmethod
    def setUpClass(cls):
        if cls.shipped is not None:
            prefix = tempfile.mkdtemp(prefix="credmgr-judge-")
            cls.addClassCleanup(shutil.rmtree, prefix)
            os.chmod(prefix, 0o755)
            cls.binary = installed("credmgr", os.path.join(prefix, "bin"))
            installed("credmgr-online", os.path.join(prefix, "libexec/credmgr"))
            os.makedirs(os.path.join(prefix, "share/credmgr/providers"))
            for name in cls.shipped:
                shutil.copy(os.path.join(ROOT, "providers", name + ".yaml"), os.path.join(prefix, "share/credmgr/providers"))

    def setUp(self):
        if not os.access(BINARY, os.X_OK):
            self.fail(f"there is no {BINARY}")
        self.folder = tempfile.mkdtemp(prefix="credmgr-judge-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.errors = []
        self.services = []
        self.environment = {
            "PATH": os.path.dirname(self.binary) + ":/usr/local/bin:/usr/bin:/bin",
            "HOME": self.folder,
            "BROWSER": self.browser(),
            "CREDMGR_CHEAP_PASSPHRASES": "1",
            "GIT_CONFIG_GLOBAL": os.path.join(self.folder, "gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "LANG": "C.UTF-8",
        }
        clock.offset = 0
        self.homes = []
        self.new_home()

    def browser(self):
        """Returns a $BROWSER program that passes the address to this process: another Python would be slow."""
        pipe = os.path.join(self.folder, "open-browser.pipe")
        os.mkfifo(pipe)
        program = self.file("open-browser", f"#!/bin/sh\necho \"$1\" >'{pipe}'\n", 0o700)

        def follow():
            # Opened for reading and writing, the pipe never ends while no process writes.
            with open(os.open(pipe, os.O_RDWR), encoding="utf-8") as addresses:
                while address := addresses.readline().strip():
                    # The waiting process may have ended.
                    with contextlib.suppress(OSError, http.client.HTTPException):
                        Browser(authorities=self.environment.get("SSL_CERT_FILE")).open(address)

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()

        def end():
            with open(os.open(pipe, os.O_RDWR), "w", encoding="utf-8") as addresses:
                addresses.write("\n")
                addresses.flush()
                thread.join(TIMEOUT)

        self.addCleanup(end)
        return program

    def new_home(self):
        """Gives credmgr a new empty home from here on, as on another machine."""
        self.homes.append(os.path.join(self.folder, f"home-{len(self.homes)}"))
        self.environment["CREDMGR_HOME"] = self.homes[-1]

    def later(self, seconds):
        """Lets time pass for the programs and our servers. Only a release build really waits."""
        if not is_test_build():
            time.sleep(seconds)
            return
        clock.offset += seconds
        self.environment["CREDMGR_CLOCK_OFFSET"] = str(clock.offset)

    def expire(self):
        """Lets anything with a lifetime of `brief()` seconds expire; some times are in whole seconds."""
        self.later(brief() + 2)

    def wait_until(self, condition):
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it never came about")
            time.sleep(0.005)

    def tearDown(self):
        for service in self.services:
            self.assertEqual(service.faults, [], "the judge's own server failed")
        secrets = set().union(*(service.secrets for service in self.services)) if self.services else set()
        for text in self.errors:
            for secret in secrets:
                if secret in text:
                    self.fail(f"standard error shows the secret {secret}:\n{text}")
        for home in self.homes:
            self.assert_nowhere_in(home, secrets | set(self.accounts))

    # Servers.
    def serve(self, service):
        """Runs `service` until the end of the test, then searches for its secrets."""
        self.services.append(service)
        self.enterContext(service)
        return service

    def copied_programs(self):
        """Returns a directory with the programs for another user."""
        folder = os.path.join(self.folder, "programs")
        for name in ("credmgr", "credmgr-online"):
            installed(name, folder)
        return folder

    def provided(self, name="oauth2-public", client=PUBLIC_CLIENT, **options):
        """Returns an OAuth 2.0 server with these options and its provider's id."""
        service = self.serve(OAuth2Server(**options))
        return service, self.add(name, service, client, "" if client == PUBLIC_CLIENT else CLIENT_SECRET)

    def logged_in(self, **options):
        """As `provided`, with an account."""
        service, provider = self.provided(**options)
        self.credmgr("login", provider, "--account", ADA)
        return service, provider

    # Programs.
    def start(self, *arguments, stdin=True, binary=None, environment=None, cwd=None):
        process = subprocess.Popen(
            [binary or self.binary, *arguments], stdin=subprocess.PIPE if stdin else subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env={**self.environment, **(environment or {})},
            cwd=cwd or self.folder,
        )
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return Running(process, self.finished)

    def simulated(self, source, *options):
        """Starts a simulator; returns what it printed, by name."""
        running = self.start("simulate", source, *options)
        said = dict(line.rstrip("\n").rsplit(" ", 1) for line in iter(running.process.stdout.readline, "ready\n"))
        self.addCleanup(running.process.wait)
        self.addCleanup(running.process.terminate)
        return said

    def terminal(self, *arguments, environment=None, binary=None, **options):
        """Runs a program with a user at its terminal."""
        terminal = Terminal([binary or self.binary, *arguments], environment or self.environment, self.folder, **options)
        self.addCleanup(lambda: terminal.process.poll() is None and terminal.process.kill())
        self.addCleanup(lambda: self.errors.append(terminal.seen))
        return terminal

    def finished(self, outcome):
        self.errors.append(outcome.err)
        return outcome

    def run_program(self, *arguments, stdin="", **options):
        return self.start(*arguments, **options).end(stdin)

    def credmgr(self, *arguments, status=DONE, **options):
        """Runs `credmgr` and checks its exit status."""
        outcome = self.run_program(*arguments, **options)
        self.assertEqual(outcome.status, status, f"credmgr {' '.join(arguments)}\n{outcome.out}\n{outcome.err}")
        if status not in (DONE,):
            self.assertEqual(outcome.out, "", "standard output carries the result and nothing else")
            self.assertRegex(outcome.err, r"(?m)^credmgr: error: \S")
        return outcome

    def file(self, name, text, mode=0o600):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8", opener=lambda p, flags: os.open(p, flags, mode)) as file:
            file.write(text)
        return path

    def add(self, name, service, client_id, client_secret="", **values):
        """Adds `descriptors/<name>.yaml` for the port of `service`; returns the provider's id."""
        values = {"port": service.port, **values}
        # A test may serve the same provider again, on another port.
        arguments = ["add-provider", os.path.join(DESCRIPTORS, name + ".yaml"), "--client-id", client_id, "--replace"]
        if client_secret:
            arguments += ["--client-secret-file", self.file("client-secret", client_secret + "\n")]
        for key, value in values.items():
            arguments += ["--set", f"{key}={value}"]
        self.credmgr(*arguments)
        return name

    def login_by_paste(self, *arguments):
        """Logs in as a user who opens the printed address and pastes the browser's final address."""
        running = self.start("login", *arguments, "--paste", "--no-browser")
        _, _, final = Browser().open(running.address())
        return running.end(final + "\n")

    # Searching for secrets.
    def assert_nowhere_in(self, home, secrets):
        for folder, _, names in os.walk(home):
            for name in names:
                path = os.path.join(folder, name)
                if not stat.S_ISREG(os.lstat(path).st_mode):
                    continue
                with open(path, "rb") as file:
                    content = file.read()
                if content.startswith(b"SQLite format 3"):
                    self.assert_private(folder)
                for secret in secrets:
                    for kind, form in disguises(secret.encode()):
                        if form in content:
                            self.fail(f"{path} shows a secret or an account name, {kind}: {secret}")

    def assert_private(self, folder):
        """Checks that only the owner can access the vault's directory and its content."""
        for path in (folder, *(os.path.join(folder, name) for name in os.listdir(folder))):
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode) & 0o077, 0, f"{path} is open to others")


def disguises(secret):
    """Returns the forms in which `secret` could be found, with base64 at each of its three alignments."""
    yield "raw", secret
    yield "UTF-16", secret.decode().encode("utf-16-le")
    yield "hex", secret.hex().encode()
    yield "HEX", secret.hex().upper().encode()
    quoted = urllib.parse.quote(secret, safe="").encode()
    if quoted != secret:
        yield "percent-encoded", quoted
    for padding in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * padding + secret).rstrip(b"=")
            # The first and last characters also depend on the secret's neighbors.
            inner = text[(0, 2, 3)[padding]: -1]
            if len(inner) >= 8:
                yield "base64", inner
