"""`credmgr doctor` finds each deliberate fault, and following its hints literally repairs it."""

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
from program import (
    BINARY, DESCRIPTORS, DONE, LOCKED, LOGIN_NEEDED, ROOT, UNREACHABLE, USAGE, ProgramTest, installed, text_of,
)

ADA = ProgramTest.accounts[0]
FAKETIME = "/usr/bin/faketime"
# A fake clock works only in a dynamically linked program, which this one always is.
ONLINE = os.path.join(os.path.dirname(BINARY), "credmgr-online")
PASSPHRASE = "correct horse battery"
CHECKS = {"home", "vault", "accounts", "clock", "browser", "keyring", "programs", "git", "docker", "descriptors", "hosts",
          "rules", "certificates", "proxy", "network"}
CAN_BE_ANYBODY = unittest.skipUnless(os.geteuid() == 0 and os.access("/usr/bin/setpriv", os.X_OK),
                                     "only the administrator can be anybody")
WITH_FAKETIME = unittest.skipUnless(os.access(FAKETIME, os.X_OK), "there is no faketime")


class Doctor(ProgramTest):
    shipped = "github", "gitlab"

    def setUp(self):
        super().setUp()
        # The tests must not depend on this machine's configuration.
        self.environment["SSL_CERT_FILE"] = self.file("roots.pem", "-----BEGIN CERTIFICATE-----\n")
        self.environment["DOCKER_CONFIG"] = os.path.join(self.folder, "docker")
        self.programs = os.path.join(self.folder, "bin")
        os.mkdir(self.programs)
        # This sudo does not ask for a password.
        self.program("sudo", 'exec "$@"')
        self.environment["PATH"] = self.programs + ":" + self.environment["PATH"]
        self.environment.update(W=self.folder, H=self.homes[-1], B=self.binary)

    def ready(self):
        self.service = self.serve(OAuth2Server())
        self.provider = self.add("git-host", self.service, oauth2_server.PUBLIC_CLIENT, git_port=4433)
        self.credmgr("login", self.provider, "--account", ADA)
        self.token = self.credmgr("token", self.provider).line

    def home(self, *parts):
        return os.path.join(self.homes[-1], *parts)

    def findings(self, text):
        found = json.loads(text)
        for finding in found:
            self.assertEqual(set(finding), {"version", "check", "state", "sentence", "hints"})
            self.assertIn(finding["check"], CHECKS)
            self.assertIn(finding["state"], {"ok", "note", "problem"})
            if finding["state"] == "problem":
                self.assertTrue(finding["hints"] or finding["check"] in ("network", "vault"), finding)
        for secret in ("hidden-word", getattr(self, "token", "hidden-word")):
            self.assertNotIn(secret, text)
        return found

    def shell(self, script, *arguments, environment=None):
        """Returns the doctor's findings and exit status in a shell that first runs some commands."""
        ended = subprocess.run(
            ["bash", "-c", "\n".join(["set -e", script, "set +e", " ".join(["credmgr", "doctor", "--json", *arguments])])],
            env={**self.environment, **(environment or {})}, cwd=self.folder, check=False, stdin=subprocess.DEVNULL,
            capture_output=True, text=True)
        self.assertTrue(ended.stdout, ended.stderr)
        return self.findings(ended.stdout[ended.stdout.index("[\n"):]), ended.returncode

    def doctor(self, *arguments, status=DONE, environment=None):
        outcome = self.run_program("doctor", "--json", *arguments, environment=environment)
        self.assertEqual((outcome.status, outcome.err), (status, ""), outcome.out)
        return self.findings(outcome.out)

    def problems(self, check, *arguments, status, state="problem", environment=None):
        found = self.doctor(*arguments, status=status, environment=environment)
        chosen = [finding for finding in found if finding["check"] == check and finding["state"] == state]
        self.assertTrue(chosen, found)
        return chosen

    def mended(self, finding, *arguments, environment=None, exports=""):
        """Follows the hints in a shell, after which the doctor must not find the same again."""
        commands = [match.group(1) for hint in finding["hints"] if (match := re.search(r'run "([^"]*)"', hint))]
        commands = [command for command in commands if not command.startswith(("credmgr check", "credmgr providers"))]
        self.assertTrue(commands, finding)
        found, _ = self.shell("\n".join([exports, *commands]), *arguments, environment=environment)
        self.assertNotIn(finding["sentence"], [other["sentence"] for other in found])
        return [other for other in found if other["state"] == "problem"]

    def program(self, name, text="exit 1"):
        path = os.path.join(self.programs, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)

    def everything(self):
        """Returns every file below the directory, with its content and time of change."""
        seen = {}
        for folder, folders, names in os.walk(self.folder):
            for path in (os.path.join(folder, name) for name in folders + names):
                status = os.lstat(path)
                content = b""
                if os.path.isfile(path) and not os.path.islink(path):
                    with open(path, "rb") as file:
                        content = file.read()
                seen[path] = (status.st_mode, status.st_mtime_ns, hashlib.sha256(content).hexdigest())
        return seen


