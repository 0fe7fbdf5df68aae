"""Many simultaneous processes with one account: one refresh, one browser, and no refresh token used twice."""

import contextlib
import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import time

import oauth2_server
from oauth2_server import OAuth2Server
from program import ADA, BINARY, DONE, LOGIN_NEEDED, TIMEOUT, UNEXPECTED, ProgramTest, brief, is_test_build, text_of
MANY = 64
SEVERAL = 16
F_OFD_SETLK = 37  # fcntl(2); Python does not name it


class RaceTest(ProgramTest):
    def expired(self, **options):
        """Adds an account with an expired token at a provider that revokes the family if a token is used twice."""
        service, provider = self.logged_in(lifetime=brief(), **options)
        self.expire()
        return service, provider

    def many(self, count, *arguments, program=BINARY, question=None, **environment):
        return [
            subprocess.Popen([program, *arguments], stdin=self.opened(question), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env={**self.environment, **environment})
            for _ in range(count)
        ]

    def opened(self, path):
        """Opens the file again, so that each process reads it from its start."""
        if path is None:
            return subprocess.DEVNULL
        file = open(path, "rb")
        self.addCleanup(file.close)
        return file

    def ends(self, processes):
        """Returns the statuses, outputs and errors of all processes, in order."""
        results = []
        for process in processes:
            out, err = process.communicate(timeout=TIMEOUT)
            self.errors.append(err)
            results.append((process.returncode, out.strip(), err))
        return results

    def hold(self):
        """Locks all accounts (docs/vault-format.md)."""
        self.held = open(os.path.join(self.homes[-1], "vault", "vault.db"), "r+b")
        self.addCleanup(self.held.close)
        self.lock(fcntl.F_WRLCK)

    def release(self):
        self.lock(fcntl.F_UNLCK)

    def lock(self, kind):
        fcntl.fcntl(self.held, F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, 1 << 62, 0, 0))

    def is_waiting(self, process, before=1):
        """Whether the process has opened the vault once more than `before`, which it does for the lock."""
        folder = f"/proc/{process.pid}/fd"
        opened = 0
        try:
            for name in os.listdir(folder):
                with contextlib.suppress(FileNotFoundError):
                    opened += os.readlink(os.path.join(folder, name)).endswith("/vault.db")
        except PermissionError:
            # Only root can inspect a program that protects itself.
            return waits_for_the_lock(process.pid)
        return opened > before

    def assert_one_token(self, results, service):
        self.assertEqual({status for status, _, _ in results}, {DONE}, results)
        tokens = {out for _, out, _ in results}
        self.assertEqual(len(tokens), 1)
        self.assertTrue(service.accepts(tokens.pop()))
        self.assertEqual(service.counts["reuse"], 0)


