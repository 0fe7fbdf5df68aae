"""A bad vault causes an error message and exit 6, without requests to a provider, changes, or hanging."""

import contextlib
import hashlib
import os
import shutil
import sqlite3
import stat
import subprocess
import unittest

from program import ADA, BINARY, DESCRIPTORS, DONE, GRACE, LOCKED, TIMEOUT, ProgramTest
NOBODY = 65534


class BadInput(ProgramTest):
    """Uses two accounts, the first of which is the default."""

    def setUp(self):
        super().setUp()
        self.service, self.provider = self.provided()
        for account in (ADA, GRACE):
            self.credmgr("login", self.provider, "--account", account)
        self.tokens = {name: self.credmgr("token", self.provider, "--account", name).line for name in (ADA, GRACE)}
        self.home = self.homes[-1]
        self.folder_of_vault = os.path.join(self.home, "vault")
        self.db = os.path.join(self.folder_of_vault, "vault.db")
        self.key = os.path.join(self.folder_of_vault, "vault.key")
        self.saved = os.path.join(self.folder, "saved")
        shutil.copytree(self.home, self.saved)
        self.other = os.path.join(self.folder, "other")
        self.credmgr("add-provider", os.path.join(DESCRIPTORS, "oauth2-public.yaml"), "--client-id", "c", "--set",
                     f"port={self.service.port}", environment={"CREDMGR_HOME": self.other})

    def test_a_system_without_proc(self):
        hidden = ["-r", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$0" "$@"']
        if subprocess.run(["unshare", *hidden, "true"], capture_output=True, check=False).returncode != DONE:
            self.skipTest("no namespace of mounts can be made here")
        for arguments, expected in ((("token", self.provider), self.tokens[ADA] + "\n"),
                                    (("login", self.provider, "--account", GRACE), ""),
                                    (("request", self.provider, self.service.base + "/resource"), None)):
            outcome = self.run_program(*hidden, BINARY, *arguments, binary=shutil.which("unshare"))
            self.assertEqual(outcome.status, DONE, outcome.err)
            self.assertIn(outcome.out, (expected or outcome.out,))

    def restore(self):
        if os.path.islink(self.folder_of_vault):
            os.unlink(self.folder_of_vault)
        for name in (self.home, self.home + ".moved"):
            shutil.rmtree(name, ignore_errors=True)
        shutil.copytree(self.saved, self.home)

    def run_in_time(self, *arguments, stdin=""):
        done = subprocess.run([BINARY, *arguments], input=stdin, capture_output=True, text=True, timeout=TIMEOUT,
                              env=self.environment, cwd=self.folder, check=False)
        self.errors.append(done.stderr)
        return done

    def everything(self):
        """Returns the complete content of the home."""
        found = {}
        for folder, folders, files in os.walk(self.home):
            for name in (*folders, *files):
                path = os.path.join(folder, name)
                status = os.lstat(path)
                content = b""
                if stat.S_ISREG(status.st_mode):
                    with open(path, "rb") as file:
                        content = hashlib.sha256(file.read()).digest()
                found[path] = (status.st_mode, status.st_uid, content)
        return found

    COMMANDS = {
        "token": (), "token --refresh": (), "status": (), "vault verify": (), "vault status": (), "log": (),
        "refresh": (), "use": (GRACE,), "logout": (), "login": ("--timeout", "5s"), "vault rotate": (),
        "vault backup": ("copy",), "vault export": ("copy", "--plain", "--plain"), "header": (), "validate": (),
        "vault protect passphrase": ("--passphrase-file", "passphrase"), "exec": (),
    }

    def arguments(self, command):
        words, more = command.split(), list(self.COMMANDS[command])
        if words[0] in ("token", "refresh", "logout", "login", "header", "validate"):
            words[1:1] = [self.provider]
            more += ["--account", ADA]
        elif words[0] == "use":
            words.append(self.provider)
        elif words[0] == "exec":
            return ["exec", f"{self.provider}=TOKEN", "--", "true"]
        return words + more

    def refused(self, what, commands=None):
        self.file("passphrase", "a passphrase of some words")
        before = self.everything()
        self.service.exchanges.clear()
        for command in commands or self.COMMANDS:
            with self.subTest(what, command=command):
                try:
                    done = self.run_in_time(*self.arguments(command))
                except subprocess.TimeoutExpired:
                    self.fail("it hangs")
                self.assertEqual(done.returncode, LOCKED, done.stdout + done.stderr)
                self.assertRegex(done.stderr, r"(?m)^credmgr: error: \S")
                self.assertRegex(done.stderr, r"(?m)^credmgr: hint: \S")
                if command not in ("vault status", "log"):
                    self.assertEqual(done.stdout, "")
                self.assertEqual(self.everything(), before, "something was changed")
                self.assertFalse(os.path.exists(os.path.join(self.folder, "copy")))
        self.assertEqual(self.service.exchanges, [], "the provider was asked")

    def whole(self):
        self.credmgr("vault", "verify")
        for name, token in self.tokens.items():
            self.assertEqual(self.credmgr("token", self.provider, "--account", name).line, token)

    # Replacements for a file or a directory.
    def linked(self, path):
        os.rename(path, path + ".moved")
        os.symlink(path + ".moved", path)

    def piped(self, path):
        self.remove(path)
        os.mkfifo(path, 0o600)

    def folded(self, path):
        self.remove(path)
        os.mkdir(path, 0o700)

    def filed(self, path):
        self.remove(path)
        with open(path, "wb"):
            pass

    def remove(self, path):
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)

    def cut(self, path, size):
        with open(path, "r+b") as file:
            file.truncate(size)

    def alike(self, cases):
        for what, change in cases.items():
            self.restore()
            change()
            self.refused(what)
        self.restore()
        self.whole()

    def test_the_vault(self):
        self.alike({
            "group-readable": lambda: os.chmod(self.db, 0o640), "world-writable": lambda: os.chmod(self.db, 0o602),
            "a link": lambda: self.linked(self.db), "a pipe": lambda: self.piped(self.db),
            "a folder": lambda: self.folded(self.db), "empty": lambda: self.cut(self.db, 0),
            "half": lambda: self.cut(self.db, os.path.getsize(self.db) // 2),
            "of a newer format": lambda: self.write(self.db, 60, b"\0\0\0\x09"),
            "of another vault": lambda: shutil.copy(os.path.join(self.other, "vault/vault.db"), self.db),
        })

    def test_the_key_file(self):
        self.alike({
            "group-readable": lambda: os.chmod(self.key, 0o640), "a link": lambda: self.linked(self.key),
            "a pipe": lambda: self.piped(self.key), "a folder": lambda: self.folded(self.key),
            "gone": lambda: self.remove(self.key), "empty": lambda: self.cut(self.key, 0),
            "half": lambda: self.cut(self.key, os.path.getsize(self.key) // 2),
            "of another vault": lambda: shutil.copy(os.path.join(self.other, "vault/vault.key"), self.key),
        })

    def test_the_directory(self):
        self.alike({
            "group-readable": lambda: os.chmod(self.folder_of_vault, 0o750),
            "a link": lambda: self.linked(self.folder_of_vault), "a pipe": lambda: self.piped(self.folder_of_vault),
            "a file": lambda: self.filed(self.folder_of_vault),
        })

    def test_files_next_to_the_vault(self):
        for suffix in ("-journal", "-wal"):
            self.alike({
                suffix + " is a pipe": lambda: self.piped(self.db + suffix),
                suffix + " is a folder": lambda: self.folded(self.db + suffix),
                suffix + " is a link": lambda: os.symlink(self.key, self.db + suffix),
            })

    @unittest.skipUnless(os.geteuid() == 0, "only root can give files away")
    def test_of_another_user(self):
        self.alike({name: lambda path=path: os.chown(path, NOBODY, NOBODY) for name, path in (
            ("the vault", self.db), ("the key file", self.key), ("the directory", self.folder_of_vault))})

    def test_cut_within_its_last_page(self):
        size = os.path.getsize(self.db)
        for missing in (1, 2048, 4095, 4096, 8192):
            self.restore()
            self.cut(self.db, size - missing)
            self.refused(f"{missing} bytes are missing")

    def write(self, path, offset, content):
        with open(path, "r+b") as file:
            file.seek(offset)
            file.write(content)

    def sql(self, *statements):
        with contextlib.closing(sqlite3.connect(self.db)) as connection, connection:
            return [connection.execute(*statement).fetchall() for statement in statements]

    def rows(self):
        return [lookup for (lookup,) in self.sql(("SELECT lookup FROM record WHERE kind=1 ORDER BY lookup",))[0]]

    def test_a_damaged_record_affects_no_other(self):
        """If one record is altered or removed, the other account still works and does not replace it."""
        for change in ("UPDATE record SET sealed=zeroblob(length(sealed)) WHERE lookup=?", "DELETE FROM record WHERE lookup=?"):
            for row in self.rows():
                self.restore()
                self.sql((change, (row,)))
                outcomes = {name: self.run_in_time("token", self.provider, "--account", name) for name in (ADA, GRACE)}
                gone = [name for name, outcome in outcomes.items() if outcome.returncode != DONE]
                with self.subTest(change, gone=gone):
                    self.assertEqual(len(gone), 1)
                    name, = gone
                    there = GRACE if name == ADA else ADA
                    self.assertEqual(outcomes[there].stdout.strip(), self.tokens[there])
                    self.assertEqual(outcomes[name].returncode, LOCKED)
                    self.assertIn(f'the credential of "{name}" at "{self.provider}" is damaged', outcomes[name].stderr)
                    # Without a name, the command uses the default account or none.
                    outcome = self.run_in_time("token", self.provider)
                    self.assertEqual((outcome.returncode, outcome.stdout.strip()),
                                     (LOCKED, "") if name == ADA else (DONE, self.tokens[ADA]))
                    for arguments in (("status",), ("status", "--json"), ("vault", "verify")):
                        outcome = self.run_in_time(*arguments)
                        self.assertEqual(outcome.returncode, LOCKED, outcome.stdout)
                        self.assertIn(name, outcome.stdout + outcome.stderr)
                        self.assertTrue(arguments[0] == "vault" or there in outcome.stdout, outcome.stdout)
                    self.assertEqual(self.run_in_time("use", self.provider, there).returncode, DONE)
                    # Following the hint repairs it.
                    self.assertIn(f"credmgr login {self.provider} --account {name}", outcome.stderr)
                    self.credmgr("login", self.provider, "--account", name)
                    self.credmgr("vault", "verify")

    def test_a_missing_default_is_not_replaced(self):
        """Without the selection, and with one account damaged, the other one does not become the only one."""
        for row in self.rows():
            self.restore()
            self.sql(("DELETE FROM record WHERE kind=3",), ("UPDATE record SET sealed=zeroblob(200) WHERE lookup=?", (row,)))
            outcome = self.run_in_time("token", self.provider)
            self.assertNotEqual(outcome.returncode, DONE)
            self.assertEqual(outcome.stdout, "")

    def test_a_damaged_header_and_a_damaged_index(self):
        """credmgr reads what it can, but refuses operations that depend on the damage before contacting a provider."""
        for change in ("UPDATE header SET sealed=zeroblob(length(sealed))", "UPDATE bucket SET sealed=zeroblob(60)",
                       "DELETE FROM bucket"):
            with self.subTest(change):
                self.restore()
                self.sql((change,))
                for name, token in self.tokens.items():
                    self.assertEqual(self.run_in_time("token", self.provider, "--account", name).stdout.strip(), token)
                shown = self.run_in_time("status")
                self.assertEqual(shown.returncode, LOCKED)
                for name in self.tokens:
                    self.assertIn(name, shown.stdout)
                before = self.everything()
                self.service.exchanges.clear()
                for command in ("token --refresh", "refresh", "login", "logout", "vault rotate", "vault verify"):
                    done = self.run_in_time(*self.arguments(command))
                    self.assertEqual(done.returncode, LOCKED, f"{command}: {done.stdout}{done.stderr}")
                self.assertEqual(self.service.exchanges, [], "the provider was asked")
                self.assertEqual(self.everything(), before)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "only root can become somebody else")
class NoRights(ProgramTest):
    """Unreadable or read-only directories cause an error message, a hint, and exit 6."""

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        self.program = os.path.join(self.copied_programs(), "credmgr")
        self.descriptor = shutil.copy(os.path.join(DESCRIPTORS, "oauth2-public.yaml"), self.folder)
        os.chmod(self.descriptor, 0o644)

    def as_nobody(self, *arguments, stdin="", **environment):
        return subprocess.run(
            ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", self.program, *arguments],
            input=stdin, capture_output=True, text=True, timeout=TIMEOUT, check=False, cwd="/",
            env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **environment})

    def refused(self, outcome, words):
        self.assertEqual((outcome.returncode, outcome.stdout), (LOCKED, ""), outcome.stderr)
        self.assertEqual(outcome.stderr.count("credmgr: error: "), 1, outcome.stderr)
        self.assertRegex(outcome.stderr, words)
        self.assertRegex(outcome.stderr, r"(?m)^credmgr: hint: \S")

    def add_provider(self, **environment):
        return self.as_nobody("add-provider", self.descriptor, "--client-id", "c", "--set", "port=1", **environment)

    def test_a_home_that_cannot_be_created(self):
        locked = os.path.join(self.folder, "locked")
        os.mkdir(locked, 0o755)
        for environment in ({"HOME": locked}, {"CREDMGR_HOME": locked + "/own"}, {"HOME": locked + "/deep/below"},
                            {"CREDMGR_HOME": "/proc/nowhere"}):
            with self.subTest(**environment):
                self.refused(self.add_provider(**environment), "cannot create directory")
        file = self.file("a-file", "")
        os.chmod(file, 0o644)
        self.refused(self.add_provider(CREDMGR_HOME=file), "is not a directory")
        self.refused(self.add_provider(CREDMGR_HOME=file + "/below"), "is not a directory")
        os.chmod(locked, 0o700)
        self.refused(self.add_provider(CREDMGR_HOME=locked), "permission denied|cannot be made|belongs to another user")
        self.assertIn("permission denied", self.as_nobody("token", "x", CREDMGR_HOME=locked).stderr)

    def test_a_home_that_cannot_be_written(self):
        home = os.path.join(self.folder, "own")
        os.mkdir(home, 0o700)
        os.chown(home, NOBODY, NOBODY)
        self.assertEqual(self.add_provider(CREDMGR_HOME=home).returncode, DONE)
        login = ("login", "oauth2-public", "--account", "default", "--with-token")
        self.assertEqual(self.as_nobody(*login, stdin="a-token-of-a-test", CREDMGR_HOME=home).returncode, DONE)
        for folder, _, names in os.walk(home):
            for path in (folder, *(os.path.join(folder, name) for name in names)):
                os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) & 0o555)
        for arguments in (("token", "oauth2-public"), ("status",), ("log",), ("vault", "verify"), ("vault", "status")):
            outcome = self.as_nobody(*arguments, CREDMGR_HOME=home)
            self.assertEqual(outcome.returncode, DONE, outcome.stderr)
        for arguments in (login, ("use", "oauth2-public", "default"), ("logout", "oauth2-public", "--keep-remote"),
                          ("vault", "rotate"), ("vault", "protect", "key-file"),
                          ("login", "oauth2-public", "--account", "default", "--no-browser")):
            with self.subTest(arguments):
                self.refused(self.as_nobody(*arguments, stdin="another", CREDMGR_HOME=home),
                             "cannot (write|create|use)")
