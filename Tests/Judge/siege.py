"""A small world to break: a provider that rotates refresh tokens, three accounts, and ways to kill programs.

A world can be restored, so the same command can be killed in it a thousand times.
"""

import collections
import copy
import os
import re
import shutil
import subprocess
import threading
import time

import oauth2_server
from browser import Browser
from oauth2_server import OAuth2Server
from program import ADA, BINARY, DESCRIPTORS, DONE, GRACE, LOGIN_NEEDED, TIMEOUT, Outcome

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.abspath(os.path.join(HERE, "../../Sources"))
PROVIDER = "oauth2-public"
OTHER, OTHER_TOKEN = "oauth2-post", "token-of-another-provider"
STRACE = "/usr/bin/strace"

# The system calls that can change the state of the disk or the provider.
WRITING = ("pwrite64", "fsync", "fdatasync", "ftruncate", "unlink", "rename", "renameat2", "link", "write", "sendto", "recvfrom")


def strict(condition, *words):
    if not condition:
        raise AssertionError(" ".join(str(word) for word in words))


def fault_points():
    """Returns every fault point in the sources, with its files."""
    names = collections.defaultdict(set)
    for folder, _, files in os.walk(SOURCES):
        for name in files:
            if name.endswith(".swift"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    for point in re.findall(r'FaultPoint\.reach\("([^"]+)"\)', file.read()):
                        names[point].add(name)
    return names


class World:
    """Everything that one worker needs, without sharing anything."""

    def __init__(self, folder, **options):
        self.folder = folder
        self.home = os.path.join(folder, "home")
        self.saved = os.path.join(folder, "saved")
        self.passphrase = os.path.join(folder, "passphrase")
        os.makedirs(folder, exist_ok=True)
        self.service = OAuth2Server(**options)
        self.service.__enter__()
        self.environment = {
            "PATH": os.path.dirname(BINARY) + ":/usr/bin:/bin", "HOME": folder, "CREDMGR_HOME": self.home,
            "BROWSER": os.path.join(HERE, "browser.py"), "LANG": "C.UTF-8",
            "CREDMGR_PASSPHRASE_FILE": self.passphrase, "CREDMGR_CHEAP_PASSPHRASES": "1",
        }
        with open(self.passphrase, "w", encoding="utf-8", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
            file.write("a passphrase of some words")

    def close(self):
        self.service.stop()
        strict(not self.service.faults, self.service.faults)

    # Programs.
    def start(self, *arguments, stdin=subprocess.DEVNULL, binary=BINARY, **environment):
        return subprocess.Popen(
            [binary, *arguments], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**self.environment, **environment}, cwd=self.folder)

    def run(self, *arguments, stdin="", binary=BINARY, **environment):
        process = self.start(*arguments, stdin=subprocess.PIPE, binary=binary, **environment)
        try:
            out, err = process.communicate(stdin, TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise AssertionError(f"credmgr {' '.join(arguments)} does not end") from None
        return Outcome(process.returncode, out, err)

    def expect(self, *arguments, status=DONE, **options):
        outcome = self.run(*arguments, **options)
        strict(outcome.status == status, "credmgr", *arguments, "ended with", outcome.status, outcome.err)
        return outcome

    # The world's state.
    def people(self):
        """Adds two accounts whose tokens rotate, and one of another provider."""
        for name in (PROVIDER, OTHER):
            secret = os.path.join(self.folder, "secret")
            with open(secret, "w", encoding="utf-8") as file:
                file.write(oauth2_server.CLIENT_SECRET)
            client = oauth2_server.PUBLIC_CLIENT if name == PROVIDER else oauth2_server.POST_CLIENT
            self.expect("add-provider", os.path.join(DESCRIPTORS, name + ".yaml"), "--client-id", client,
                        "--set", f"port={self.service.port}",
                        *(("--client-secret-file", secret) if name == OTHER else ()))
        for account in (ADA, GRACE):
            process = self.login("--account", account)
            strict(end(process) == DONE, process.said)
        self.grace = self.expect("token", PROVIDER, "--account", GRACE).line
        self.expect("login", OTHER, "--account", ADA, "--with-token", stdin=OTHER_TOKEN)
        return self

    def save(self):
        shutil.rmtree(self.saved, ignore_errors=True)
        shutil.copytree(self.home, self.saved, symlinks=True)
        service = self.service
        self.kept = copy.deepcopy((service.tokens, service.codes)), service.families
        return self

    def restore(self):
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.copytree(self.saved, self.home, symlinks=True)
        with self.service.token_lock:
            (self.service.tokens, self.service.codes), self.service.families = copy.deepcopy(self.kept)[0], self.kept[1]
            self.service.counts.clear()
            self.service.exchanges.clear()

    # Logins that consent here, without another process.
    def login(self, *arguments, **environment):
        process = self.start("login", PROVIDER, "--no-browser", *arguments, **environment)
        self.consent(process)
        return process

    def consent(self, process):
        def follow():
            text = ""
            for line in iter(process.stderr.readline, ""):
                text += line
                found = re.search(r"^  (http://\S+)$", line)
                if found:
                    try:
                        Browser().open(found.group(1))
                    except OSError:
                        pass  # no process listens any more, because it was killed
            process.said = text

        process.said = ""
        process.follower = threading.Thread(target=follow, daemon=True)
        process.follower.start()

    # Conditions that must always hold.
    def assert_whole(self):
        """The vault is undamaged, and no other account has changed."""
        self.expect("vault", "verify")
        strict(self.expect("token", PROVIDER, "--account", GRACE).line == self.grace, "another account has changed")
        strict(self.expect("token", OTHER).line == OTHER_TOKEN, "another provider's account has changed")

    def works(self, *expected):
        """Whether the account can be refreshed. A lost answer must be reported in advance and as the reason."""
        told = self.expect("status", PROVIDER).err
        outcome = self.run("token", PROVIDER, "--account", ADA, "--refresh")
        if outcome.status == DONE:
            strict(self.service.accepts(outcome.line), "a token that the provider does not know")
            return True
        strict(outcome.status == LOGIN_NEEDED, "status", outcome.status, outcome.err)
        strict("interrupted" in told, "nobody told that the answer may be lost:", told)
        strict("interrupted" in outcome.err, "no reason is given:", outcome.err)
        return False


def end(process):
    """Waits for a killed or ended process, and for the readers of its output."""
    process.wait(TIMEOUT)
    if hasattr(process, "follower"):
        process.follower.join(TIMEOUT)
    for stream in (process.stdout, process.stderr, process.stdin):
        if stream:
            stream.close()
    return process.returncode


def kill_after(process, seconds):
    """Sends SIGKILL at this time; returns whether the process still existed."""
    deadline = time.monotonic() + seconds
    while process.poll() is None and (rest := deadline - time.monotonic()) > 0:
        time.sleep(min(rest, 0.002))
    alive = process.poll() is None
    if alive:
        process.kill()
    end(process)
    return alive and process.returncode == -9


# Commands.
def command(*words):
    """Starts the program with these words, in which parts of the world are filled in."""
    return lambda world, **environment: world.start(*(word.format(world=world) for word in words), **environment)


def login(world, **environment):
    return world.login("--account", ADA, **environment)


refresh = command("token", PROVIDER, "--account", ADA, "--refresh")


def strand_key_file(world):
    world.backup, world.backup_key = (os.path.join(world.folder, name) for name in ("backup", "backup.key"))
    key = os.path.join(world.home, "vault", "vault.key")
    world.expect("vault", "backup", world.backup)
    shutil.copy(key, world.backup_key)
    world.expect("vault", "rotate")
    older = os.path.join(world.folder, "older.key")
    shutil.copy(key, older)
    world.expect("vault", "rotate")
    os.rename(key, key + ".new")
    shutil.copy(older, key)


# Conditions after the death of each; these return whether something was lost (and reported).
def after_refresh(world):
    world.assert_whole()
    lost = not world.works()
    # Counted now, because the provider may have answered after the process died.
    strict(not lost or world.service.counts["granted:refresh_token"], "lost, and the provider had given nothing")
    return lost


def after_login(world):
    """The old or the new credential works. A token from the provider is stored, or its loss is reported."""
    granted = world.service.counts["granted:authorization_code"]
    newest = world.service.tokens[-1].access_token
    world.assert_whole()
    stored = world.expect("token", PROVIDER, "--account", ADA)
    lost = bool(granted) and stored.line != newest
    if lost:
        told = world.expect("status", PROVIDER).err
        strict("login" in told and "interrupted" in told, "nobody told of the login:", told)
        # The next login uses what was saved before the process died, without asking the user.
        opened = len(world.service.requests("/authorize", "GET"))
        process = login(world)
        strict(end(process) == DONE, process.said)
        if len(world.service.requests("/authorize", "GET")) == opened:
            strict(world.expect("token", PROVIDER, "--account", ADA).line == newest, "another token was kept")
            lost = False
    strict(world.works(), "the account does not work after a login that was killed")
    return lost


def after_logout(world):
    """The account works or was removed; credmgr does not silently return a token that may be revoked."""
    world.assert_whole()
    outcome = world.run("token", PROVIDER, "--account", ADA)
    if outcome.status == DONE and not world.service.accepts(outcome.line):
        strict("logout" in outcome.err and "interrupted" in outcome.err, "a revoked token in silence:", outcome.err)
        world.expect("logout", PROVIDER, "--account", ADA)
        outcome = world.run("token", PROVIDER, "--account", ADA)
    if outcome.status == DONE:
        strict(world.works(), "it was not logged out, and does not work")
    else:
        strict(outcome.status == LOGIN_NEEDED, outcome.status, outcome.err)
        live = [token for token in world.service.tokens if token.family == 1 and not token.revoked]
        strict(not live, "it is forgotten here, and not revoked there")
    return False


def after_change_of_keys(world):
    """The vault opens with whichever keys are in force, and contains everything."""
    world.assert_whole()
    strict(world.works(), "the account does not work")
    return False


COMMANDS = {
    "refresh": (refresh, after_refresh), "login": (login, after_login),
    "logout": (command("logout", PROVIDER, "--account", ADA), after_logout),
} | {name: (command("vault", *words), after_change_of_keys) for name, words in {
    "rotate": ("rotate",), "protect": ("protect", "passphrase", "--passphrase-file", "{world.passphrase}"),
    # Restores a backup with another key file, after a killed rotation that did not move its key file.
    "restore": ("restore", "{world.backup}", "--key-file", "{world.backup_key}"),
    "unprotect": ("protect", "key-file", "--remove"), "protect again": ("protect", "key-file"),
}.items()}