class Refreshes(RaceTest):
    def test_one_refresh_for_sixty_four(self):
        service, provider = self.expired()
        self.assert_one_token(self.ends(self.many(MANY, "token", provider)), service)
        self.assertEqual(service.counts["token:refresh_token"], 1)

    def test_a_provider_that_takes_three_seconds(self):
        service, provider = self.expired(refresh_delay=3)
        began = time.monotonic()
        self.assert_one_token(self.ends(self.many(SEVERAL, "token", provider)), service)
        self.assertEqual(service.counts["token:refresh_token"], 1)
        self.assertLess(time.monotonic() - began, 60, "one waits for all, and not each for the one before")

    def test_every_command_takes_part(self):
        service, provider = self.expired()
        self.hold()
        processes = [process for command in (
            ("token", provider), ("header", provider), ("refresh", provider), ("token", provider, "--refresh"),
            ("request", provider, service.base + "/resource"), ("exec", f"{provider}=TOKEN", "--", "true"),
        ) for process in self.many(4, *command)]
        # A process that starts later and forces a refresh would get yet another token.
        self.wait_until(lambda: all(map(self.is_waiting, processes)))
        self.release()
        self.assertEqual({status for status, _, _ in self.ends(processes)}, {DONE})
        self.assertEqual(service.counts["token:refresh_token"], 1)

    def test_over_a_hundred_fetches(self):
        """Each process gets the new token, and those refused with the old one do not reject it."""
        service = self.serve(OAuth2Server(lifetime=300))
        provider = self.add("git-host", service, oauth2_server.PUBLIC_CLIENT, git_port=1)
        self.credmgr("login", provider, "--account", ADA)
        old = self.credmgr("token", provider).line
        question = self.file("question", "protocol=http\nhost=127.0.0.1:1\n\n")
        self.later(301)

        def fetches(operation, path, count):
            return self.ends(self.many(count, "git-credential", operation, question=path))

        results = fetches("get", question, 120)
        self.assertEqual({status for status, _, _ in results}, {DONE})
        passwords = {re.search(r"(?m)^password=(.*)", out).group(1) for _, out, _ in results}
        self.assertEqual(len(passwords), 1)
        self.assertNotEqual(passwords, {old})
        self.assertEqual(service.counts["token:refresh_token"], 1)
        refused = self.file("refused", f"protocol=http\nhost=127.0.0.1:1\nusername=judge\npassword={old}\n\n")
        self.assertEqual({status for status, _, _ in fetches("erase", refused, 20)}, {DONE})
        self.assertEqual({self.credmgr("token", provider).line}, passwords)
        self.assertEqual((service.counts["token:refresh_token"], service.counts["reuse"]), (1, 0))

    def test_environments_that_differ(self):
        """A desktop, a cron job and a service share the vault and its lock, whatever their environments."""
        service, provider = self.expired(refresh_delay=0.5)
        folders = []
        for name in ("one", "two"):
            folders.append(os.path.join(self.folder, name))
            os.mkdir(folders[-1], 0o700)
        # The copy has the layout without CREDMGR_HOME, which would override all other variables.
        shutil.copytree(self.homes[-1], os.path.join(self.folder, "home"))
        home = os.path.join(self.folder, "home")
        shutil.copytree(os.path.join(home, "vault"), os.path.join(home, "data", "credmgr"))
        shutil.copytree(os.path.join(home, "config"), os.path.join(home, "configuration", "credmgr"))
        self.environment.pop("CREDMGR_HOME")
        self.environment |= {"HOME": home, "XDG_DATA_HOME": home + "/data", "XDG_CONFIG_HOME": home + "/configuration"}
        self.environment.pop("XDG_RUNTIME_DIR", None)
        processes = []
        for changes in ({}, {"XDG_RUNTIME_DIR": folders[0]}, {"XDG_RUNTIME_DIR": folders[1]}, {"TMPDIR": folders[0]}):
            processes += self.many(8, "token", provider, **changes)
        self.assert_one_token(self.ends(processes), service)
        self.assertEqual(service.counts["token:refresh_token"], 1)

    def test_removing_other_files_keeps_locks(self):
        """Removing any file that is not needed to read the vault, during a refresh, breaks no lock."""
        service, provider = self.expired(refresh_delay=1.5)
        first = self.many(8, "token", provider)
        self.wait_until(lambda: service.counts["token:refresh_token"] == 1)
        for folder, _, files in os.walk(self.homes[-1]):
            for name in files:
                if "lock" in name or os.path.getsize(os.path.join(folder, name)) == 0:
                    os.remove(os.path.join(folder, name))
        shutil.rmtree(os.path.join(self.homes[-1], "run"), ignore_errors=True)
        self.assert_one_token(self.ends(first + self.many(8, "token", provider)), service)
        self.assertEqual(service.counts["token:refresh_token"], 1)

    def test_the_holder_of_the_lock_dies_before_it_asks(self):
        if not is_test_build():
            self.skipTest("this program was built for use, and has no fault points")
        service, provider = self.expired()
        holder = self.many(1, "token", provider, CREDMGR_FAULT="refresh.noted=stop")
        self.wait_until(lambda: state(holder[0].pid) == "T")
        others = self.many(SEVERAL, "token", provider)
        self.wait_until(lambda: all(waits_for_the_lock(other.pid) for other in others))
        holder[0].kill()
        self.ends(holder)
        self.assert_one_token(self.ends(others), service)
        self.assertEqual(service.counts["token:refresh_token"], 1)

    def test_the_holder_of_the_lock_dies_while_the_provider_answers(self):
        """The answer is lost. One waiting process asks again, the others share its refusal, and each says why."""
        service, provider = self.expired(refresh_delay=TIMEOUT)
        holder = self.many(1, "token", provider)
        self.wait_until(lambda: service.counts["token:refresh_token"] == 1)
        others = self.many(SEVERAL, "token", provider)
        self.wait_until(lambda: all(map(self.is_waiting, others)))
        # Otherwise a waiting process could ask before the provider has used the token up.
        holder[0].send_signal(signal.SIGSTOP)
        self.wait_until(lambda: state(holder[0].pid) == "T")
        service.hurry.set()
        self.wait_until(lambda: service.counts["granted:refresh_token"] == 1)
        holder[0].kill()
        self.ends(holder)
        results = self.ends(others)
        self.assertEqual({status for status, _, _ in results}, {LOGIN_NEEDED}, results)
        for _, _, err in results:
            self.assertIn("interrupted", err)
        self.assertLessEqual(service.counts["token:refresh_token"], 3, "a refused token was sent again and again")
        self.credmgr("vault", "verify")
        self.credmgr("login", provider, "--account", ADA)
        self.assertNotIn("interrupted", self.credmgr("status", provider).err)

    def test_logout_and_login_in_between(self):
        service, provider = self.expired(refresh_delay=0.3)
        service.lifetime = 3600
        first = self.many(16, "token", provider)
        logout = self.many(1, "logout", provider, "--account", ADA)
        second = self.many(16, "token", provider)
        self.assertEqual(self.ends(logout)[0][0], DONE)
        login = self.many(1, "login", provider, "--account", ADA)
        third = self.many(16, "token", provider)
        self.assertEqual(self.ends(login)[0][0], DONE)
        for status, out, err in self.ends(first + second + third):
            self.assertIn(status, (DONE, LOGIN_NEEDED), err)
            self.assertTrue(status != DONE or service.find(out), "a token that the provider never gave")
        self.assertEqual(service.counts["reuse"], 0)
        self.assertTrue(service.accepts(self.credmgr("token", provider).line))
        self.credmgr("vault", "verify")
        self.assertNotIn("interrupted", self.credmgr("status", provider).err)