# Each row breaks a setup with a script, follows the doctor's hints literally, and runs the doctor again, which must
# find no fault in that check. A row has: the name of the test; the check; the text of its one finding; the script;
# commands for the shell (`export`); and whether an account exists (`ready`), the status and the state. $W is the
# directory of the test, $H the home, $B the program.
OURS = r"[credential]\n\thelper = '$B' git-credential\n"
HOST = r'[credential "https://127.0.0.1:4433"]\n'
RULE = r"rules:\n  - account: ada\n    provider: %s\n    for: https://github.com/acme\n"
UNREAD = "export CREDMGR_PASSPHRASE_FILE="
READY = {"ready": True}


def put(text, path):
    return f"mkdir -p \"$(dirname {path})\"; printf '{text}' >{path}"


def git(text):
    return put(text, "$W/gitconfig")


BROKEN = [
    ("home_is_relative", "home", "an absolute path", "", "export CREDMGR_HOME=box", {}),
    ("home_is_below_a_tilde", "home", "an absolute path", "", "export CREDMGR_HOME='~/box'", {}),
    ("home_is_a_tilde", "home", "an absolute path", "", "export CREDMGR_HOME='~'", {}),
    ("home_is_a_file", "home", "is not a directory", "touch $W/file", "export CREDMGR_HOME=$W/file", {}),
    ("vault_is_open", "home", "other users can read", "chmod 755 $H/vault", "", READY),
    ("descriptor_is_open", "home", "git-host.yaml", "chmod 666 $H/config/providers/git-host.yaml", "", READY),
    ("vault_is_a_link", "home", "symbolic link", "mv $H/vault $W/elsewhere; ln -s $W/elsewhere $H/vault", "", READY),
    ("vault_file_is_a_link", "home", "symbolic link",
     "mkdir $W/elsewhere; rm $H/vault/vault.db; ln -s $W/elsewhere $H/vault/vault.db", "", READY),
    ("vault_is_a_file", "home", "is not a directory", "mkdir -m 700 $H; touch $H/vault", "", {}),
    ("providers_are_a_file", "home", "is not a directory", "mkdir -p -m 700 $H/config; touch $H/config/providers", "", {}),
    ("folder_above_is_open", "home", "other users can change", "chmod 777 $W", "", {}),
    ("missing_key_file", "vault", "key file", "rm $H/vault/vault.key", "", {**READY, "status": LOCKED}),
    ("vault_is_empty", "vault", "vault.db", put("", "$H/vault/vault.db") + "; chmod -R go= $H", "", {"status": LOCKED}),
    ("vault_is_none", "vault", "vault.db", put("none", "$H/vault/vault.db") + "; chmod -R go= $H", "", {"status": LOCKED}),
    ("vault_is_another_s", "vault", "vault.db", put(r"SQLite format 3\0", "$H/vault/vault.db") + "; chmod -R go= $H", "",
     {"status": LOCKED}),
    ("log_is_a_folder", "vault", "vault.log", "rm -f $H/vault/vault.log; mkdir -m 700 $H/vault/vault.log", "", {**READY, "status": LOCKED}),
    ("passphrase_is_nowhere", "vault", "does not exist", "", UNREAD + "/nowhere", READY),
    ("passphrase_is_empty", "vault", "which is empty", "touch $W/empty", UNREAD + "$W/empty", READY),
    ("passphrase_is_a_line", "vault", "which is empty", r"printf '\r\n' >$W/line", UNREAD + "$W/line", READY),
    ("passphrase_is_a_folder", "vault", "regular file", "", UNREAD + "$W", READY),
    ("passphrase_is_open", "vault", "can read the passphrase", "chmod 755 $W; echo hidden-word >$W/p; chmod 644 $W/p",
     UNREAD + "$W/p", {**READY, "status": DONE, "state": "note"}),
    ("account_that_is_not_logged_in", "accounts", "nobody", "", "export CREDMGR_ACCOUNT=nobody", READY),
    ("missing_browser", "browser", "no-such-browser", "", "export BROWSER=no-such-browser", {}),
    ("login_was_killed", "browser", '"notes-app:"', put(
        r"[Desktop Entry]\nExec='$B' redirect '$H'/run %%u\nMimeType=x-scheme-handler/notes-app;\n",
        "$W/.local/share/applications/credmgr-login-x1.desktop"), "", {}),
    ("git_does_not_ask", "git", "does not ask", "", "", {**READY, "status": DONE, "state": "note"}),
    ("git_config_has_a_mistake", "git", "bad config line 3", git(r"[user]\n\tname = Ada\nnonsense here\n"), "", {}),
    ("git_config_is_nowhere", "git", "not found", "", "export GIT_CONFIG_GLOBAL=$W/nowhere/config", {}),
    ("git_config_is_a_folder", "git", "regular file", "mkdir $W/.gitconfig", "unset GIT_CONFIG_GLOBAL", {}),
    ("git_config_is_a_link", "git", "link", "ln -s $W/nowhere/config $W/.gitconfig", "unset GIT_CONFIG_GLOBAL", {}),
    ("git_asks_another_first", "git", "store --file=x", git(r"[credential]\n\thelper = store --file=x\n" + OURS), "", READY),
    ("git_tells_another", "git", "store --file=x", git(OURS + r"[credential]\n\thelper = store --file=x\n"), "", READY),
    ("git_tells_another_of_a_path", "git", "libsecret",
     git(OURS + HOST.replace("4433", "4433/team") + r"\thelper = libsecret\n"), "", READY),
    ("git_tells_another_of_a_repository", "git", "store --file=x",
     git(OURS) + "; cd $W; git init -q; git config --local credential.helper 'store --file=x'", "", READY),
    ("git_runs_a_shell_first", "git", "…",
     git(r'[credential]\n\thelper = "!f() { echo password=hidden-word; }; f"\n' + OURS), "", READY),
    ("git_sends_ours_away", "git", "disables it", git(OURS + r"[credential]\n\thelper =\n"), "", READY),
    ("git_asks_no_helper_for_a_host", "git", "git asks no helper", git(OURS + HOST + r"\thelper =\n"), "", READY),
    ("git_asks_another_for_a_host", "git", "store", git(OURS + HOST + r"\thelper =\n\thelper = store\n"), "", READY),
    ("git_asks_another_for_a_host_without_tls", "git", "store",
     git(OURS + HOST.replace("https", "http") + r"\thelper =\n\thelper = store\n"), "", READY),
    ("git_asks_us_elsewhere_alone", "git", "a b", git(OURS.replace("credential]", 'credential "https://elsewhere.example"]')
     + r"[credential]\n\thelper = a b\n"), "", READY),
    ("git_names_a_missing_program", "git", "/nowhere/credmgr", git(r"[credential]\n\thelper = /nowhere/credmgr git-credential\n"),
     "", {}),
    ("git_is_told_on_the_command_line", "git", "disables it", git(OURS), "export GIT_CONFIG_COUNT=1 "
     "GIT_CONFIG_KEY_0=credential.helper GIT_CONFIG_VALUE_0=", READY),
    ("docker_misses_our_program", "docker", "docker-credential-credmgr", put('{"credsStore": "credmgr"}',
     "$DOCKER_CONFIG/config.json"), "", {}),
    ("docker_misses_a_program", "docker", "docker-credential-nosuch", "ln -s $B $W/bin/docker-credential-credmgr; "
     + put('{"credHelpers": {"registry.example": "nosuch"}}', "$DOCKER_CONFIG/config.json"), "", {}),
    ("docker_misses_its_store", "docker", "docker-credential-nosuch", "ln -s $B $W/bin/docker-credential-credmgr; "
     + put('{"credsStore": "nosuch"}', "$DOCKER_CONFIG/config.json"), "", {}),
    ("docker_config_is_not_json", "docker", "not a JSON", put("{", "$DOCKER_CONFIG/config.json"), "", {}),
    ("docker_config_is_a_folder", "docker", "regular file", "mkdir -p $DOCKER_CONFIG/config.json", "", {}),
    ("docker_config_is_a_link", "docker", "link", "mkdir $DOCKER_CONFIG; ln -s /nowhere/x $DOCKER_CONFIG/config.json", "", {}),
    ("descriptor_extends_nothing", "descriptors", "no-such-base", put(r"provider: broken\nextends: no-such-base\n",
     "$H/config/providers/broken.yaml"), "", {}),
    ("mistake_in_an_extended_descriptor", "descriptors", ':3:1: unknown key "endpointz"',
     put(r"provider: github\nextends: github\nendpointz: {}\n", "$H/config/providers/github.yaml"), "", {}),
    ("base_without_keys", "descriptors", "is missing", put(r"provider: github\n", "$H/config/providers/github.yaml"), "", {}),
    ("base_is_not_yaml", "descriptors", "invalid YAML", put(r"provider: [\n", "$H/config/providers/github.yaml"), "", {}),
    ("descriptor_hides_a_shipped_one", "descriptors", "replaces the built-in", put(
        r"provider: github\ngrant: client_credentials\nendpoints: { token: https://a.example/t }\n",
        "$H/config/providers/github.yaml"), "", {"status": DONE, "state": "note"}),
    ("missing_descriptor", "descriptors", "is missing", "rm $H/config/providers/git-host.yaml", "", READY),
    ("missing_descriptor_without_accounts", "descriptors", "is missing", "credmgr logout git-host --keep-remote 2>$W/said; "
     "rm $H/config/providers/git-host.yaml", "", READY),
    ("descriptor_has_a_variable_less", "descriptors", "other variables",
     "sed -i /git_port/d $H/config/providers/git-host.yaml", "", READY),
    ("rules_have_mistakes", "rules", "is missing", put(r"rulez: []\n", "$H/config/accounts.yaml"), "", {}),
    ("rule_for_a_mistyped_provider", "rules", 'line 3 of', put(RULE % "githb", "$H/config/accounts.yaml"), "", {}),
    ("rule_for_no_provider", "rules", "something-else", put(RULE % "something-else", "$H/config/accounts.yaml"), "", {}),
    ("rule_for_another_host", "rules", "never applies to git",
     put(RULE.replace("ada", ADA) % "git-host", "$H/config/accounts.yaml"), "", READY),
    ("certificates_are_nowhere", "certificates", "cannot be read", "", "export SSL_CERT_FILE=/nowhere", {}),
    ("certificates_are_none", "certificates", "no certificate", "touch $W/none", "export SSL_CERT_FILE=$W/none", {}),
    ("certificates_are_no_folder", "certificates", "not a directory", "", "unset SSL_CERT_FILE; export SSL_CERT_DIR=/nowhere", {}),
]
for number, proxy in enumerate(("gopher://proxy.example", "http://proxy.example:99999", "http://proxy.example:",
                                "http://:3128", "http://[::1]x", "no proxy")):
    BROKEN.append((f"proxy_is_none_{number}", "proxy", "not a supported proxy", "", f"export all_proxy='{proxy}'", {}))
