"""Faulty vault files, backups and key files."""

import os
import subprocess

from program import BINARY, DONE, LOCKED, TIMEOUT, USAGE, ProgramTest


class Files(ProgramTest):
    def setUp(self):
        super().setUp()
        self.service, self.provider = self.logged_in()
        self.token = self.credmgr("token", self.provider).line
        self.vault = os.path.join(self.environment["CREDMGR_HOME"], "vault")

    def pipe(self):
        path = os.path.join(self.folder, "pipe")
        os.mkfifo(path, 0o600)
        return path

    def in_time(self, *arguments, **environment):
        return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=TIMEOUT, check=False,
                              stdin=subprocess.DEVNULL, env={**self.environment, **environment}, cwd=self.folder)

    def test_new_files_are_private_with_any_umask(self):
        home = os.path.join(self.folder, "open")
        descriptor = self.file("mine.yaml", "provider: mine\ngrant: client_credentials\ngit: { hosts: [git.example] }\n"
                                            "endpoints: { token: \"https://mine.example/token\" }\n")
        for arguments in (("add-provider", descriptor, "--client-id", "a"), ("login", "mine", "--with-token")):
            subprocess.run([BINARY, *arguments], input="a-token\n", text=True, capture_output=True, timeout=TIMEOUT, check=True,
                           env={**self.environment, "CREDMGR_HOME": home}, umask=0)
        modes = {path: os.lstat(path).st_mode & 0o777 for folder, folders, files in os.walk(home)
                 for path in (os.path.join(folder, name) for name in (*folders, *files))}
        self.assertIn(os.path.join(home, "config", "providers", "mine.yaml"), modes)
        self.assertEqual({path: oct(mode) for path, mode in modes.items() if mode & 0o022}, {})

    def test_a_pipe_instead_of_a_backup_or_an_export(self):
        pipe = self.pipe()
        for command in ("restore", "import"):
            done = self.in_time("vault", command, pipe)
            self.assertEqual((done.returncode, done.stdout), (USAGE, ""), done.stderr)
            self.assertIn("is not a regular file", done.stderr)
        self.assertEqual(self.credmgr("token", self.provider).line, self.token)

    def test_process_substitution(self):
        export = os.path.join(self.folder, "export")
        self.credmgr("vault", "export", export, "--plain", "--plain")
        self.credmgr("vault", "backup", os.path.join(self.folder, "backup"))
        for script in (f"{BINARY} vault import <(cat export) --plain", f"cat export | {BINARY} vault import - --plain",
                       f"cat export | {BINARY} vault import /dev/stdin --plain", f"{BINARY} vault restore <(cat backup)"):
            done = self.run_program("-c", script, binary="/bin/bash")
            self.assertEqual(done.status, DONE, done.err)
        os.remove(export)

    def test_a_backup_whose_end_is_missing(self):
        backup = os.path.join(self.folder, "backup")
        self.credmgr("vault", "backup", backup)
        size = os.path.getsize(backup)
        for cut in (1, 2, 100, 4095, 4096, 4097, size - 100):
            os.truncate(backup, size)
            with open(backup, "r+b") as file:
                file.truncate(size - cut)
            outcome = self.credmgr("vault", "restore", backup, status=LOCKED)
            self.assertIn("is truncated", outcome.err)
            self.assertIn("hint: ", outcome.err)
        self.assertEqual(self.credmgr("token", self.provider).line, self.token)

    def test_a_backup_in_an_empty_home(self):
        backup, key = os.path.join(self.folder, "backup"), os.path.join(self.vault, "vault.key")
        self.credmgr("vault", "backup", backup)
        self.new_home()
        outcome = self.credmgr("vault", "restore", backup, status=LOCKED)
        self.assertIn("--key-file FILE", outcome.err)
        self.assertFalse(os.path.exists(os.path.join(self.environment["CREDMGR_HOME"], "vault", "vault.db")))
        self.credmgr("vault", "restore", backup, "--key-file", key)
        self.assertEqual(self.credmgr("token", self.provider).line, self.token)

    def test_a_passphrase_that_is_not_text(self):
        path = os.path.join(self.folder, "passphrase")
        with open(path, "wb") as file:
            file.write(b"caf\xe9\n")
        os.chmod(path, 0o600)
        outcome = self.credmgr("vault", "protect", "passphrase", "--passphrase-file", path, status=USAGE)
        self.assertIn("is not UTF-8", outcome.err)
        self.file("empty", "\n")
        outcome = self.credmgr("vault", "protect", "passphrase", "--passphrase-file", "empty", status=USAGE)
        self.assertIn("no passphrase found", outcome.err)

    def test_a_passphrase_that_others_can_read(self):
        path = self.file("passphrase", "a passphrase of some words\n")
        os.chmod(self.folder, 0o755)
        os.chmod(path, 0o644)
        outcome = self.credmgr("vault", "protect", "passphrase", "--passphrase-file", path)
        self.assertRegex(outcome.err, r"other users can read \S+ \(mode 644\); run \"chmod go= ")
        found = self.run_program("doctor", environment={"CREDMGR_PASSPHRASE_FILE": path})
        self.assertIn("other users can read the passphrase", found.out)
        # A container's secret is in a private directory.
        os.chmod(self.folder, 0o700)
        outcome = self.credmgr("vault", "protect", "passphrase", "--passphrase-file", path)
        self.assertNotIn("other users", outcome.err)
        os.chmod(self.folder, 0o755)
        os.chmod(path, 0o600)
        outcome = self.credmgr("vault", "protect", "passphrase", "--passphrase-file", path)
        self.assertNotIn("other users", outcome.err)

    def test_the_longest_time_to_unlock_a_vault(self):
        for text in ("366d", "100000000d", "9223372036854775807s"):
            outcome = self.credmgr("vault", "unlock", "--for", text, status=USAGE)
            self.assertRegex(outcome.err, "365 days|invalid duration")