class Logins(RaceTest):
    def test_fifty_logins_open_one_browser(self):
        service, provider = self.provided()
        opened = os.path.join(self.folder, "opened")
        begun = os.path.join(self.folder, "begun")
        # All processes look before the consent, because a later one would start its own login. A login opens the vault
        # to read and to write before it looks for accounts.
        script = self.file("count", f'#!/bin/sh\necho "$1" >>{opened}\nuntil [ -e {begun} ]; do sleep 0.1; done\n'
                           f'exec {self.environment["BROWSER"]} "$1"\n', 0o700)
        processes = self.many(50, "login", provider, BROWSER=script)
        self.wait_until(lambda: all(self.is_waiting(process, before=2) for process in processes))
        self.file("begun", "")
        results = self.ends(processes)
        self.assertEqual({status for status, _, _ in results}, {DONE}, results)
        with open(opened, encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 1)
        self.assertEqual(service.counts["granted:authorization_code"], 1)
        self.assertTrue(service.accepts(self.credmgr("token", provider).line))

    def test_a_shell_that_runs_one_login_after_the_other(self):
        """The shell runs its last command in its own process, which is older than the first login."""
        service, provider = self.provided()
        login = f"{BINARY} login {provider} --account {ADA}"
        for script in (f"{login}; {login}", f"sh -c '{login}'; exec {login}"):
            service.counts.clear()
            process, = self.many(1, "-c", script, program="/bin/bash")
            self.assertEqual(self.ends([process])[0][0], DONE)
            self.assertEqual(service.counts["granted:authorization_code"], 2)


class Waiting(RaceTest):
    """Another process holds the account's lock indefinitely."""

    def setUp(self):
        super().setUp()
        self.service, self.provider = self.expired()
        self.hold()

    def at_a_terminal(self, *arguments):
        """Returns its status, its output at the terminal, and after how many seconds the output started and ended."""
        ours, theirs = pty.openpty()
        began = time.monotonic()
        process = subprocess.Popen([BINARY, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=theirs, env=self.environment)
        os.close(theirs)
        said = []
        try:
            while chunk := os.read(ours, 4096):
                said.append((time.monotonic() - began, chunk.decode()))
        except OSError:
            pass  # the other side closed the connection
        os.close(ours)
        process.communicate(timeout=TIMEOUT)
        return process.returncode, "".join(chunk for _, chunk in said), said[0][0], time.monotonic() - began

    def test_a_waiting_process_names_the_other_after_a_second_and_times_out(self):
        for command in ("token", "refresh"):
            with self.subTest(command):
                arguments = (command, self.provider, "--timeout", "3s") + (("--refresh",) if command == "token" else ())
                status, text, first, last = self.at_a_terminal(*arguments)
                self.assertEqual(status, UNEXPECTED)
                self.assertEqual(len(re.findall("(?m)^credmgr: waiting", text)), 1, text)
                self.assertRegex(text, f'waiting .*"{ADA}".*{self.provider}')
                # Without the option, it would take minutes.
                self.assertTrue(0.9 <= first < last and 2.9 <= last <= 30, (first, last))
                self.assertRegex(text, r"credmgr: error: timed out waiting for another process .*\s+credmgr: hint: \S")

    def test_a_waiting_login_also_names_the_other_process(self):
        status, text, _, last = self.at_a_terminal("login", self.provider, "--account", ADA, "--timeout", "3s")
        self.assertNotEqual(status, DONE)
        self.assertIn("waiting", text)
        self.assertTrue(2.9 <= last <= 30, last)

    def test_no_progress_without_a_terminal(self):
        outcome = self.run_program("token", self.provider, "--timeout", "2s")
        self.assertEqual(outcome.status, UNEXPECTED)
        self.assertNotIn("credmgr: waiting", outcome.err)

    def test_waiting_ends_when_the_lock_is_free(self):
        processes = self.many(8, "token", self.provider)
        self.wait_until(lambda: all(waits_for_the_lock(process.pid) for process in processes))
        self.release()
        self.assertEqual(len({out for _, out, _ in self.ends(processes)}), 1)
        self.assertEqual(self.service.counts["token:refresh_token"], 1)


def waits_for_the_lock(pid):
    """Whether a process has become the program with networking, and waits."""
    return text_of(f"/proc/{pid}/comm") == "credmgr-online\n" and state(pid) == "S"


def state(pid):
    return text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()[0]
