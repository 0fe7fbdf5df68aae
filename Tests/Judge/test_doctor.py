"""`credmgr doctor`: set-ups that are broken on purpose, each finding mended by following its hint literally."""

import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
import unittest

import oauth2_server
from oauth2_server import OAuth2Server
from program import BINARY, DONE, LOCKED, LOGIN_NEEDED, UNREACHABLE, USAGE, ProgramTest
from terminal import Terminal

ADA = ProgramTest.accounts[0]
GIT = tuple(int(number) for number in re.findall(r"\d+", subprocess.check_output(["git", "version"], text=True))[:2])
FAKETIME = "/usr/bin/faketime"
# A clock can be put before the system's in a dynamic program only, which this one always is.
ONLINE = os.path.join(os.path.dirname(BINARY), "credmgr-online")
PASSPHRASE = "correct horse battery"
CHECKS = {"home", "vault", "accounts", "clock", "browser", "keyring", "programs", "git", "docker", "descriptors", "hosts",
          "rules", "certificates", "proxy", "network"}


class Doctor(ProgramTest):
    def setUp(self):
        super().setUp()
        # What this machine has is not what is judged.
        self.environment["SSL_CERT_FILE"] = self.file("roots.pem", "-----BEGIN CERTIFICATE-----\n")
        self.environment["DOCKER_CONFIG"] = os.path.join(self.folder, "docker")
        self.programs = os.path.join(self.folder, "bin")
        os.mkdir(self.programs)
        # Nobody here is asked who they are.
        self.program("sudo", 'exec "$@"')
        self.environment["PATH"] = self.programs + ":" + self.environment["PATH"]

    def ready(self, **options):
        self.service = self.serve(OAuth2Server(**options))
        self.provider = self.add("git-host", self.service, oauth2_server.PUBLIC_CLIENT, git_port=4433)
        self.credmgr("login", self.provider, "--account", ADA)
        self.token = self.credmgr("token", self.provider).line

    def doctor(self, *arguments, status=DONE, environment=None):
        outcome = self.run_program("doctor", "--json", *arguments, environment=environment)
        self.assertEqual(outcome.status, status, outcome.out + outcome.err)
        self.assertEqual(outcome.err, "")
        findings = json.loads(outcome.out)
        for finding in findings:
            self.assertEqual(set(finding), {"check", "state", "sentence", "hints"})
            self.assertIn(finding["check"], CHECKS)
            self.assertIn(finding["state"], {"ok", "note", "problem"})
            if finding["state"] == "problem":
                self.assertTrue(finding["hints"] or finding["check"] in ("network", "vault"), finding)
        if hasattr(self, "token"):
            self.assertNotIn(self.token, outcome.out)
        return findings

    def problems(self, check, *arguments, status, state="problem", environment=None):
        found = self.doctor(*arguments, status=status, environment=environment)
        chosen = [finding for finding in found if finding["check"] == check and finding["state"] == state]
        self.assertTrue(chosen, found)
        return chosen

    def damage(self):
        """What is wrong with the vault, after a byte of its file was changed; nothing where the byte carries no record."""
        if self.run_program("doctor").status == DONE:
            self.assertEqual(self.credmgr("token", self.provider).line, self.token)
            return []
        return self.problems("vault", status=LOCKED)

    def follow(self, finding):
        """Does what the hints say, as a person who copies them."""
        for hint in finding["hints"]:
            command = re.search(r'run "(.*)"', hint).group(1)
            subprocess.run(["bash", "-c", command], env=self.environment, check=True, cwd=self.folder,
                           stdin=subprocess.DEVNULL, capture_output=True)

    def mended(self, finding, *arguments, environment=None):
        """Does what the hints say in a shell, in which the next doctor does not find the same any more."""
        commands = [match.group(1) for hint in finding["hints"] if (match := re.search(r'run "([^"]*)"', hint))]
        commands = [command for command in commands if not command.startswith(("credmgr check", "credmgr providers"))]
        self.assertTrue(commands, finding)
        again = " ".join(["credmgr", "doctor", "--json", *arguments])
        ended = subprocess.run(["bash", "-c", "\n".join(["set -e", *commands, "set +e", again])],
                               env={**self.environment, **(environment or {})}, cwd=self.folder, check=False,
                               stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertTrue(ended.stdout, ended.stderr)
        found = json.loads(ended.stdout)
        self.assertNotIn(finding["sentence"], [other["sentence"] for other in found])
        return [other for other in found if other["state"] == "problem"]

    def program(self, name, text="exit 1", link=None):
        path = os.path.join(self.programs, name)
        if os.path.lexists(path):
            os.remove(path)
        if link:
            os.symlink(link, path)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\n{text}\n")
            os.chmod(path, 0o755)
        return path

    def everything(self):
        """Every file below the folder, with what is in it and when it was changed."""
        seen = {}
        for folder, folders, names in os.walk(self.folder):
            for name in folders + names:
                path = os.path.join(folder, name)
                status = os.lstat(path)
                content = b""
                if name in names and not os.path.islink(path):
                    with open(path, "rb") as file:
                        content = file.read()
                seen[path] = (status.st_mode, status.st_mtime_ns, hashlib.sha256(content).hexdigest())
        return seen

    def settings(self, text):
        with open(self.environment["GIT_CONFIG_GLOBAL"], "w", encoding="utf-8") as file:
            file.write(text)


class Whole(Doctor):
    def test_before_anything_was_done(self):
        before = self.everything()
        states = {finding["check"]: finding["state"] for finding in self.doctor()}
        self.assertEqual(before, self.everything())
        self.assertNotIn("problem", states.values())
        self.assertEqual(states["vault"], "note")

    def test_a_set_up_that_is_well_and_stays_as_it_is(self):
        self.ready()
        self.credmgr("git-setup")
        self.doctor()
        before = self.everything()
        outcome = self.credmgr("doctor")
        self.assertEqual(before, self.everything())
        self.assertEqual(outcome.err, "credmgr: all is well\n")
        self.assertNotIn("\x1b", outcome.out)
        for check in ("home", "vault", "accounts", "git", "descriptors", "certificates"):
            self.assertRegex(outcome.out, rf"(?m)^ok +{check} ")

    def test_colour_is_for_terminals_whose_person_wants_it(self):
        for more, expected in (({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False),
                               ({"TERM": "dumb"}, False)):
            terminal = Terminal([BINARY, "doctor"], {**self.environment, **more}, self.folder)
            while terminal.read(10):
                pass
            terminal.process.wait(10)
            self.assertIn("home", terminal.seen)
            self.assertEqual("\x1b[" in terminal.seen, expected, more)
            for line in terminal.seen.splitlines():
                if " run \"" not in line:
                    shown = re.sub(r"\x1b\[[0-9;]*m", "", line)
                    # A path is one word, and is not broken.
                    self.assertTrue(len(shown) <= 80 or max(map(len, shown.split())) > 40, shown)


class Home(Doctor):
    def test_folders_that_others_can_read(self):
        self.ready()
        os.chmod(os.path.join(self.homes[-1], "vault"), 0o755)
        found = self.problems("home", status=USAGE)
        self.follow(found[0])
        self.doctor()

    def test_descriptors_that_others_can_change(self):
        self.ready()
        path = os.path.join(self.homes[-1], "config", "providers", self.provider + ".yaml")
        os.chmod(path, 0o666)
        found = self.problems("home", status=USAGE)
        self.assertIn(path, found[0]["sentence"])
        self.follow(found[0])
        self.doctor()

    def test_a_descriptor_with_a_mistake(self):
        self.ready()
        path = os.path.join(self.homes[-1], "config", "providers", "broken.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("provider: broken\nextends: no-such-base\n")
        found = self.problems("descriptors", status=USAGE)
        self.assertIn(f'run "credmgr check {path}"', found[0]["hints"][0])
        self.mended(found[0])

    def test_a_descriptor_that_is_gone(self):
        self.ready()
        os.remove(os.path.join(self.homes[-1], "config", "providers", self.provider + ".yaml"))
        self.assertIn("is gone", self.problems("descriptors", status=USAGE)[0]["sentence"])

    def test_rules(self):
        self.ready()
        self.credmgr("use", self.provider, ADA, "--for", "https://127.0.0.1:4433/team")
        self.doctor()
        path = os.path.join(self.homes[-1], "config", "accounts.yaml")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(ADA, "somebody"))
        self.assertIn("somebody", self.problems("rules", status=LOGIN_NEEDED)[0]["sentence"])
        with open(path, "w", encoding="utf-8") as file:
            file.write("rulez: []\n")
        self.assertIn("accounts.yaml:1:1:", self.problems("rules", status=USAGE)[0]["sentence"])


class Vault(Doctor):
    def test_damage(self):
        self.ready()
        path = os.path.join(self.homes[-1], "vault", "vault.db")
        with open(path, "r+b") as file:
            content = bytearray(file.read())
            # The end of the last page is where the rows begin.
            content[-20] ^= 1
            file.seek(0)
            file.write(content)
        self.problems("vault", status=LOCKED)

    def test_a_missing_key_file(self):
        self.ready()
        os.remove(os.path.join(self.homes[-1], "vault", "vault.key"))
        self.problems("vault", status=LOCKED)

    def test_nobody_is_asked_for_a_passphrase(self):
        self.ready()
        secret = self.file("passphrase", PASSPHRASE + "\n")
        self.credmgr("vault", "protect", "passphrase", environment={"CREDMGR_PASSPHRASE_FILE": secret})
        self.credmgr("vault", "protect", "key-file", "--remove")
        asked = os.path.join(self.folder, "asked")
        found = self.problems(
            "vault", status=DONE, state="note",
            environment={"CREDMGR_PASSPHRASE_COMMAND": f"touch {asked}; cat {secret}"})
        self.assertIn("locked", found[0]["sentence"])
        self.assertFalse(os.path.exists(asked))
        terminal = Terminal([BINARY, "doctor"], self.environment, self.folder, columns=200)
        while terminal.read(10):
            pass
        self.assertEqual(terminal.process.wait(10), DONE)
        self.assertNotIn("passphrase of the vault", terminal.seen)
        self.assertEqual(
            self.problems("vault", status=DONE, state="ok", environment={"CREDMGR_PASSPHRASE_FILE": secret})[0]["hints"],
            [])

    def at(self, change, *arguments, status):
        command = [FAKETIME, "--exclude-monotonic", "-f", change, ONLINE, "doctor", "--json", *arguments]
        ended = subprocess.run(command, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, status, ended.stdout + ended.stderr)
        return [finding for finding in json.loads(ended.stdout) if finding["state"] == "problem"]

    @unittest.skipUnless(os.access(FAKETIME, os.X_OK), "there is no faketime")
    def test_a_clock_that_is_behind(self):
        self.ready()
        self.assertEqual([finding["check"] for finding in self.at("-1d", status=USAGE)], ["clock"])
        # One cause is told once, by what it is known best.
        found = self.at("-1h", self.provider, status=USAGE)
        self.assertEqual([finding["check"] for finding in found], ["clock"], found)
        self.assertIn("127.0.0.1", found[0]["sentence"])

    @unittest.skipUnless(os.access(FAKETIME, os.X_OK), "there is no faketime")
    def test_a_token_that_has_ended(self):
        self.service = self.serve(OAuth2Server())
        self.provider = self.add("oauth2-implicit", self.service, oauth2_server.PUBLIC_CLIENT)
        self.credmgr("login", self.provider, "--account", ADA)
        found = self.at("+1d", status=LOGIN_NEEDED)
        self.assertEqual([finding["check"] for finding in found], ["accounts"])
        self.assertEqual(found[0]["hints"], [f'run "credmgr login {self.provider} --account {ADA}"'])


    @unittest.skipUnless(os.access(FAKETIME, os.X_OK), "there is no faketime")
    def test_a_login_that_was_refused_for_good(self):
        self.ready()
        for token in self.service.tokens:
            token.revoked = True
        self.credmgr("token", self.provider, "--refresh", status=LOGIN_NEEDED)
        found = self.at("+1d", status=LOGIN_NEEDED)
        self.assertEqual([(finding["check"], finding["hints"]) for finding in found], [
            ("accounts", [f'run "credmgr login {self.provider} --account {ADA}"'])])


class Git(Doctor):
    def test_git_does_not_ask(self):
        self.ready()
        self.follow(self.problems("git", status=DONE, state="note")[0])
        self.assertEqual([finding["sentence"] for finding in self.doctor() if finding["check"] == "git"],
                         ["git asks credmgr first"])

    def test_another_helper_is_asked_first(self):
        self.ready()
        self.settings("[credential]\n\thelper = store --file=x\n")
        self.credmgr("git-setup")
        found = self.problems("git", status=USAGE)
        self.assertIn("store --file=x", found[0]["sentence"])
        self.follow(found[0])
        self.problems("git", status=DONE, state="ok")

    def test_an_empty_helper_sends_ours_away(self):
        self.ready()
        self.credmgr("git-setup")
        with open(self.environment["GIT_CONFIG_GLOBAL"], "a", encoding="utf-8") as file:
            file.write("[credential]\n\thelper =\n")
        found = self.problems("git", status=USAGE)
        self.assertIn(found[0]["sentence"], self.credmgr("git-setup").err)
        self.follow(found[0])
        self.problems("git", status=DONE, state="ok")

    @unittest.skipIf(GIT >= (2, 46), "this git has nobody keep what is ephemeral")
    def test_another_helper_keeps_what_ours_answers(self):
        self.ready()
        self.credmgr("git-setup")
        with open(self.environment["GIT_CONFIG_GLOBAL"], "a", encoding="utf-8") as file:
            file.write("[credential]\n\thelper = store\n")
        found = self.problems("git", status=DONE, state="note")
        self.assertIn(found[0]["sentence"], self.credmgr("git-setup").err)
        self.follow(found[0])
        self.problems("git", status=DONE, state="ok")

    def test_a_host_of_ours_is_another_ones(self):
        self.ready()
        self.credmgr("git-setup")
        with open(self.environment["GIT_CONFIG_GLOBAL"], "a", encoding="utf-8") as file:
            file.write('[credential "https://127.0.0.1:4433"]\n\thelper =\n\thelper = !/usr/bin/other auth\n')
        found = self.problems("git", status=USAGE)
        self.assertIn("/usr/bin/other", found[0]["sentence"])
        self.follow(found[0])
        self.problems("git", status=DONE, state="ok")

    def test_a_helper_of_another_host_is_of_no_interest(self):
        self.ready()
        self.settings('[credential "https://elsewhere.example"]\n\thelper = store\n')
        self.credmgr("git-setup")
        self.problems("git", status=DONE, state="ok")

    def test_a_program_that_is_gone(self):
        self.settings("[credential]\n\thelper = /nowhere/credmgr git-credential\n")
        found = self.problems("git", status=USAGE)
        self.assertIn("/nowhere/credmgr", found[0]["sentence"])
        self.follow(found[0])
        self.problems("git", status=DONE, state="ok")

    def test_a_name_that_is_not_in_the_path(self):
        self.settings("[credential]\n\thelper = credmgr\n")
        self.problems("git", status=USAGE)
        os.symlink(BINARY, os.path.join(self.programs, "git-credential-credmgr"))
        self.problems("git", status=DONE, state="ok")

    def test_passwords_in_helpers_are_not_shown(self):
        self.settings('[credential]\n\thelper = "!f() { echo password=hidden-word; }; f"\n')
        self.credmgr("git-setup")
        outcome = self.run_program("doctor")
        self.assertEqual(outcome.status, USAGE)
        self.assertNotIn("hidden-word", outcome.out + outcome.err)


class Others(Doctor):
    def docker(self, value):
        os.makedirs(self.environment["DOCKER_CONFIG"], exist_ok=True)
        return self.file("docker/config.json", value if isinstance(value, str) else json.dumps(value))

    def test_docker_asks_for_a_program_that_is_not_there(self):
        self.docker({"credsStore": "credmgr"})
        self.follow(self.problems("docker", status=USAGE)[0])
        self.assertEqual(self.problems("docker", status=DONE, state="ok")[0]["sentence"], "docker asks credmgr")

    def test_a_registry_of_ours_is_another_ones(self):
        self.service = self.serve(OAuth2Server())
        self.add("registry", self.service, oauth2_server.PUBLIC_CLIENT, registry_port=4434)
        self.program("docker-credential-desktop")
        self.program("docker-credential-credmgr", link=BINARY)
        file = self.docker({"credsStore": "desktop", "auths": {}, "proxies": {"default": {"noProxy": "1.50"}}})
        self.mended(self.problems("docker", status=DONE, state="note")[0])
        with open(file, encoding="utf-8") as text:
            self.assertEqual(json.load(text), {
                "credsStore": "desktop", "auths": {}, "proxies": {"default": {"noProxy": "1.50"}},
                "credHelpers": {"127.0.0.1:4434": "credmgr"}})
        self.credmgr("docker-credential", "setup", "--remove")
        with open(file, encoding="utf-8") as text:
            self.assertEqual(json.load(text), {
                "credsStore": "desktop", "auths": {}, "proxies": {"default": {"noProxy": "1.50"}}})

    def test_a_helper_of_docker_that_is_not_there(self):
        for configuration in ({"credHelpers": {"registry.example": "nosuch"}}, {"credsStore": "nosuch"}):
            self.program("docker-credential-credmgr", link=BINARY)
            self.docker(configuration)
            found = self.problems("docker", status=USAGE)[0]
            self.assertIn("docker-credential-nosuch", found["sentence"])
            self.mended(found)

    def test_passwords_that_docker_keeps_readable(self):
        self.docker({"auths": {"registry.example": {"auth": "aGlkZGVuOndvcmQ="}}})
        found = self.problems("docker", status=DONE, state="note")[0]
        self.assertNotIn("aGlkZGVuOndvcmQ=", json.dumps(found))
        self.assertIn("registry.example", found["sentence"])

    def test_a_file_that_docker_cannot_read(self):
        self.docker("{")
        self.problems("docker", status=USAGE)

    def test_a_browser_that_is_not_there(self):
        self.environment["BROWSER"] = "no-such-browser"
        self.problems("browser", status=USAGE)
        del self.environment["BROWSER"]
        self.assertEqual(self.problems("browser", status=DONE, state="note")[0]["hints"], [])
        self.problems("browser", status=DONE, state="note", environment={"SSH_CONNECTION": "a b c d"})

    def test_certificates(self):
        del self.environment["SSL_CERT_FILE"]
        for value in ("/nowhere.pem", self.file("empty.pem", "")):
            self.problems("certificates", status=USAGE, environment={"SSL_CERT_FILE": value})
        self.problems("certificates", status=USAGE, environment={"SSL_CERT_DIR": "/nowhere"})

    def test_a_proxy_is_shown_without_its_password(self):
        found = self.problems(
            "proxy", status=DONE, state="ok", environment={"https_proxy": "http://ada:hidden@proxy.example:3128"})
        self.assertEqual(found[0]["sentence"], 'https_proxy is "http://proxy.example:3128"')
        self.problems("proxy", status=USAGE, environment={"all_proxy": "gopher://proxy.example"})


class Mended(Doctor):
    """Each set-up is broken, what the doctor says is done word by word, and the doctor comes again."""

    def home(self, *parts):
        return os.path.join(self.homes[-1], *parts)

    def broken(self, check, status=USAGE, state="problem", environment=None, mended=True):
        found = self.problems(check, status=status, state=state, environment=environment)
        self.assertEqual(len(found), 1, found)
        left = self.mended(found[0], environment=environment)
        if mended:
            self.assertEqual([other for other in left if other["check"] == check], [])
        return found[0]["sentence"]

    # The home.
    def test_homes_that_cannot_be(self):
        for value in ("box", "~/box", "~", self.file("file", "")):
            self.broken("home", environment={"CREDMGR_HOME": value})

    def test_a_link_to_the_vault(self):
        self.ready()
        os.rename(self.home("vault"), os.path.join(self.folder, "elsewhere"))
        os.symlink(os.path.join(self.folder, "elsewhere"), self.home("vault"))
        self.broken("home")
        self.assertEqual(self.credmgr("token", self.provider).line, self.token)

    def test_a_file_in_the_place_of_the_vault(self):
        os.mkdir(self.homes[-1], 0o700)
        self.file(self.home("vault"), "")
        self.broken("home")

    @unittest.skipUnless(os.geteuid() == 0, "only the administrator gives files away")
    def test_files_of_another_user_are_one_finding(self):
        self.ready()
        for folder, folders, names in os.walk(self.homes[-1]):
            for name in folders + names:
                os.lchown(os.path.join(folder, name), 4242, 4242)
        found = [finding for finding in self.doctor(status=USAGE) if finding["state"] == "problem"]
        self.assertEqual([finding["check"] for finding in found], ["home"], found)
        self.assertEqual(self.mended(found[0]), [])
        self.assertEqual(self.credmgr("token", self.provider).line, self.token)

    def as_stranger(self, script, **environment):
        """A shell of a user whom the machine does not know."""
        shown = {"PATH": self.environment["PATH"], "SSL_CERT_FILE": self.environment["SSL_CERT_FILE"], **environment}
        command = ["setpriv", "--reuid=4242", "--regid=4242", "--clear-groups", "bash", "-c", script]
        ended = subprocess.run(command, env=shown, cwd="/", check=False, stdin=subprocess.DEVNULL,
                               capture_output=True, text=True)
        try:
            return json.loads(ended.stdout)
        except json.JSONDecodeError:
            self.fail(ended.stdout + ended.stderr)

    @unittest.skipUnless(os.geteuid() == 0 and os.access("/usr/bin/setpriv", os.X_OK), "only the administrator can be anybody")
    def test_a_user_without_a_home(self):
        self.addCleanup(shutil.rmtree, "/var/tmp/credmgr-4242", ignore_errors=True)
        os.chmod(self.folder, 0o755)
        os.chmod(self.environment["SSL_CERT_FILE"], 0o644)
        closed = os.path.join(self.folder, "closed")
        os.mkdir(closed, 0o700)
        own = os.path.join(self.folder, "own")
        os.mkdir(own, 0o500)
        os.chown(own, 4242, 4242)
        for environment in ({}, {"HOME": "/nonexistent-home"}, {"HOME": closed}, {"HOME": own},
                            {"HOME": own, "CREDMGR_HOME": closed}):
            found = self.as_stranger("credmgr doctor --json", **environment)
            problems = [finding for finding in found if finding["state"] == "problem"]
            self.assertEqual([finding["check"] for finding in problems], ["home"], environment)
            # What needs no home was looked at.
            for check in ("programs", "certificates", "proxy", "git", "docker", "clock"):
                self.assertIn(check, [finding["check"] for finding in found])
            command = re.search(r'run "([^"]*)"', problems[0]["hints"][0]).group(1)
            again = self.as_stranger(f"{command}\ncredmgr doctor --json", **environment)
            self.assertEqual([finding for finding in again if finding["state"] == "problem"], [], environment)
            os.chmod(own, 0o500)

    @unittest.skipUnless(os.geteuid() == 0 and os.access("/usr/bin/setpriv", os.X_OK), "only the administrator can be anybody")
    def test_what_needs_no_home(self):
        os.chmod(self.folder, 0o755)
        for command in ("check " + os.path.join(os.path.dirname(BINARY), "../../../providers/github.yaml"), "providers",
                        "providers github", "completion bash", "completion words token git"):
            found = self.as_stranger(f"credmgr {command} >/dev/null 2>&1; echo $?")
            self.assertEqual(found, DONE, command)
        self.assertEqual(self.as_stranger("credmgr status >/dev/null 2>&1; echo $?"), USAGE)

    def test_parts_that_are_missing(self):
        tree = os.path.join(self.folder, "prefix")
        for name in ("bin", "share/credmgr/providers", "libexec/credmgr"):
            os.makedirs(os.path.join(tree, name))
        program = shutil.copy(BINARY, os.path.join(tree, "bin"))
        built = os.path.dirname(BINARY)
        os.symlink(os.path.join(built, "credmgr-online"), os.path.join(tree, "libexec/credmgr/credmgr-online"))
        descriptor = os.path.join(tree, "share/credmgr/providers/notes.yaml")

        def missing():
            ended = subprocess.run([program, "doctor", "--json"], env=self.environment, cwd=self.folder, check=False,
                                   stdin=subprocess.DEVNULL, capture_output=True, text=True)
            return [(finding["state"], finding["sentence"]) for finding in json.loads(ended.stdout)
                    if finding["check"] == "programs" and finding["hints"]]
        self.assertEqual(missing(), [("problem", f'there are no shipped descriptors in "{os.path.dirname(descriptor)}"')])
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write("provider: notes\ngrant: client_credentials\nendpoints: { token: https://a.example/t }\n")
        self.assertEqual(missing(), [])
        os.remove(os.path.join(tree, "libexec/credmgr/credmgr-online"))
        ended = subprocess.run([program, "simulate", "notes"], env=self.environment, check=False, capture_output=True,
                               text=True, stdin=subprocess.DEVNULL)
        self.assertRegex(ended.stderr, r'hint: .*run "(sudo dpkg -i|tar -xf) credmgr')
        self.assertEqual([state for state, _ in missing()], ["problem"])

    @unittest.skipUnless(subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode == 0,
                         "nothing can be mounted here")
    def test_homes_on_which_nothing_can_be_written(self):
        place = os.path.join(self.folder, "small")
        os.mkdir(place)
        for mount, words in ((f"mount --bind {place} {place} && mount -o remount,ro,bind {place}", "read-only"),
                             (f"mount -t tmpfs -o size=64k none {place}", "no room")):
            script = f"{mount} || exit\ncredmgr doctor --json\necho ,\neval \"$HINT\"\ncredmgr doctor --json"
            environment = {**self.environment, "CREDMGR_HOME": place + "/box", "HINT": "unset CREDMGR_HOME"}
            ended = subprocess.run(["unshare", "-m", "bash", "-c", script], env=environment, cwd=self.folder, check=False,
                                   stdin=subprocess.DEVNULL, capture_output=True, text=True)
            found, again = json.loads(f"[{ended.stdout}]")
            problems = [finding for finding in found if finding["state"] == "problem"]
            self.assertEqual([finding["check"] for finding in problems], ["home"], ended.stderr)
            self.assertIn(words, problems[0]["sentence"])
            if words == "read-only":
                self.assertEqual(problems[0]["hints"], ['run "unset CREDMGR_HOME"'])
            self.assertNotIn("problem", [finding["state"] for finding in again])

    def test_a_folder_above_in_which_others_can_write(self):
        os.chmod(self.folder, 0o777)
        self.broken("home")

    # The vault.
    def test_a_key_file_that_is_gone(self):
        self.ready()
        os.remove(self.home("vault", "vault.key"))
        self.broken("vault", status=LOCKED)

    def test_a_key_file_that_is_gone_where_there_is_a_passphrase(self):
        self.ready()
        secret = {"CREDMGR_PASSPHRASE_FILE": self.file("passphrase", PASSPHRASE + "\n")}
        self.credmgr("vault", "protect", "passphrase", environment=secret)
        os.remove(self.home("vault", "vault.key"))
        self.broken("vault", status=LOCKED, environment=secret)
        self.assertEqual(self.credmgr("token", self.provider).line, self.token)

    def test_a_vault_that_is_none(self):
        for content in (b"", b"no vault", b"SQLite format 3\0"):
            os.makedirs(self.home("vault"), 0o700, exist_ok=True)
            with open(self.home("vault", "vault.db"), "wb", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
                file.write(content)
            self.broken("vault", status=LOCKED)
            shutil.rmtree(self.home("vault.old"))

    def test_a_vault_of_which_any_byte_is_another(self):
        self.ready()
        # What is exported is under a passphrase.
        self.environment["CREDMGR_PASSPHRASE_FILE"] = self.file("passphrase", PASSPHRASE + "\n")
        path = self.home("vault", "vault.db")
        with open(path, "rb") as file:
            whole = file.read()
        kept = os.path.join(self.folder, "kept")
        shutil.copytree(self.home("vault"), kept)
        for place in range(200, len(whole), len(whole) // 24):
            shutil.rmtree(self.home("vault"), ignore_errors=True)
            shutil.copytree(kept, self.home("vault"))
            with open(path, "r+b") as file:
                file.seek(place)
                file.write(bytes([whole[place] ^ 1]))
            for finding in self.damage():
                hints = " ".join(finding["hints"])
                self.assertIn('run "', hints)
                # A login needs a person, and a client its identifier.
                if "credmgr login" not in hints and "--client-id" not in hints and " ACCOUNT" not in hints:
                    works = self.run_program("token", self.provider).status == DONE
                    self.mended(finding)
                    # Nobody who could do something before is to log in anew.
                    if works:
                        self.assertEqual(self.credmgr("token", self.provider).line, self.token)
                    if "vault export" in hints:
                        os.remove(os.path.join(self.folder, "credmgr-rescued.json"))
            shutil.rmtree(self.home("vault.old"), ignore_errors=True)

    def test_a_structure_in_which_everything_can_be_read(self):
        self.ready()
        self.environment["CREDMGR_PASSPHRASE_FILE"] = self.file("passphrase", PASSPHRASE + "\n")
        path = self.home("vault", "vault.db")
        with open(path, "rb") as file:
            whole = file.read()
        for place in range(len(whole)):
            if whole[place:place + 1] != b"\x0a" or place % 4096:
                continue
            with open(path, "wb") as file:
                # The bytes of a page's fragments (sqlite.org/fileformat.html, 1.6).
                file.write(whole[:place + 7] + bytes([whole[place + 7] ^ 1]) + whole[place + 8:])
            break
        self.credmgr("token", self.provider)
        self.assertIn("credmgr vault verify", self.credmgr("vault", "rotate", status=LOCKED).err)
        verified = self.run_program("vault", "verify").err
        found = self.problems("vault", status=LOCKED)
        self.assertEqual([finding["sentence"] for finding in found], ["the structure of the file is damaged"])
        self.assertIn(found[0]["hints"][0], verified)
        self.assertEqual(self.mended(found[0]), [])
        self.assertEqual(self.credmgr("token", self.provider).line, self.token)
        self.assertEqual(self.run_program("vault", "verify").status, DONE)
        self.credmgr("vault", "rotate")

    def test_a_header_and_an_index_of_which_any_byte_is_another(self):
        self.ready()
        self.environment["CREDMGR_PASSPHRASE_FILE"] = self.file("passphrase", PASSPHRASE + "\n")
        path = self.home("vault", "vault.db")
        with open(path, "rb") as file:
            whole = file.read()
        kept = os.path.join(self.folder, "kept")
        shutil.copytree(self.home("vault"), kept)
        rescued = 0
        # The end of a page is where its rows begin.
        for place in range(4096 - 60, len(whole), 4096):
            with open(path, "r+b") as file:
                file.seek(place)
                file.write(bytes([whole[place] ^ 1]))
            for finding in self.damage():
                if "vault export" in " ".join(finding["hints"]):
                    rescued += 1
                    self.mended(finding)
                    self.assertEqual(self.credmgr("token", self.provider).line, self.token)
                    os.remove(os.path.join(self.folder, "credmgr-rescued.json"))
            for folder in (self.home("vault"), self.home("vault.old")):
                shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(kept, self.home("vault"))
        self.assertGreaterEqual(rescued, 2)

    def test_a_link_to_what_is_no_vault(self):
        self.ready()
        elsewhere = os.path.join(self.folder, "elsewhere")
        os.mkdir(elsewhere)
        os.remove(self.home("vault", "vault.db"))
        os.symlink(elsewhere, self.home("vault", "vault.db"))
        self.broken("home")
        self.assertTrue(os.path.isdir(elsewhere))

    def test_the_passphrase_s_file(self):
        self.ready()
        for path in ("/nowhere", self.file("empty", ""), self.file("line", "\r\n"), self.folder):
            self.broken("vault", environment={"CREDMGR_PASSPHRASE_FILE": path})
        os.chmod(self.folder, 0o755)
        os.chmod(self.file("open", ""), 0o644)
        self.broken("vault", environment={"CREDMGR_PASSPHRASE_FILE": os.path.join(self.folder, "open")})
        readable = self.file("readable", PASSPHRASE)
        os.chmod(readable, 0o644)
        os.chmod(self.folder, 0o755)
        self.broken("vault", status=DONE, state="note", environment={"CREDMGR_PASSPHRASE_FILE": readable})

    def test_a_wrong_passphrase(self):
        self.ready()
        right = {"CREDMGR_PASSPHRASE_FILE": self.file("passphrase", PASSPHRASE + "\n")}
        self.credmgr("vault", "protect", "passphrase", environment=right)
        self.credmgr("vault", "protect", "key-file", "--remove", environment=right)
        wrong = {"CREDMGR_PASSPHRASE_FILE": self.file("wrong", "another\n")}
        self.broken("vault", status=LOCKED, environment=wrong)
        for environment in (wrong, {"CREDMGR_PASSPHRASE_FILE": "/nowhere"}):
            self.assertIn('hint: run "unset CREDMGR_PASSPHRASE_FILE"',
                          self.credmgr("token", self.provider, status=LOCKED, environment=environment).err)

    def test_an_account_of_the_environment(self):
        self.ready()
        self.doctor(environment={"CREDMGR_ACCOUNT": ADA})
        self.broken("accounts", environment={"CREDMGR_ACCOUNT": "nobody"})

    # The machine.
    def test_displays_that_are_not_there(self):
        del self.environment["BROWSER"]
        self.program("xdg-open")
        for environment in ({"DISPLAY": ":4711"}, {"DISPLAY": "unix:4711.0"}, {"DISPLAY": "garbage"},
                            {"WAYLAND_DISPLAY": "wayland-4711", "XDG_RUNTIME_DIR": self.folder}):
            self.broken("browser", environment=environment)
        self.file("wayland-0", "")
        for environment in ({"DISPLAY": "elsewhere.example:0"}, {"WSL_DISTRO_NAME": "x", "DISPLAY": ":4711"},
                            {"WAYLAND_DISPLAY": "wayland-0", "XDG_RUNTIME_DIR": self.folder, "DISPLAY": ":4711"}):
            self.problems("browser", status=DONE, state="ok", environment=environment)

    def test_a_browser_that_is_not_there(self):
        self.broken("browser", environment={"BROWSER": "no-such-browser"})

    def test_a_login_that_was_killed(self):
        os.makedirs(os.path.join(self.folder, ".local/share/applications"))
        entry = self.file(".local/share/applications/credmgr-login-x1.desktop", "[Desktop Entry]\n"
                          f"Exec={BINARY} redirect {self.home('run')} %u\nMimeType=x-scheme-handler/notes-app;\n")
        sentence = self.broken("browser")
        self.assertIn('"notes-app:"', sentence)
        self.assertFalse(os.path.exists(entry))

    # git.
    def test_a_configuration_that_git_cannot_read(self):
        self.settings("[user]\n\tname = Ada\nnonsense here\n")
        self.assertIn("bad config line 3", self.broken("git"))
        name = subprocess.run(["git", "config", "--global", "user.name"], env=self.environment, check=True,
                              capture_output=True, text=True)
        self.assertEqual(name.stdout, "Ada\n")

    def test_a_configuration_that_git_cannot_write(self):
        own = os.path.join(self.folder, ".gitconfig")
        nowhere = os.path.join(self.folder, "nowhere", "config")
        self.broken("git", environment={"GIT_CONFIG_GLOBAL": nowhere})
        self.assertIn("all is well", self.run_program("doctor", environment={
            "GIT_CONFIG_GLOBAL": os.path.join(self.folder, "new")}).err)
        del self.environment["GIT_CONFIG_GLOBAL"]
        os.mkdir(own)
        self.broken("git")
        os.symlink(nowhere, own)
        self.broken("git")
        self.credmgr("git-setup")

    def test_helpers_that_stand_in_the_way(self):
        self.ready()
        host = '[credential "https://127.0.0.1:4433"]\n'
        ours = f"[credential]\n\thelper = {BINARY} git-credential\n"
        for text in ("[credential]\n\thelper = store\n" + ours,
                     "[credential]\n\thelper = \"!f() { echo password=hidden-word; }; f\"\n" + ours,
                     ours + "[credential]\n\thelper =\n", ours + host + "\thelper =\n",
                     ours + host + "\thelper =\n\thelper = store\n",
                     ours + host.replace("https", "http") + "\thelper =\n\thelper = store\n",
                     ours.replace("credential]", 'credential "https://elsewhere.example"]') + "[credential]\n\thelper = a b\n",
                     "[credential]\n\thelper = /nowhere/credmgr git-credential\n"):
            self.settings(text)
            found = self.problems("git", status=USAGE)
            self.assertEqual(len(found), 1, found)
            self.mended(found[0])

    def test_a_helper_of_the_command_line(self):
        self.ready()
        self.credmgr("git-setup")
        self.broken("git", environment={
            "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "credential.helper", "GIT_CONFIG_VALUE_0": ""})

    def test_a_helper_of_the_repository_here(self):
        self.ready()
        self.credmgr("git-setup")
        below = os.path.join(self.folder, "below")
        os.mkdir(below)
        for arguments in (["init", "-q"], ["config", "--local", "credential.helper", ""]):
            subprocess.run(["git", *arguments], env=self.environment, check=True, cwd=self.folder)
        self.folder = below
        self.broken("git")

    def test_many_hosts_of_one_cause_are_one_finding(self):
        self.service = self.serve(OAuth2Server())
        for identifier, port in (("notes", 4433), ("more", 4434)):
            path = os.path.join(os.path.dirname(__file__), "descriptors", "git-host.yaml")
            self.credmgr("add-provider", path, "--as", identifier, "--client-id", "id", "--set",
                         f"port={self.service.port}", "--set", f"git_port={port}")
        subprocess.run(["git", "init", "-q", self.folder], env=self.environment, check=True)
        subprocess.run(["git", "config", "--local", "credential.helper", "store"], env=self.environment, check=True,
                       cwd=self.folder)
        found = [finding for finding in self.doctor() if finding["check"] == "git"]
        self.assertEqual(len(found), 1, found)
        self.assertIn("127.0.0.1:4434", found[0]["sentence"])
        self.mended(found[0])

    # docker.
    def docker(self, text):
        os.makedirs(self.environment["DOCKER_CONFIG"], exist_ok=True)
        return self.file("docker/config.json", text)

    def test_docker_s_configuration(self):
        self.docker("{")
        self.broken("docker")
        path = os.path.join(self.environment["DOCKER_CONFIG"], "config.json")
        os.remove(path + ".old")
        os.mkdir(path)
        self.broken("docker")
        shutil.rmtree(path + ".old")
        os.symlink("/nowhere/config.json", path)
        self.broken("docker")

    # Providers.
    def test_a_file_in_the_place_of_the_descriptors(self):
        os.makedirs(self.home("config"))
        self.file(self.home("config", "providers"), "")
        self.broken("home")

    @unittest.skipUnless(os.geteuid() == 0 and os.access("/usr/bin/setpriv", os.X_OK), "only the administrator can be anybody")
    def test_descriptors_in_a_closed_folder(self):
        os.chmod(self.folder, 0o755)
        os.chmod(self.environment["SSL_CERT_FILE"], 0o644)
        own = os.path.join(self.folder, "own")
        os.mkdir(own, 0o700)
        os.mkdir(own + "/.local", 0o700)
        providers = own + "/.config/credmgr/providers"
        os.makedirs(providers)
        for name in (own, own + "/.local", own + "/.config", own + "/.config/credmgr", providers):
            os.chown(name, 4242, 4242)
        for folder in (providers, os.path.dirname(providers), own + "/.config"):
            for mode in (0, 0o200, 0o300, 0o400, 0o600):
                if mode == 0o300 and folder.endswith(".config"):
                    continue
                os.chmod(folder, mode)
                found = self.as_stranger("credmgr doctor --json", HOME=own)
                problems = [finding for finding in found if finding["state"] == "problem"]
                self.assertEqual([finding["check"] for finding in problems], ["home"], (folder, oct(mode), problems))
                self.assertEqual(problems[0]["hints"], [f'run "chmod u+rwX {folder}"'])
                if mode != 0o300:
                    ended = self.as_stranger("credmgr providers gitlab 2>&1 | head -4 | jq -Rs .", HOME=own)
                    self.assertIn(f'error: "{folder}" cannot be used: permission denied', ended)
                    self.assertIn(f'hint: run "chmod u+rwX {folder}"', ended)
                again = self.as_stranger(f"chmod u+rwX {folder}\ncredmgr doctor --json", HOME=own)
                self.assertNotIn("problem", [finding["state"] for finding in again], again)

    @unittest.skipUnless(os.geteuid() == 0 and os.access("/usr/bin/setpriv", os.X_OK), "only the administrator can be anybody")
    def test_an_own_file_that_is_not_to_be_written(self):
        self.ready()
        os.chmod(self.folder, 0o755)
        os.chmod(self.environment["SSL_CERT_FILE"], 0o644)
        for folder, folders, names in os.walk(self.homes[-1]):
            for name in folders + names:
                os.lchown(os.path.join(folder, name), 4242, 4242)
        os.chown(self.homes[-1], 4242, 4242)
        file = self.home("vault", "vault.db")
        os.chmod(file, 0o400)
        environment = {"CREDMGR_HOME": self.homes[-1], "HOME": self.folder}
        problems = [finding for finding in self.as_stranger("credmgr doctor --json", **environment)
                    if finding["state"] == "problem"]
        self.assertEqual([(finding["sentence"], finding["hints"]) for finding in problems], [
            (f'"{file}" cannot be written: its mode does not let you', [f'run "chmod u+rwX {file}"'])])

    def test_a_mistake_in_what_others_extend_is_one_finding(self):
        os.makedirs(self.home("config", "providers"))
        path = self.home("config", "providers", "github.yaml")
        for text, words in (("provider: github\nextends: github\nendpointz: {}\n", ":3:1: unknown key \"endpointz\""),
                            ("provider: github\n", " is missing"), ("provider: [\n", "this is not YAML")):
            self.file(path, text)
            found = self.problems("descriptors", status=USAGE)
            self.assertEqual(len(found), 1, found)
            self.assertIn(path + ":", found[0]["sentence"])
            self.assertIn(words, found[0]["sentence"])
            self.assertEqual(self.mended(found[0]), [])

    def test_rules_for_nobody(self):
        os.makedirs(self.home("config"))
        path = self.home("config", "accounts.yaml")
        rule = "rules:\n  - account: ada\n    provider: %s\n    for: https://github.com/acme\n"
        self.file(path, rule % "githb")
        found = self.problems("rules", status=USAGE)
        self.assertEqual([finding["sentence"] for finding in found], [
            f'line 3 of "{path}" names the provider "githb", and there is none (did you mean "github"?)'])
        self.mended(found[0])
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), rule % "github")
        self.file(path, rule % "something-else")
        self.broken("rules")
    def test_a_descriptor_in_the_place_of_a_shipped_one(self):
        os.makedirs(self.home("config", "providers"))
        with open(self.home("config", "providers", "github.yaml"), "w", encoding="utf-8") as file:
            file.write("provider: github\ngrant: client_credentials\nendpoints: { token: https://a.example/t }\n")
        self.broken("descriptors", status=DONE, state="note")

    def test_descriptors_that_are_gone(self):
        for logs_in in (False, True):
            self.service = self.serve(OAuth2Server())
            self.provider = self.add("git-host", self.service, oauth2_server.PUBLIC_CLIENT, git_port=4433)
            if logs_in:
                self.credmgr("login", self.provider, "--account", ADA)
            os.remove(self.home("config", "providers", self.provider + ".yaml"))
            self.broken("descriptors")

    def test_a_variable_that_the_descriptor_has_no_more(self):
        self.ready()
        path = self.home("config", "providers", self.provider + ".yaml")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("git_port", text)
        with open(path, "w", encoding="utf-8") as file:
            for line in text.splitlines(keepends=True):
                if "git_port" not in line:
                    file.write(line)
        self.broken("descriptors")

    def test_rules_that_cannot_be_read(self):
        os.makedirs(self.home("config"))
        self.file(self.home("config", "accounts.yaml"), "rulez: []\n")
        sentence = self.broken("rules")
        self.assertIn("did you mean", sentence)
        self.assertIn("is missing", sentence)

    # The network.
    def test_variables_of_the_network(self):
        del self.environment["SSL_CERT_FILE"]
        self.broken("certificates", environment={"SSL_CERT_FILE": "/nowhere"})
        self.broken("certificates", environment={"SSL_CERT_FILE": self.file("none.pem", "")})
        self.broken("certificates", environment={"SSL_CERT_DIR": "/nowhere"})
        for proxy in ("gopher://proxy.example", "http://proxy.example:99999", "http://proxy.example:", "http://:3128",
                      "http://[::1]x", "no proxy"):
            self.broken("proxy", environment={"all_proxy": proxy})
        for proxy in ("proxy.example", "http://proxy.example:3128/", "http://ada:x@[::1]:3128", "socks5h://[::1]"):
            self.problems("proxy", status=DONE, state="ok", environment={"all_proxy": proxy})


class Network(Doctor):
    def serve_at(self, date):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_HEAD(self):
                self.send_response_only(404)
                self.send_header("Date", date or self.date_time_string())
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server.server_port

    def provider_at(self, port):
        self.credmgr("add-provider", os.path.join(os.path.dirname(__file__), "descriptors", "git-host.yaml"), "--replace",
                     "--client-id", "id", "--set", f"port={port}", "--set", "git_port=4433")
        return "git-host"

    def test_a_server_that_answers(self):
        found = self.problems("network", self.provider_at(self.serve_at(None)), status=DONE, state="ok")
        self.assertIn("answers", found[0]["sentence"])

    def test_without_being_asked_nothing_is_sent(self):
        self.provider_at(1)
        self.doctor()

    def test_a_server_that_does_not_answer(self):
        found = self.problems("network", "--reach", self.provider_at(1), status=UNREACHABLE)
        self.assertIn("127.0.0.1", found[0]["sentence"])

    def test_a_proxy_that_leads_nowhere(self):
        self.credmgr("add-provider", self.file("far.yaml", "provider: far\ngrant: client_credentials\n"
                     "client: { authentication: none }\nendpoints: { token: https://far.invalid/token }\n"),
                     "--client-id", "id")
        # Without it there is no such host, so that this one cannot be followed to its end.
        found = self.problems("network", "far", status=UNREACHABLE, environment={
            "https_proxy": "http://127.0.0.1:1", "all_proxy": "nonsense"})
        self.assertIn('run "unset https_proxy all_proxy"', found[0]["hints"][0])

    def test_another_clock(self):
        port = self.serve_at("Sun, 06 Nov 1994 08:49:37 GMT")
        self.assertIn("ahead of", self.problems("clock", self.provider_at(port), status=USAGE)[0]["sentence"])

    def test_an_unknown_provider(self):
        self.assertIn("did you mean", self.credmgr("doctor", "githb", status=USAGE).err)