for number, display in enumerate(("DISPLAY=:4711", "DISPLAY=unix:4711.0", "DISPLAY=garbage",
                                  "WAYLAND_DISPLAY=wayland-4711 XDG_RUNTIME_DIR=$W")):
    BROKEN.append((f"display_is_not_there_{number}", "browser", "does not exist", "ln -s $B $W/bin/xdg-open",
                   f"unset BROWSER; export {display}", {}))

WELL = [
    ("git", git(OURS), "", "git asks credmgr first"),
    ("git", git(r'[credential "https://elsewhere.example"]\n\thelper = store\n' + OURS), "", "git asks credmgr first"),
    ("git", git(r"[credential]\n\thelper = credmgr\n") + "; ln -s $B $W/bin/git-credential-credmgr", "", "first"),
    ("git", git(""), "export GIT_CONFIG_GLOBAL=$W/new", ""),
    ("docker", put('{"credsStore": "credmgr"}', "$DOCKER_CONFIG/config.json")
     + "; ln -sf $B $W/bin/docker-credential-credmgr", "", "docker asks credmgr"),
    ("browser", "ln -s $B $W/bin/xdg-open", "unset BROWSER; export DISPLAY=elsewhere.example:0", ""),
    ("browser", "", "unset BROWSER; export WSL_DISTRO_NAME=x DISPLAY=:4711", ""),
    ("browser", "touch $W/wayland-0", "export WAYLAND_DISPLAY=wayland-0 XDG_RUNTIME_DIR=$W DISPLAY=:4711", ""),
    ("browser", "rm $W/bin/xdg-open", "unset BROWSER", "no display"),
    ("browser", "", "unset BROWSER; export SSH_CONNECTION='a b c d'", "SSH"),
    ("proxy", "", "export all_proxy=proxy.example", '"http://proxy.example"'),
    ("proxy", "", "export all_proxy=http://proxy.example:3128/", ""),
    ("proxy", "", "export https_proxy=http://ada:hidden-word@proxy.example:3128", '"http://proxy.example:3128"'),
    ("proxy", "", "export all_proxy=http://ada:hidden-word@[::1]:3128", ""),
    ("proxy", "", "export all_proxy=socks5h://[::1]", ""),
]


