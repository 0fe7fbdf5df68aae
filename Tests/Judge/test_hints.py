"""Runs the commands in a hint, then the failed command again."""

import os
import re
import shutil
import subprocess
import unittest

from program import DESCRIPTORS, DONE, LOCKED, TIMEOUT, UNEXPECTED, USAGE, ProgramTest

NOBODY = 65534
PROVIDER = "oauth2-public"
AS_NOBODY = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]


class HintTest(ProgramTest):
    """Uses an account in a home, and a shell that damages parts of it."""

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        self.descriptor = shutil.copy(os.path.join(DESCRIPTORS, PROVIDER + ".yaml"), self.folder)
        os.chmod(self.descriptor, 0o644)
        self.person = os.path.join(self.folder, "person")
        self.shown = {"PATH": self.copied_programs() + ":/usr/bin:/bin", "HOME": self.person, "CREDMGR_HOME": self.person + "/box",
                      "H": self.person, "GIT_CONFIG_NOSYSTEM": "1"}
        self.begin = (f"credmgr add-provider {self.descriptor} --client-id c --set port=1 && "
                      f"echo a-token-of-a-test | credmgr login {PROVIDER} --with-token --account ada")

    def shell(self, script, *before):
        return subprocess.run([*before, "bash", "-c", script], env=self.shown, cwd="/", check=False, timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "only root can become somebody else")
class Followed(HintTest):
    """Runs as an ordinary user, to whom permissions apply."""

    def setUp(self):
        super().setUp()
        self.renew()

    def renew(self):
        if os.path.exists(self.person):
            shutil.rmtree(self.person)
        os.mkdir(self.person, 0o700)
        os.chown(self.person, NOBODY, NOBODY)
        self.assertEqual(self.shell(self.begin, *AS_NOBODY).returncode, DONE)

    def followed(self, damage, command, status):
        """Follows a command's hints one after the other, after which it works; returns them."""
        with self.subTest(damage=damage, command=command):
            self.renew()
            script, hints = damage, []
            for _ in range(3):
                ended = self.shell(f"{script}\n{command}", *AS_NOBODY)
                if ended.returncode == DONE:
                    break
                self.assertEqual(ended.returncode, status, ended.stderr)
                self.assertNotRegex(ended.stderr, r"\.tmp|\.answer|ls -ld")
                found = re.search(r'hint: .*?run "([^"]*)"', ended.stderr)
                self.assertIsNotNone(found, ended.stderr)
                hints.append(found.group(1))
                # The damage stays, and variables belong to the shell.
                script = "\n".join(["set -e", *hints, "set +e"])
                if not damage.startswith("export"):
                    continue
                script = damage + "\n" + script
            self.assertEqual(ended.returncode, DONE, ended.stderr)
            self.assertTrue(hints, "nothing was damaged")
            return hints

    def test_permissions(self):
        rule = f"credmgr use {PROVIDER} ada --in /"
        self.assertEqual(self.followed("chmod 500 $H/box/config", rule, USAGE),
                         [f"chmod u+rwX {self.person}/box/config"])
        self.assertEqual(self.followed("chmod 000 $H/box/vault/vault.key", f"credmgr token {PROVIDER}", LOCKED),
                         [f"chmod u+rwX {self.person}/box/vault/vault.key"])
        self.followed("chmod 000 $H/box/vault/vault.db", f"credmgr token {PROVIDER}", LOCKED)
        self.followed("chmod 000 $H/box/vault", f"credmgr token {PROVIDER}", LOCKED)
        self.followed("chmod 500 $H/box/vault", f"credmgr use {PROVIDER} ada", LOCKED)
        self.followed("chmod 400 $H/box/vault/vault.db", f"credmgr use {PROVIDER} ada", LOCKED)
        self.followed("mkdir -p $H/.docker; chmod 500 $H/.docker", "credmgr docker-credential setup --all", USAGE)

    def test_another_kind_of_file(self):
        self.assertEqual(self.followed("export CREDMGR_HOME=$H/file; test -e $H/file || echo >$H/file",
                                       f"credmgr add-provider {self.descriptor} --client-id c --set port=1", LOCKED),
                         ["unset CREDMGR_HOME"])
        link = "mv $H/box/vault/vault.db $H/elsewhere; ln -s $H/elsewhere $H/box/vault/vault.db"
        self.followed(link, f"credmgr token {PROVIDER}", LOCKED)
        # A linked directory must not be treated as the vault.
        link = "mv $H/box/vault/vault.db $H/kept; ln -s /usr $H/box/vault/vault.db"
        ended = self.shell(f"{link}\ncredmgr token {PROVIDER}", *AS_NOBODY)
        self.assertIn(f'run "rm {self.person}/box/vault/vault.db"\n', ended.stderr)

    def test_git(self):
        self.followed("echo '[user]' >$H/.gitconfig; chmod 500 $H", "credmgr git-setup", USAGE)
        self.followed("echo '[user]' >$H/.gitconfig; chmod 000 $H/.gitconfig", "credmgr git-setup", USAGE)
        self.followed("mkdir $H/.gitconfig", "credmgr git-setup", USAGE)
        self.assertEqual(self.followed("export GIT_CONFIG_GLOBAL=$H/none/config", "credmgr git-setup", USAGE),
                         [f"mkdir -p {self.person}/none"])


@unittest.skipUnless(subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode == 0,
                     "nothing can be mounted here")
class FullDisk(HintTest):
    """A full disk."""

    def test_every_command_that_writes(self):
        os.mkdir(self.person, 0o700)
        commands = [(f"credmgr use {PROVIDER} ada --in /", UNEXPECTED), (f"credmgr use {PROVIDER} ada", LOCKED),
                    ("credmgr docker-credential setup --all", UNEXPECTED),
                    ("credmgr vault export --plain --plain $H/export", UNEXPECTED), ("credmgr git-setup", UNEXPECTED),
                    (f"echo other | credmgr login {PROVIDER} --with-token --account eve", LOCKED)]
        script = [f"mount -t tmpfs -o size=1m none {self.person} || exit 77", f"({self.begin}) 2>/dev/null",
                  "mkdir $H/.docker", "cat /dev/zero >$H/filling 2>/dev/null"]
        for command, _ in commands:
            script += [f"{command} 2>&1; echo \"= $?\"", "echo ,"]
        ended = self.shell("\n".join(script), "unshare", "-m")
        said = ended.stdout.split(",\n")
        self.assertEqual(len(said), len(commands) + 1, ended.stdout + ended.stderr)
        for (command, status), text in zip(commands, said):
            with self.subTest(command=command):
                self.assertTrue(text.endswith(f"= {status}\n"), text)
                self.assertRegex(text, r"is full|failed to write")
                self.assertRegex(text, rf'hint: free some space and run the command again; "df -h {self.person}\S*"')
                self.assertNotRegex(text, r"df -h \S*\.(tmp|answer)")
