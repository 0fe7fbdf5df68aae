"""Runs the ten tasks of docs/tasks.md as a newcomer does, and compares everything that appears with the page.

CREDMGR_RECORD=1 writes the page instead; review the difference."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request

from discovery_server import ResourceServer
from git_server import GitServer
from program import BINARY, HERE, ROOT, TIMEOUT, ProgramTest, text_of
from terminal import Terminal

PAGE = os.path.join(ROOT, "docs/tasks.md")
EXAMPLE_ID, EXAMPLE_TOKEN = "Ov23liExample", "gho_Example"
INTERRUPT = object()


class Newcomer(ProgramTest):
    shipped = ("github", "openai")

    def setUp(self):
        super().setUp()
        self.environment.update({
            "PATH": os.path.dirname(self.binary) + ":" + self.folder + ":" + self.environment["PATH"], "NO_COLOR": "1",
            "BROWSER": self.file("sign-in", f'#!/bin/sh\nexec {sys.executable} {HERE}/browser.py "$1" account="$(cat {self.folder}/user)"\n', 0o700)})
        # credmgr asks about docker only where it is installed.
        self.file("docker", "#!/bin/sh\n", 0o700)
        del self.environment["CREDMGR_HOME"], self.environment["GIT_CONFIG_GLOBAL"]
        self.sign_in_as("ada")
        self.machine("laptop")
        # Pairs of a value of this test and the text of the page: for commands and output, and for output only.
        self.replaced, self.examples = [], []

    # The user and the machine.
    def machine(self, name):
        home = os.path.join(self.folder, name)
        os.makedirs(home, exist_ok=True)
        self.environment["HOME"] = home
        self.homes = [home]

    def sign_in_as(self, user):
        self.file("user", user)

    @property
    def home(self):
        return self.environment["HOME"]

    def simulate(self, source, *options):
        """Simulates a provider. Its descriptor replaces the descriptor that credmgr was installed with."""
        simulator = subprocess.Popen(
            [BINARY, "simulate", source, "--json", "--lifetime", "3630", *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            env=self.environment, cwd=self.folder)
        self.addCleanup(lambda: (simulator.terminate(), simulator.wait(TIMEOUT), simulator.stdout.close()))
        text = ""
        while not text.endswith("\n}\n"):
            text += simulator.stdout.readline()
        said = json.loads(text)
        prefix = os.path.dirname(os.path.dirname(self.binary))
        shutil.copy(said["descriptor"], os.path.join(prefix, "share/credmgr/providers", source + ".yaml"))
        return said

    def github(self, *options):
        said = self.simulate("github", "--git-host", "github.com", *options)
        self.resource = said["url"] + "/simulator/resource"
        self.secret = text_of(said["client_secret_file"]).strip()
        self.replaced = [(self.resource, "https://api.github.com/user")]
        self.examples = [
            (said["url"] + "/github.com", "https://github.com"), (said["url"].removeprefix("http://"), "ghcr.io"),
            (said["client_id"], EXAMPLE_ID)]
        return said

    def added(self, said):
        """Adds GitHub, as the first task does."""
        self.credmgr("add-provider", "github", "--client-id", said["client_id"], "--client-secret-file", said["client_secret_file"])

    # The page.
    def shown(self, text):
        """Returns what appeared as the page shows it: with the provider's real address, and an example for each token."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        for real, example in self.replaced + self.examples:
            text = text.replace(real, example)
        text = re.sub(r"(oauth/authorize|/authorize)\?\S+", r"\1?…", text)
        text = text.replace("59 min", "1 h")
        text = re.sub(r"/tmp\S*/credmgr-simulator-[0-9a-f]+", "/tmp/credmgr-simulator-…", text)
        text = re.sub(r"\b127\.0\.0\.1:\d+", "127.0.0.1:8080", text)
        text = text.replace(self.home, "~").replace(self.folder, "~")
        # The metadata of an issuer is as long as the issuer wants.
        text = re.sub(r"(?s)(found this metadata at.*?:\n)\n.*?(\nAdd it as)", r"\1  …\2", text)
        text = re.sub(r'registered the client "[^"]+"', 'registered the client "…"', text)
        return "".join(line.rstrip() + "\n" for line in text.rstrip("\n").split("\n")) if text.strip() else ""

    def typed(self, line):
        """Returns a command of the page with this test's values."""
        for real, example in reversed(self.replaced):
            line = line.replace(example, real)
        return line

    def follow(self, heading, answers=(), prepare=lambda line: None, terminal=True, block=None):
        """Runs the commands of a section of the page, or of one of its blocks. `answers` has the answers to each command's
        questions."""
        page = text_of(PAGE)
        start = page.index(f"\n## {heading}\n")
        end = page.find("\n## ", start + 1)
        section = page[start:end if end > 0 else len(page)]
        blocks = re.findall(r"(?ms)^```console\n(.*?)^```", section)
        for number, text in enumerate(blocks):
            if block not in (None, number):
                continue
            seen = ""
            for line in re.findall(r"(?m)^\$ (.*)$", text):
                prepare(line)
                out = self.shown(self.run_line(line, dict(answers).get(line, ()), terminal))
                if line.startswith("credmgr token"):
                    # A token is one long word.
                    out = re.sub(r"(?m)^\S{24,}$", EXAMPLE_TOKEN if "github" in line else "example-token", out)
                seen += f"$ {line}\n" + out
            if os.environ.get("CREDMGR_RECORD"):
                section_now = section.replace(f"```console\n{text}```", f"```console\n{seen}```")
                with open(PAGE, "w", encoding="utf-8") as file:
                    file.write(page.replace(section, section_now))
                page, section = page.replace(section, section_now), section_now
            else:
                self.assertEqual(text, seen)

    def run_line(self, line, answers, terminal=True):
        if line.startswith("sudo "):
            return ""
        script = self.typed(line)
        if not terminal:
            done = subprocess.run(["/bin/bash", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, env=self.environment, cwd=self.home, timeout=TIMEOUT)
            self.assertEqual(done.returncode, 0, done.stdout)
            return done.stdout
        person = Terminal(["/bin/bash", "-c", script], self.environment, self.home)
        self.addCleanup(lambda: person.process.poll() is None and person.process.kill())
        before = ""
        for question, answer in answers:
            person.wait_for(question)
            before, person.seen = before + person.seen, ""
            if answer is INTERRUPT:
                person.interrupt()
                break
            person.type(answer + "\r")
        status = person.end()
        self.assertIn(status, (0, 130) if answers and answers[-1][1] is INTERRUPT else (0, 6), before + person.seen)
        return before + person.seen


class Tasks(Newcomer):
    def test_a_first_token_of_github(self):
        said = self.github()
        self.follow("Get a first token of GitHub", {"credmgr setup github": [
            ("Which one", "2"), ("Another value", ""), ("Open this page", "n"), ("client ID:", said["client_id"]),
            ("client secret", self.secret), ("Let git use", "n"), ("Let docker use", "n")]})

    def test_an_api_key(self):
        said = self.simulate("openai")
        key = text_of(said["key_file"]).strip()
        self.follow("Store an API key", {"credmgr setup openai": [("API key of OpenAI", key)]})

    def test_an_mcp_server(self):
        service = self.serve(ResourceServer())
        service.lifetime = 3630
        host = "mcp.example.org"
        self.replaced = [(service.base, "https://" + host)] + [
            (f"{word} 127.0.0.1-mcp", f"{word} {host}-mcp") for word in ("header", "request", "list", "token")]
        self.examples = [("http://127.0.0.1/callback", "http://LOOPBACK/callback"), (f"127.0.0.1:{service.port}", host),
                         ("127.0.0.1", host), ("LOOPBACK", "127.0.0.1")]
        self.follow("Log in to an MCP server", {f"credmgr setup https://{host}/mcp": [("Add it as", "y")]})

    def test_the_login_of_gh(self):
        said = self.github()
        self.added(said)
        self.credmgr("login", "github")
        token = self.credmgr("token", "github").line
        self.machine("with-gh")
        os.makedirs(os.path.join(self.home, ".config/gh"))
        hosts = os.path.join(self.home, ".config/gh/hosts.yml")
        with open(hosts, "w", encoding="utf-8") as file:
            file.write(f"github.com:\n    user: ada\n    oauth_token: {token}\n    git_protocol: https\n")
        os.chmod(hosts, 0o600)
        self.follow("Move the login of gh")
        self.assertEqual(text_of(hosts), "github.com:\n    user: ada\n    git_protocol: https\n")
        self.assertEqual(self.credmgr("token", "github").line, token)

    def test_git_with_two_accounts(self):
        served = os.path.join(self.folder, "served")
        for path in ("ada/notes", "acme/tools"):
            subprocess.run(["git", "init", "--quiet", "--bare", os.path.join(served, path)], check=True, env=self.environment)
        tokens = {}
        server = self.enterContext(GitServer(
            served, lambda _, password: password in tokens.values(),
            permits=lambda path, password: password == tokens[path.split("/")[1]]))
        said = self.simulate("github", "--git-host", server.base.removeprefix("http://"))
        self.replaced = [(server.base, "https://github.com")]
        self.examples = [(said["url"] + "/github.com", "https://github.com"), (server.base.removeprefix("http://"), "github.com")]
        self.added(said)

        def prepare(line):
            self.sign_in_as("grace" if "work" in line else "ada")
            if line.startswith("git clone"):
                for owner, account in (("ada", "private"), ("acme", "work")):
                    tokens[owner] = self.credmgr("token", "github", "--account", account).line

        self.follow("Use git with two accounts", prepare=prepare)
        self.assertTrue(os.path.isdir(os.path.join(self.home, "tools/.git")))

    def test_a_second_machine(self):
        said = self.github()
        self.added(said)
        self.credmgr("login", "github")
        token = self.credmgr("token", "github").line
        words = [("passphrase (for|of) the export file: ", "correct horse battery"), ("repeat", "correct horse battery")]
        self.follow("Work on a second machine", {"credmgr vault export credmgr.json": words}, block=0)
        first = self.home
        self.machine("desktop")
        shutil.copy(os.path.join(first, "credmgr.json"), self.home)
        self.follow("Work on a second machine", {"credmgr vault import credmgr.json": words[:1]}, block=1)
        self.assertEqual(self.credmgr("token", "github").line, token)

    def test_a_ci_job(self):
        said = self.github()
        self.added(said)
        self.credmgr("login", "github")
        token = self.credmgr("token", "github").line
        self.machine("runner")
        with open(os.path.join(self.home, "token.txt"), "w", encoding="utf-8") as file:
            file.write(token + "\n")
        publish = os.path.join(self.home, "publish")
        with open(publish, "w", encoding="utf-8", opener=lambda p, flags: os.open(p, flags, 0o700)) as file:
            file.write(f'#!/bin/sh\n[ "$GH_TOKEN" = "{token}" ] && echo published\n')
        self.follow("Run a CI job", terminal=False)

    def test_a_new_descriptor(self):
        page = text_of(PAGE)
        with open(os.path.join(self.home, "notes.yaml"), "w", encoding="utf-8") as file:
            file.write(re.search(r"(?ms)^```yaml\n(provider: notes\n.*?)^```", page).group(1))
        self.follow("Add a provider of your own", {"credmgr simulate notes.yaml": [("Ctrl-C to stop", INTERRUPT)]}, block=0)
        person = self.simulator_at_terminal()
        folder = person.wait_for(r"add-provider (/\S+)/notes\.yaml").group(1)
        self.replaced = [(folder, "/tmp/credmgr-simulator-…")]
        person.wait_for("Ctrl-C to stop")
        self.follow("Add a provider of your own", block=1)
        self.credmgr("use", "notes-sim", "ada", "--in", self.home)
        person.interrupt()
        self.assertEqual(person.end(), 0, person.seen)
        self.assertIn('removed "notes-sim"', person.seen)
        self.assertNotIn("notes-sim", self.credmgr("use", "--list").out)

    def simulator_at_terminal(self):
        person = Terminal([self.binary, "simulate", "notes.yaml"], self.environment, self.home, columns=400)
        self.addCleanup(lambda: person.process.poll() is None and person.process.kill())
        return person

    def test_a_lost_passphrase(self):
        said = self.github()
        self.added(said)
        self.credmgr("login", "github")
        passphrase = self.file("passphrase", "a passphrase to forget\n")
        self.credmgr("vault", "protect", "passphrase", "--passphrase-file", passphrase)
        self.credmgr("vault", "protect", "key-file", "--remove")
        self.credmgr("vault", "unlock", environment={"CREDMGR_PASSPHRASE_FILE": passphrase})
        new = [("new passphrase for the vault: ", "correct horse battery"), ("repeat", "correct horse battery")]
        heading = "Recover from a lost passphrase"
        self.follow(heading, {"credmgr vault protect passphrase": new}, block=0)
        self.credmgr("vault", "lock")
        self.file("passphrase", "correct horse battery\n")
        self.credmgr("token", "github", environment={"CREDMGR_PASSPHRASE_FILE": passphrase})
        self.follow(heading, {"credmgr token github": [("passphrase of the vault: ", "not this one")] * 3}, block=1)

    def test_removing_the_tarball(self):
        """Only its files and credmgr's own directories: the others were there before, even if they are empty."""
        package = os.path.join(self.home, "package/credmgr-0.2.0-amd64")
        system = os.path.join(self.home, "local")
        for path in ("bin/credmgr", "libexec/credmgr/credmgr-online", "share/credmgr/providers/github.yaml",
                     "share/doc/credmgr/docs/tasks.md", "share/man/man1/credmgr.1"):
            os.makedirs(os.path.join(package, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(package, path), "w", encoding="utf-8"):
                pass
        archive = os.path.join(self.home, "credmgr-0.2.0-amd64.tar.xz")
        subprocess.run(["tar", "-cJf", archive, "-C", os.path.dirname(package), os.path.basename(package)], check=True)
        shutil.copytree(package, system)
        command, = re.findall("(?m)^tar -tf .*$", text_of(PAGE))
        command = command.replace("/usr/local/", system + "/").replace("sudo ", "")
        subprocess.run(["sh", "-ec", command], check=True, cwd=self.home)
        left = sorted(os.path.relpath(os.path.join(folder, name), system)
                      for folder, folders, names in os.walk(system) for name in folders + names)
        self.assertEqual(left, ["bin", "libexec", "share", "share/doc", "share/man", "share/man/man1"])

    def test_removing_everything(self):
        def tree():
            return sorted(os.path.relpath(os.path.join(folder, name), self.home)
                          for folder, folders, names in os.walk(self.home) for name in folders + names)

        with open(os.path.join(self.home, ".gitconfig"), "w", encoding="utf-8") as file:
            file.write("[user]\n\tname = Ada\n")
        os.mkdir(os.path.join(self.home, ".docker"))
        with open(os.path.join(self.home, ".docker/config.json"), "w", encoding="utf-8") as file:
            file.write('{"psFormat": "table"}\n')
        before = tree(), text_of(os.path.join(self.home, ".gitconfig"))
        said = self.github()
        self.added(said)
        self.credmgr("login", "github")
        self.credmgr("git-setup")
        self.credmgr("docker-credential", "setup")
        token = self.credmgr("token", "github").line
        self.follow("Remove credmgr")
        self.assertEqual([name for name in tree() if name not in (".config", ".local", ".local/share")], before[0])
        self.assertEqual(text_of(os.path.join(self.home, ".gitconfig")), before[1])
        with open(os.path.join(self.home, ".docker/config.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), {"psFormat": "table"})
        request = urllib.request.Request(self.resource, headers={"Authorization": f"token {token}"})
        with self.assertRaises(urllib.error.HTTPError):
            urllib.request.urlopen(request)