class Mended(Doctor):
    def broken(self, check, words, script, exports="", ready=False, status=USAGE, state="problem"):
        if ready:
            self.ready()
        found, ended = self.shell(script + "\n" + exports)
        chosen = [finding for finding in found if (finding["check"], finding["state"]) == (check, state)]
        self.assertEqual((len(chosen), ended), (1, status), found)
        self.assertIn(words, chosen[0]["sentence"])
        rest = self.mended(chosen[0], exports=exports)
        self.assertEqual([other["check"] for other in rest if other["check"] == check], [], rest)

    def test_a_correct_setup(self):
        for check, script, exports, words in WELL:
            with self.subTest(check=check, script=script, exports=exports):
                found, status = self.shell(script + "\n" + exports)
                self.assertEqual(status, DONE, found)
                self.assertIn(words, [finding["sentence"] for finding in found if finding["check"] == check][0])


for name, *row, options in BROKEN:
    setattr(Mended, "test_" + name, lambda self, row=row, options=options: self.broken(*row, **options))


class Whole(Doctor):
    def test_nothing_is_changed(self):
        before = self.everything()
        states = {finding["check"]: finding["state"] for finding in self.doctor()}
        self.assertEqual(before, self.everything())
        self.assertNotIn("problem", states.values())
        self.assertEqual(states["vault"], "note")
        self.ready()
        self.credmgr("git-setup")
        self.doctor()
        before = self.everything()
        outcome = self.credmgr("doctor")
        self.assertEqual(before, self.everything())
        self.assertEqual(outcome.err, "credmgr: no problems found\n")
        self.assertNotIn("\x1b", outcome.out)
        for check in ("home", "vault", "accounts", "git", "descriptors", "certificates"):
            self.assertRegex(outcome.out, rf"(?m)^ok +{check} ")

    def test_colour_depends_on_the_terminal_and_no_color(self):
        for more, expected in (({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False),
                               ({"TERM": "dumb"}, False)):
            terminal = self.terminal("doctor", environment={**self.environment, **more})
            self.assertEqual(terminal.end(), DONE)
            self.assertIn("home", terminal.seen)
            self.assertEqual("\x1b[" in terminal.seen, expected, more)
            for line in terminal.seen.splitlines():
                if " run \"" not in line:
                    shown = re.sub(r"\x1b\[[0-9;]*m", "", line)
                    # A path is one word and is not wrapped.
                    self.assertTrue(len(shown) <= 80 or max(map(len, shown.split())) > 40, shown)

    def test_git_setup_reports_the_same_fault(self):
        self.ready()
        self.credmgr("git-setup")
        with open(self.environment["GIT_CONFIG_GLOBAL"], "a", encoding="utf-8") as file:
            file.write("[credential]\n\thelper =\n")
        finding = [finding for finding in self.shell("")[0] if finding["check"] == "git"][0]
        self.assertIn(finding["sentence"], self.credmgr("git-setup").err)
        self.mended(finding)
        self.problems("git", status=DONE, state="ok")

    def test_a_rule_for_an_account_without_a_login(self):
        self.ready()
        self.credmgr("use", self.provider, ADA, "--for", "https://127.0.0.1:4433/team")
        self.doctor()
        found, status = self.shell(f"sed -i s/{ADA}/somebody/ $H/config/accounts.yaml")
        self.assertEqual(status, LOGIN_NEEDED)
        self.assertIn("somebody", str([finding for finding in found if finding["check"] == "rules"]))

    def test_a_rule_for_a_file(self):
        self.ready()
        later = os.path.join(self.folder, "later")
        os.mkdir(later)
        self.credmgr("use", self.provider, ADA, "--in", later)
        self.doctor()
        os.rmdir(later)
        self.file("later", "a file\n")
        found, _ = self.shell("")
        self.assertIn("not a directory", str([finding for finding in found if finding["check"] == "rules"]))
        self.credmgr("use", self.provider, "--remove")

    def test_passwords_that_docker_keeps_readable(self):
        found, status = self.shell(put('{"auths": {"registry.example": {"auth": "aGlkZGVuOndvcmQ="}}}',
                                       "$DOCKER_CONFIG/config.json"))
        self.assertEqual(status, DONE)
        self.assertNotIn("aGlkZGVuOndvcmQ=", str(found))
        self.assertEqual([finding["hints"] for finding in found if finding["check"] == "docker"],
                         [['run "docker logout registry.example"']])

    def test_a_moved_login_that_docker_does_not_ask_for(self):
        os.symlink(self.binary, os.path.join(self.programs, "docker-credential-credmgr"))
        os.mkdir(self.environment["DOCKER_CONFIG"])
        for name in ("https://index.docker.io/v1/", "registry.example"):
            self.file("docker/config.json", json.dumps({
                "auths": {name: {"auth": "aGlkZGVuOndvcmQ="}}, "credHelpers": {"ghcr.io": "credmgr"}}))
            self.credmgr("import", "docker", "--remove")
        # No registry has confirmed them, so the import left them here as well.
        self.file("docker/config.json", json.dumps({"credHelpers": {"ghcr.io": "credmgr"}}))
        finding, = self.problems("docker", status=DONE, state="note")
        self.assertEqual(finding["sentence"], 'docker does not ask credmgr for "https://index.docker.io/v1/", "registry.example"')
        self.mended(finding)
        self.assertEqual(json.loads(text_of(os.path.join(self.environment["DOCKER_CONFIG"], "config.json")))["credHelpers"], {
            "ghcr.io": "credmgr", "https://index.docker.io/v1/": "credmgr", "registry.example": "credmgr"})

    def test_a_registry_with_another_helper(self):
        self.service = self.serve(OAuth2Server())
        self.add("registry", self.service, oauth2_server.PUBLIC_CLIENT, registry_port=4434)
        self.program("docker-credential-desktop")
        os.symlink(self.binary, os.path.join(self.programs, "docker-credential-credmgr"))
        os.mkdir(self.environment["DOCKER_CONFIG"])
        given = {"credsStore": "desktop", "auths": {}, "proxies": {"default": {"noProxy": "1.50"}}}
        file = self.file("docker/config.json", json.dumps(given))
        self.mended(self.problems("docker", status=DONE, state="note")[0])
        with open(file, encoding="utf-8") as text:
            self.assertEqual(json.load(text), {**given, "credHelpers": {"127.0.0.1:4434": "credmgr"}})
        self.credmgr("docker-credential", "setup", "--remove")
        with open(file, encoding="utf-8") as text:
            self.assertEqual(json.load(text), given)

    def test_one_cause_of_many_hosts_and_in_a_repository(self):
        self.service = self.serve(OAuth2Server())
        for identifier, port in (("notes", 4433), ("more", 4434)):
            self.credmgr("add-provider", os.path.join(DESCRIPTORS, "git-host.yaml"), "--as", identifier, "--client-id",
                         "id", "--set", f"port={self.service.port}", "--set", f"git_port={port}")
        subprocess.run(["git", "init", "-q", self.folder], env=self.environment, check=True)
        for before, helper, below, status in (("true", "store", ".", DONE), ("credmgr git-setup", "''", "below", USAGE)):
            script = f"{before} 2>/dev/null; git config --local credential.helper {helper}; mkdir -p below; cd {below}"
            found, ended = self.shell(script)
            found = [finding for finding in found if finding["check"] == "git"]
            self.assertEqual((len(found), ended), (1, status), found)
            self.mended(found[0], exports=f"cd {below}")
            if helper == "store":
                self.assertIn("127.0.0.1:4434", found[0]["sentence"])

    def test_parts_that_are_missing(self):
        tree = os.path.join(self.folder, "prefix")
        os.makedirs(os.path.join(tree, "share/credmgr/providers"))
        program, online = installed("credmgr", os.path.join(tree, "bin")), installed("credmgr-online", os.path.join(tree, "libexec/credmgr"))
        descriptor = os.path.join(tree, "share/credmgr/providers/notes.yaml")

        def run(*arguments):
            return subprocess.run([program, *arguments], env=self.environment, cwd=self.folder, check=False,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)

        def missing():
            return [(finding["state"], finding["sentence"]) for finding in self.findings(run("doctor", "--json").stdout)
                    if finding["check"] == "programs" and finding["hints"]]
        self.assertEqual(missing(), [("problem", f'no built-in descriptors found in "{os.path.dirname(descriptor)}"')])
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write("provider: notes\ngrant: client_credentials\nendpoints: { token: https://a.example/t }\n")
        self.assertEqual(missing(), [])
        os.remove(online)
        self.assertRegex(run("doctor").stderr, r'"credmgr-online" is missing(.|\n)*hint: .*run "(sudo dpkg -i|tar -xf) credmgr')


class OtherUsers(Doctor):
    """Homes that belong to another user or are read-only."""

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        os.chmod(self.environment["SSL_CERT_FILE"], 0o644)

    def give(self, folder):
        for place, folders, names in os.walk(folder):
            for name in folders + names:
                os.lchown(os.path.join(place, name), 4242, 4242)

    def as_stranger(self, script, **environment):
        """Returns a shell of a user that the machine does not know."""
        shown = {"PATH": self.environment["PATH"], "SSL_CERT_FILE": self.environment["SSL_CERT_FILE"], **environment}
        command = ["setpriv", "--reuid=4242", "--regid=4242", "--clear-groups", "bash", "-c", script]
        ended = subprocess.run(command, env=shown, cwd="/", check=False, stdin=subprocess.DEVNULL,
                               capture_output=True, text=True)
        try:
            return json.loads(ended.stdout)
        except json.JSONDecodeError:
            self.fail(ended.stdout + ended.stderr)

    def problems_of_stranger(self, script="true", **environment):
        found = self.as_stranger(f"{script}\ncredmgr doctor --json", **environment)
        return found, [finding for finding in found if finding["state"] == "problem"]

    @unittest.skipUnless(os.geteuid() == 0, "only the administrator gives files away")
    def test_files_of_another_user_are_one_finding(self):
        self.ready()
        self.give(self.homes[-1])
        found = [finding for finding in self.doctor(status=USAGE) if finding["state"] == "problem"]
        self.assertEqual([finding["check"] for finding in found], ["home"], found)
        self.assertEqual(self.mended(found[0]), [])
        self.assertEqual(self.credmgr("token", self.provider).line, self.token)

    @CAN_BE_ANYBODY
    def test_a_user_without_a_home(self):
        self.addCleanup(shutil.rmtree, "/var/tmp/credmgr-4242", ignore_errors=True)
        closed = os.path.join(self.folder, "closed")
        os.mkdir(closed, 0o700)
        own = os.path.join(self.folder, "own")
        os.mkdir(own, 0o500)
        os.chown(own, 4242, 4242)
        for environment in ({}, {"HOME": "/nonexistent-home"}, {"HOME": closed}, {"HOME": own},
                            {"HOME": own, "CREDMGR_HOME": closed}):
            found, problems = self.problems_of_stranger(**environment)
            self.assertEqual([finding["check"] for finding in problems], ["home"], environment)
            # The checks that need no home still ran.
            for check in ("programs", "certificates", "proxy", "git", "docker", "clock"):
                self.assertIn(check, [finding["check"] for finding in found])
            command = re.search(r'run "([^"]*)"', problems[0]["hints"][0]).group(1)
            self.assertEqual(self.problems_of_stranger(command, **environment)[1], [], environment)
            os.chmod(own, 0o500)

    @CAN_BE_ANYBODY
    def test_commands_without_a_home(self):
        for command in ("check " + os.path.join(ROOT, "providers/github.yaml"), "providers",
                        "providers github", "completion bash", "completion words token git"):
            self.assertEqual(self.as_stranger(f"credmgr {command} >/dev/null 2>&1; echo $?"), DONE, command)
        self.assertEqual(self.as_stranger("credmgr status >/dev/null 2>&1; echo $?"), USAGE)

    @CAN_BE_ANYBODY
    def test_descriptors_in_a_closed_directory(self):
        own = os.path.join(self.folder, "own")
        providers = own + "/.config/credmgr/providers"
        os.makedirs(providers)
        os.makedirs(own + "/.local")
        os.chown(own, 4242, 4242)
        self.give(own)
        for folder in (providers, os.path.dirname(providers), own + "/.config"):
            for mode in (0, 0o200, 0o300, 0o400, 0o600):
                if mode == 0o300 and folder.endswith(".config"):
                    continue
                os.chmod(folder, mode)
                _, problems = self.problems_of_stranger(HOME=own)
                self.assertEqual([(finding["check"], finding["hints"]) for finding in problems],
                                 [("home", [f'run "chmod u+rwX {folder}"'])], (folder, oct(mode)))
                if mode != 0o300:
                    ended = self.as_stranger("credmgr providers gitlab 2>&1 | head -4 | jq -Rs .", HOME=own)
                    self.assertIn(f'error: cannot use "{folder}": permission denied', ended)
                    self.assertIn(f'hint: run "chmod u+rwX {folder}"', ended)
                self.assertEqual(self.problems_of_stranger(f"chmod u+rwX {folder}", HOME=own)[1], [])

    @CAN_BE_ANYBODY
    def test_a_read_only_file_of_the_user(self):
        self.ready()
        self.give(self.homes[-1])
        os.chown(self.homes[-1], 4242, 4242)
        file = self.home("vault", "vault.db")
        os.chmod(file, 0o400)
        _, problems = self.problems_of_stranger(CREDMGR_HOME=self.homes[-1], HOME=self.folder)
        self.assertEqual([(finding["sentence"], finding["hints"]) for finding in problems], [
            (f'cannot use "{file}": permission denied', [f'run "chmod u+rwX {file}"'])])

    @unittest.skipUnless(subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode == 0,
                         "nothing can be mounted here")
    def test_read_only_homes(self):
        place = os.path.join(self.folder, "small")
        os.mkdir(place)
        for mount, words in ((f"mount --bind {place} {place} && mount -o remount,ro,bind {place}", "read-only"),
                             (f"mount -t tmpfs -o size=64k none {place}", "is full")):
            script = f"{mount} || exit\ncredmgr doctor --json\necho ,\nunset CREDMGR_HOME\ncredmgr doctor --json"
            ended = subprocess.run(["unshare", "-m", "bash", "-c", script], check=False, cwd=self.folder,
                                   env={**self.environment, "CREDMGR_HOME": place + "/box"},
                                   stdin=subprocess.DEVNULL, capture_output=True, text=True)
            found, again = json.loads(f"[{ended.stdout}]")
            problems = [finding for finding in found if finding["state"] == "problem"]
            self.assertEqual([finding["check"] for finding in problems], ["home"], ended.stderr)
            self.assertIn(words, problems[0]["sentence"])
            if words == "read-only":
                self.assertEqual(problems[0]["hints"], ['run "unset CREDMGR_HOME"'])
            self.assertNotIn("problem", [finding["state"] for finding in again])


class Vault(Doctor):
    def passphrase(self, name, text):
        return {"CREDMGR_PASSPHRASE_FILE": self.file(name, text + "\n")}

    def test_no_prompt_for_a_passphrase(self):
        self.ready()
        right, wrong = self.passphrase("passphrase", PASSPHRASE), self.passphrase("wrong", "another")
        self.credmgr("vault", "protect", "passphrase", environment=right)
        os.remove(self.home("vault", "vault.key"))
        # The key file was made again, and is then removed on purpose.
        self.mended(self.problems("vault", status=LOCKED, environment=right)[0], environment=right)
        self.assertEqual(self.credmgr("token", self.provider).line, self.token)
        self.credmgr("vault", "protect", "key-file", "--remove", environment=right)
        asked = os.path.join(self.folder, "asked")
        found = self.problems("vault", status=DONE, state="note",
                              environment={"CREDMGR_PASSPHRASE_COMMAND": f"touch {asked}; cat $CREDMGR_PASSPHRASE"})
        self.assertIn("locked", found[0]["sentence"])
        self.assertFalse(os.path.exists(asked))
        terminal = self.terminal("doctor", columns=200)
        self.assertEqual(terminal.end(), DONE)
        self.assertNotIn("passphrase of the vault", terminal.seen)
        self.assertEqual(self.problems("vault", status=DONE, state="ok", environment=right)[0]["hints"], [])
        self.mended(self.problems("vault", status=LOCKED, environment=wrong)[0], environment=wrong)
        for environment in (wrong, {"CREDMGR_PASSPHRASE_FILE": "/nowhere"}):
            self.assertIn('hint: run "unset CREDMGR_PASSPHRASE_FILE"',
                          self.credmgr("token", self.provider, status=LOCKED, environment=environment).err)

    def at(self, change, *arguments, status):
        command = [FAKETIME, "--exclude-monotonic", "-f", change, ONLINE, "doctor", "--json", *arguments]
        ended = subprocess.run(command, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, status, ended.stdout + ended.stderr)
        return [(finding["check"], finding["sentence"], finding["hints"]) for finding in json.loads(ended.stdout)
                if finding["state"] == "problem"]

    @WITH_FAKETIME
    def test_a_clock_that_is_behind(self):
        self.ready()
        self.assertEqual([check for check, _, _ in self.at("-1d", status=USAGE)], ["clock"])
        # Each cause is reported once, by the most specific check.
        (check, sentence, _), = self.at("-1h", self.provider, status=USAGE)
        self.assertEqual((check, "127.0.0.1" in sentence), ("clock", True))

    @WITH_FAKETIME
    def test_an_expired_token_that_cannot_be_refreshed(self):
        self.ready()
        for token in self.service.tokens:
            token.revoked = True
        self.credmgr("token", self.provider, "--refresh", status=LOGIN_NEEDED)
        self.add("oauth2-implicit", self.service, oauth2_server.PUBLIC_CLIENT)
        self.credmgr("login", "oauth2-implicit", "--account", ADA)
        self.assertEqual([(check, hints) for check, _, hints in self.at("+1d", status=LOGIN_NEEDED)], [
            ("accounts", [f'run "credmgr login {provider} --account {ADA}"'
                          for provider in (self.provider, "oauth2-implicit")])])

    def damaged(self, places):
        """Returns the findings after changing one byte, for each place; empty if the byte belongs to no record."""
        path, kept = self.home("vault", "vault.db"), os.path.join(self.folder, "kept")
        shutil.copytree(self.home("vault"), kept)
        for place in places:
            with open(path, "r+b") as file:
                file.seek(place)
                byte = file.read(1)
                file.seek(place)
                file.write(bytes([byte[0] ^ 1]))
            if self.run_program("doctor").status == DONE:
                self.assertEqual(self.credmgr("token", self.provider).line, self.token)
            else:
                yield from self.problems("vault", status=LOCKED)
            for folder in (self.home("vault"), self.home("vault.old")):
                shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(kept, self.home("vault"))
            if os.path.exists(os.path.join(self.folder, "rescued.json")):
                os.remove(os.path.join(self.folder, "rescued.json"))

    def test_a_vault_with_any_byte_altered(self):
        self.ready()
        # The export is protected by a passphrase.
        self.environment.update(self.passphrase("passphrase", PASSPHRASE))
        with open(self.home("vault", "vault.db"), "rb") as file:
            whole = file.read()
        rescued = 0
        # A page's rows start at its end.
        for finding in self.damaged([*range(200, len(whole), len(whole) // 24), *range(4096 - 60, len(whole), 4096)]):
            hints = " ".join(finding["hints"])
            self.assertIn('run "', hints)
            # A login requires a user, and a client its identifier.
            if "credmgr login" not in hints and "--client-id" not in hints and " ACCOUNT" not in hints:
                works = self.run_program("token", self.provider).status == DONE
                self.mended(finding)
                # A user whose token worked before must not have to log in again.
                if works or "vault export" in hints:
                    self.assertEqual(self.credmgr("token", self.provider).line, self.token)
            rescued += "vault export" in hints
        self.assertGreaterEqual(rescued, 2)

    def test_a_structure_in_which_everything_can_be_read(self):
        self.ready()
        self.environment.update(self.passphrase("passphrase", PASSPHRASE))
        with open(self.home("vault", "vault.db"), "rb") as file:
            whole = file.read()
        # The counter of fragmented bytes in a page (sqlite.org/fileformat.html, 1.6).
        page = next(place for place in range(0, len(whole), 4096) if whole[place] == 0x0a)
        for finding in self.damaged([page + 7]):
            self.credmgr("token", self.provider)
            self.assertIn("credmgr vault verify", self.credmgr("vault", "rotate", status=LOCKED).err)
            self.assertEqual(finding["sentence"], "the structure of the file is damaged")
            self.assertIn(finding["hints"][0], self.run_program("vault", "verify").err)
            self.assertEqual(self.mended(finding), [])
            self.assertEqual(self.credmgr("token", self.provider).line, self.token)
            self.credmgr("vault", "verify")
            self.credmgr("vault", "rotate")
            return
        self.fail("nothing was found")


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
        self.credmgr("add-provider", os.path.join(DESCRIPTORS, "git-host.yaml"), "--replace", "--client-id", "id", "--set",
                     f"port={port}", "--set", "git_port=4433")
        return "git-host"

    def test_servers(self):
        found = self.problems("network", self.provider_at(self.serve_at(None)), status=DONE, state="ok")
        self.assertIn("answers", found[0]["sentence"])
        provider = self.provider_at(self.serve_at("Sun, 06 Nov 1994 08:49:37 GMT"))
        self.assertIn("ahead of", self.problems("clock", provider, status=USAGE)[0]["sentence"])
        # Without the option, nothing is sent.
        provider = self.provider_at(1)
        self.doctor()
        found = self.problems("network", "--reach", provider, status=UNREACHABLE)
        self.assertIn("127.0.0.1", found[0]["sentence"])
        self.assertIn("did you mean", self.credmgr("doctor", "githb", status=USAGE).err)

    def test_a_proxy_that_leads_nowhere(self):
        self.credmgr("add-provider", self.file("far.yaml", "provider: far\ngrant: client_credentials\n"
                     "client: { authentication: none }\nendpoints: { token: https://far.invalid/token }\n"),
                     "--client-id", "id")
        # Without the proxy, the host does not exist, so following this hint cannot succeed.
        found = self.problems("network", "far", status=UNREACHABLE, environment={
            "https_proxy": "http://127.0.0.1:1", "all_proxy": "nonsense"})
        self.assertIn('run "unset https_proxy all_proxy"', found[0]["hints"][0])
