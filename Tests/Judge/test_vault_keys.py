"""Opening the vault by a user at a terminal, the kernel's keyring, and a real gnome-keyring-daemon."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from program import ADA, BINARY, DONE, LOCKED, USAGE, ProgramTest, brief, text_of
from session_keyring import SessionKeyring

PASSPHRASE = "correct horse battery staple"

STRACE = "/usr/bin/strace"

# System calls of x86-64 and aarch64 (linux/unistd.h): add_key, request_key, keyctl.
KEYRING_CALLS = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}


class VaultTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.service, self.provider = self.logged_in()
        self.token = self.credmgr("token", self.provider).line
        self.passphrase = self.file("passphrase", PASSPHRASE + "\n")
        self.vault = os.path.join(self.environment["CREDMGR_HOME"], "vault")

    def with_passphrase(self):
        return {"CREDMGR_PASSPHRASE_FILE": self.passphrase}

    def protect(self):
        """Makes the passphrase the only way to open the vault."""
        self.credmgr("vault", "protect", "passphrase", environment=self.with_passphrase())
        self.credmgr("vault", "protect", "key-file", "--remove")
        self.assertEqual(sorted(os.listdir(self.vault)), ["vault.db", "vault.log"])


class Terminal(VaultTest):
    """A user at a terminal that no other process uses."""

    def at_terminal(self, *arguments, keys):
        """Types one of `keys` at each prompt; returns the exit status, standard output, and all terminal output."""
        keys, answered = list(keys), 0
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            person = self.terminal(*arguments, stdout=output)
            while keys and person.read(0.1):
                if len(person.seen) > answered and re.search(r"(?m)^(?!credmgr: )[^\n:]+: \Z", person.seen):
                    answered = len(person.seen)
                    person.type(keys.pop(0))
            status = person.end()
            output.seek(0)
            self.assertNotIn(PASSPHRASE, person.seen, "the terminal shows what is typed")
            return status, output.read(), person.seen

    def test_removing_the_key_file_asks(self):
        self.credmgr("vault", "protect", "passphrase", environment=self.with_passphrase())
        person = self.terminal("vault", "protect", "key-file", "--remove")
        person.wait_for(r"Delete it\? \[y/N\] ")
        person.type("n\r")
        self.assertEqual(person.end(), USAGE)
        self.assertIn("credmgr vault backup FILE", person.seen)
        self.assertIn("vault.key", os.listdir(self.vault))

    def test_the_status_without_the_key_file(self):
        """The hint names the command that still opens the vault, not the status itself."""
        self.credmgr("vault", "protect", "passphrase", environment=self.with_passphrase())
        os.remove(os.path.join(self.vault, "vault.key"))
        outcome = self.run_program("vault", "status")
        self.assertEqual(outcome.status, LOCKED)
        self.assertIn('hint: restore the key file, or run "credmgr vault unlock" to use the passphrase\n', outcome.err)

    def test_the_status_without_any_way_to_open_the_vault(self):
        os.remove(os.path.join(self.vault, "vault.key"))
        outcome = self.run_program("vault", "status")
        self.assertEqual(outcome.status, LOCKED)
        self.assertIn("hint: restore the key file, or ", outcome.err)
        self.assertIn(" to start over\n", outcome.err)

    def test_the_passphrase_is_asked_without_echo(self):
        self.protect()
        status, out, shown = self.at_terminal("token", self.provider, keys=[PASSPHRASE + "\r"])
        self.assertEqual((status, out.strip()), (DONE, self.token), shown)
        self.assertEqual(shown.count("passphrase of the vault"), 1)

    def test_a_wrong_passphrase_prompts_again_twice(self):
        self.protect()
        status, out, shown = self.at_terminal("token", self.provider, keys=["wrong\r", PASSPHRASE + "\r"])
        self.assertEqual((status, out.strip()), (DONE, self.token), shown)
        self.assertEqual(shown.count("credmgr: wrong passphrase"), 1)
        status, out, shown = self.at_terminal("token", self.provider, keys=["wrong\r"] * 9)
        self.assertEqual((status, out), (LOCKED, ""))
        self.assertIn("credmgr: error: wrong passphrase", shown)
        self.assertEqual(shown.count("passphrase of the vault"), 3)

    def test_control_c_and_control_d(self):
        self.protect()
        status, _, shown = self.at_terminal("token", self.provider, keys=["abc\x03"])
        self.assertEqual(status, 130, shown)
        status, _, shown = self.at_terminal("token", self.provider, keys=["\x04"])
        self.assertEqual(status, LOCKED, shown)

    def test_input_during_a_passphrase_check_is_not_shown(self):
        # The check has to take a while.
        del self.environment["CREDMGR_CHEAP_PASSPHRASES"]
        self.protect()
        person = self.terminal("token", self.provider)
        person.wait_for("passphrase of the vault: ")
        person.type("wrong\r")
        # The line break shows that the passphrase was read; the check takes longer than this.
        person.wait_for("vault: \r?\n")
        person.type("typed ahead\r")
        person.wait_for("wrong passphrase")
        person.wait_for("(?s)vault: .*vault: ")
        person.type(PASSPHRASE + "\r")
        self.assertEqual(person.end(), DONE, person.seen)
        self.assertNotIn("typed ahead", person.seen)
        self.assertIn(self.token, person.seen)

    def test_control_c_during_a_passphrase_check(self):
        del self.environment["CREDMGR_CHEAP_PASSPHRASES"]
        self.protect()
        for arguments in (("token", self.provider), ("vault", "rotate", "--yes"),
                          ("vault", "export", "-")):
            for typed in ("wrong", PASSPHRASE):
                with self.subTest(arguments=arguments, typed=typed):
                    person = self.terminal(*arguments)
                    person.wait_for("passphrase of the vault: ")
                    person.type(typed + "\r")
                    person.wait_for("vault: \r?\n")
                    person.type("\x03")
                    self.assertEqual(person.end(), 130, person.seen)
                    self.assertIn("interrupted", person.seen)
        self.assertEqual(self.credmgr("token", self.provider, environment=self.with_passphrase()).line, self.token)

    def test_a_new_passphrase_is_typed_twice(self):
        status, _, shown = self.at_terminal(
            "vault", "protect", "passphrase",
            keys=["\r", PASSPHRASE + "\r", "something else\r", PASSPHRASE + "\r", PASSPHRASE + "\r"])
        self.assertEqual(status, DONE, shown)
        self.assertIn("the passphrase is empty", shown)
        self.assertIn("the passphrases do not match", shown)
        self.credmgr("vault", "protect", "key-file", "--remove")
        self.credmgr("vault", "verify", environment=self.with_passphrase())

    def test_a_weak_passphrase_causes_a_warning(self):
        status, _, shown = self.at_terminal("vault", "protect", "passphrase", keys=["a\r", "a\r"])
        self.assertEqual(status, DONE, shown)
        self.assertIn("warning: passphrases of fewer than 8 characters are easy to guess", shown)

    def test_a_rotation_asks_and_keeps_the_key_of_a_backup(self):
        backup = os.path.join(self.folder, "backup")
        self.credmgr("vault", "backup", backup)
        for answer, expected in (("n", USAGE), ("y", DONE)):
            person = self.terminal("vault", "rotate")
            person.wait_for(r"Create a new key\? \[y/N\]")
            person.type(answer + "\r")
            self.assertEqual(person.end(), expected, person.seen)
        self.credmgr("vault", "rotate")
        self.assertIn("restored the vault from", self.credmgr("vault", "restore", backup).err)
        self.assertEqual(self.credmgr("token", self.provider).line, self.token)

    def test_a_refresh_does_not_ask_a_second_time(self):
        self.service.lifetime = 3600
        self.protect()
        status, out, shown = self.at_terminal("token", self.provider, "--refresh", keys=[PASSPHRASE + "\r"] * 3)
        self.assertEqual(status, DONE, shown)
        self.assertTrue(self.service.accepts(out.strip()))
        self.assertNotEqual(out.strip(), self.token)
        self.assertEqual(shown.count("passphrase of the vault"), 1)

    def test_started_programs_get_no_keys(self):
        self.service.refreshed_lifetime = brief()
        self.credmgr("token", self.provider, "--refresh")
        self.protect()
        self.expire()
        outcome = self.run_program(
            "exec", f"{self.provider}=TOKEN", "--", "sh", "-c", "ls -l /proc/self/fd; env",
            environment=self.with_passphrase())
        self.assertEqual(self.service.counts["granted:refresh_token"], 2)
        self.assertIn("TOKEN=", outcome.out)
        self.assertNotIn("memfd", outcome.out)

    def test_one_process_prompts_at_a_time(self):
        self.protect()
        script = self.file("both", f"{BINARY} token {self.provider} & {BINARY} token {self.provider}; wait")
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            person = self.terminal(script, binary="/bin/sh", stdout=output)
            for number in (1, 2):
                person.wait_for("(?s)" + ".*".join(["passphrase of the vault: "] * number))
                person.wait_until_quiet()
                self.assertEqual(person.seen.count("passphrase of the vault"), number, "two ask at once")
                person.type(PASSPHRASE + "\r")
            self.assertEqual(person.end(), DONE)
            output.seek(0)
            self.assertEqual(output.read().split(), [self.token] * 2, person.seen)


class KernelKeyring(VaultTest):
    def setUp(self):
        super().setUp()
        self.protect()

    def unlock(self, *arguments, **options):
        return self.run_program("vault", "unlock", *arguments, environment=self.with_passphrase(), **options)

    def test_unlock_and_lock(self):
        outcome = self.unlock("--for", "1h")
        if "keeps no keys" in outcome.err:
            self.skipTest("the kernel keeps no keys here")
        self.addCleanup(self.run_program, "vault", "lock")
        self.assertRegex(outcome.err, r"is unlocked for \d")
        self.assertEqual(self.credmgr("token", self.provider).line, self.token)
        self.assertIn("unlocked", self.credmgr("vault", "status").out)
        self.credmgr("vault", "verify")
        # The kernel keeps a new key as long as it would have kept the old one.
        self.credmgr("vault", "rotate", environment=self.with_passphrase())
        self.assertEqual(self.credmgr("token", self.provider).line, self.token)
        self.assertIn("is locked", self.credmgr("vault", "lock").err)
        self.credmgr("token", self.provider, status=LOCKED, stdin="")
        self.assertIn("already locked", self.credmgr("vault", "lock").err)
        self.assertNotIn("unlocked", self.credmgr("vault", "status").out)

    def test_the_status_of_an_unlocked_vault_without_its_key_file(self):
        self.credmgr("vault", "protect", "key-file", environment=self.with_passphrase())
        os.remove(os.path.join(self.vault, "vault.key"))
        outcome = self.unlock("--for", "1h")
        if "keeps no keys" in outcome.err:
            self.skipTest("the kernel keeps no keys here")
        self.addCleanup(self.run_program, "vault", "lock")
        outcome = self.credmgr("vault", "status")
        self.assertIn("unlocked", outcome.out)
        self.assertRegex(outcome.err, r"^credmgr: warning: the key file .* cannot open the vault; the passphrase can\n$")

    def test_a_session_whose_keyring_was_revoked(self):
        machine = os.uname().machine
        if machine not in KEYRING_CALLS:
            self.skipTest(f"the system calls of {machine} are not known here")
        script = self.file("revoked", REVOKER.format(keyctl=KEYRING_CALLS[machine][2]))

        def inside(*arguments, **options):
            return self.run_program(script, BINARY, *arguments, binary=shutil.which("python3"), **options)

        outcome = inside("vault", "unlock", "--for", "1h", environment=self.with_passphrase())
        if "does not store keys" in outcome.err:
            self.skipTest("the kernel keeps no keys here")
        self.assertEqual(outcome.status, DONE, outcome.err)
        self.addCleanup(self.run_program, "vault", "lock")
        self.assertNotRegex(text_of("/proc/keys"), r" perm .* user +credmgr:")
        self.assertEqual(self.credmgr("token", self.provider).line, self.token)
        self.assertEqual(inside("token", self.provider).line, self.token)
        self.assertIn("is locked", inside("vault", "lock").err)
        self.credmgr("token", self.provider, status=LOCKED, stdin="")

    def test_the_vault_locks_when_the_time_ends(self):
        outcome = self.unlock("--for", "1s")
        if "keeps no keys" in outcome.err:
            self.skipTest("the kernel keeps no keys here")
        self.wait_until(lambda: self.run_program("token", self.provider).status == LOCKED)

    def test_a_kernel_that_refuses(self):
        machine = os.uname().machine
        if machine not in KEYRING_CALLS:
            self.skipTest(f"the system calls of {machine} are not known here")
        script = self.file("without-keyring", FORBIDDER.format(calls=KEYRING_CALLS[machine]))
        outcome = self.run_program(
            script, BINARY, "vault", "unlock", binary=shutil.which("python3"), environment=self.with_passphrase())
        self.assertEqual(outcome.status, LOCKED)
        self.assertIn("the kernel does not store keys here (error 1)", outcome.err)
        outcome = self.run_program(
            script, BINARY, "token", self.provider, binary=shutil.which("python3"), environment=self.with_passphrase())
        self.assertEqual((outcome.status, outcome.line), (DONE, self.token))


# Joins a new session keyring (keyctl(2)) and revokes it, as some logins leave it, and runs the command.
REVOKER = '''
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall({keyctl}, 1, None) > 0:
    libc.syscall({keyctl}, 3, ctypes.c_long(-3))
os.execv(sys.argv[1], sys.argv[1:])
'''

# Forbids the system calls (seccomp(2)), as containers do, and runs the command.
FORBIDDER = '''
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
code = struct.pack("=HBBI", 0x20, 0, 0, 0)
for call in {calls}:
    code += struct.pack("=HBBI", 0x15, 0, 1, call) + struct.pack("=HBBI", 0x06, 0, 0, 0x00050000 | 1)
code += struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)
buffer = ctypes.create_string_buffer(code)
program = struct.pack("@HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
'''


@unittest.skipUnless(SessionKeyring.is_possible(), "no gnome-keyring-daemon")
class SecretService(SessionKeyring, VaultTest):
    def setUp(self):
        super().setUp()
        self.start_keyring()

    def protect_by_service(self):
        self.credmgr("vault", "protect", "secret-service")
        self.credmgr("vault", "protect", "key-file", "--remove")
        self.assertEqual(sorted(os.listdir(self.vault)), ["vault.db", "vault.log"])

    def items(self):
        answer = self.on_bus(
            "org.freedesktop.secrets", "/org/freedesktop/secrets/collection/login",
            "org.freedesktop.DBus.Properties.Get", "string:org.freedesktop.Secret.Collection", "string:Items")
        return answer.count("object path")

    def test_the_key_is_with_the_service(self):
        self.protect_by_service()
        self.assertEqual(self.items(), 1)
        self.assertEqual(self.credmgr("token", self.provider).line, self.token)
        self.assertTrue(self.service.accepts(self.credmgr("token", self.provider, "--refresh").line))
        self.credmgr("vault", "protect", "key-file")
        self.credmgr("vault", "protect", "secret-service", "--remove")
        self.assertEqual(self.items(), 0)
        self.credmgr("vault", "verify")

    def test_earlier_backups_open_with_the_earlier_item(self):
        self.protect_by_service()
        backup = os.path.join(self.folder, "backup")
        self.credmgr("vault", "backup", backup)
        for command in (("rotate",), ("protect", "secret-service")):
            outcome = self.credmgr("vault", *command)
            self.credmgr("vault", "verify")
            newest = os.path.join(self.folder, "newest")
            self.credmgr("vault", "backup", newest)
            for restored in (backup, newest):
                self.credmgr("vault", "restore", restored)
                self.assertEqual(self.credmgr("token", self.provider).line, self.token)
            os.remove(newest)
            if command == ("rotate",):
                removal = re.search(r'"(secret-tool clear .*)" to delete it', outcome.err).group(1).split()
        self.assertEqual(self.items(), 3)
        # The message names the item that opens the backup.
        self.run_program(*removal[1:], binary="/usr/bin/" + removal[0])
        self.assertEqual(self.items(), 2)
        self.credmgr("vault", "verify")
        self.credmgr("vault", "restore", backup, status=LOCKED)

    def test_a_locked_keyring_is_not_unlocked(self):
        self.protect_by_service()
        self.on_bus(
            "org.freedesktop.secrets", "/org/freedesktop/secrets", "org.freedesktop.Secret.Service.Lock",
            "array:objpath:/org/freedesktop/secrets/collection/login")
        self.assertIn("is locked", self.credmgr("token", self.provider, status=LOCKED).err)
        self.assertIn("is locked", self.credmgr("vault", "protect", "secret-service", status=LOCKED).err)
        # No consent to a token that could not be stored.
        self.service.exchanges.clear()
        for more in ((), ("--account", ADA), ("--with-token",)):
            self.assertIn("is locked", self.credmgr("login", self.provider, *more, stdin="t", status=LOCKED).err)
        self.assertEqual(self.service.exchanges, [])

    def test_a_service_that_does_not_answer_is_left_after_two_seconds(self):
        self.protect_by_service()
        self.keyring.send_signal(signal.SIGSTOP)
        started = time.monotonic()
        self.assertIn("did not answer", self.credmgr("token", self.provider, status=LOCKED).err)
        # D-Bus itself would wait for 25 seconds.
        self.assertLess(time.monotonic() - started, 20)
        self.keyring.send_signal(signal.SIGCONT)
        self.credmgr("token", self.provider)

    def test_without_a_bus_none_is_started(self):
        self.protect_by_service()
        for environment in (
                {"DBUS_SESSION_BUS_ADDRESS": "", "XDG_RUNTIME_DIR": ""},
                {"DBUS_SESSION_BUS_ADDRESS": "autolaunch:", "DISPLAY": ":77"},
                {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent/bus"}):
            outcome = self.credmgr("token", self.provider, status=LOCKED, environment=environment)
            self.assertIn("no session bus", outcome.err)
        buses = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
        self.assertNotIn("dbus-launch", buses)

    @unittest.skipUnless(os.access(STRACE, os.X_OK), "there is no strace")
    def test_a_failed_sync_removes_no_key(self):
        """One of the failures happens after the new key is in force."""
        self.protect_by_service()
        log = self.file("calls", "")
        for command in (("vault", "rotate"), ("vault", "protect", "secret-service")):
            for lasting in ("", "+"):
                when, was_reached = 1, True
                while was_reached:
                    outcome = self.run_program(
                        "-qq", "-o", log, "-e", "trace=fsync,fdatasync", "-e",
                        f"inject=fsync,fdatasync:error=EIO:when={when}{lasting}", BINARY, *command, binary=STRACE)
                    was_reached = "INJECTED" in text_of(log)
                    self.assertIn(outcome.status, (DONE, LOCKED), outcome.err)
                    self.assertEqual(self.credmgr("token", self.provider).line, self.token, f"{command} {when}{lasting}")
                    self.credmgr("vault", "verify")
                    when += 1
                self.assertGreater(when, 4)

    def test_the_passphrase_opens_the_vault_if_the_service_does_not(self):
        self.protect_by_service()
        self.credmgr("vault", "protect", "passphrase", environment=self.with_passphrase())
        outcome = self.credmgr("token", self.provider, environment={
            **self.with_passphrase(), "DBUS_SESSION_BUS_ADDRESS": "", "XDG_RUNTIME_DIR": ""})
        self.assertEqual(outcome.line, self.token)
