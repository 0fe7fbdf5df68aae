"""Runs the commands of the README and of the pages in docs unchanged, and follows their links."""

import os
import re
import shutil
import subprocess

from browser import Browser
from program import BINARY, ROOT, TIMEOUT, ProgramTest, text_of


def commands(text):
    """Returns the credmgr lines of the shell blocks, without comments."""
    blocks = re.findall(r"(?ms)^```sh\n(.*?)^```", text)
    lines = (line.partition(" #")[0].rstrip() for block in blocks for line in block.splitlines())
    return [line for line in lines if line.startswith("credmgr ")]


class Documents(ProgramTest):
    def setUp(self):
        super().setUp()
        # Programs of the examples that receive a token.
        for name in ("gh", "publish"):
            self.file(name, '#!/bin/sh\n[ -n "$GH_TOKEN$REPORTS_TOKEN" ]\n', 0o700)
        os.symlink(self.binary, os.path.join(self.folder, "docker-credential-credmgr"))
        self.environment["PATH"] = self.folder + ":" + self.environment["PATH"]
        self.passphrase = self.file("passphrase", "correct horse battery staple\n", 0o600)
        self.browser_command = self.environment["BROWSER"]
        self.said = self.simulate("github", "--git-host", "github.com")
        self.keys = {}

    def simulate(self, source, *options):
        """Starts a simulated provider; returns its output by name."""
        simulator = subprocess.Popen(
            [BINARY, "simulate", source, "--port", "0", *options], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, text=True, env=self.environment, cwd=self.folder)
        self.addCleanup(lambda: (simulator.terminate(), simulator.wait(TIMEOUT), simulator.stdout.close()))
        said = {}
        for line in simulator.stdout:
            word, _, value = line.rstrip("\n").rpartition(" ")
            said[word] = value
            if value == "ready":
                break
        return said

    def add_github(self):
        self.credmgr("add-provider", self.said["descriptor"], "--replace", "--client-id", self.said["client-id"],
                     "--client-secret-file", self.said["client-secret-file"])

    def simulate_key(self, name):
        """Simulates and adds a provider of API keys; `login` gets a key that this provider accepts."""
        said = self.simulate(name)
        self.credmgr("add-provider", said["descriptor"])
        self.keys[name] = said["key-file"]

    def log_in(self, *arguments):
        self.add_github()
        self.credmgr("login", "github", *arguments)
        self.token = self.file("token", self.credmgr("token", "github").line + "\n")

    def run_line(self, line):
        """Runs a line; if it waits for the user, does what it asks."""
        line = line.replace("https://api.github.com/user", self.said["listening on"] + "/simulator/resource")
        running = self.start("-c", "exec " + line, binary="/bin/bash", cwd=self.folder)
        text = ""
        if "device_code" in line:
            found = running.wait_for(r"open (\S+) in any browser and enter the code (\S+)")
            Browser(typed={"user_code": found.group(2)}.items()).open(found.group(1))
        elif "--no-browser" in line:
            Browser().open(running.address())
        elif "--paste" in line:
            _, _, final = Browser(follows_loopback=False).open(running.address())
            text = final + "\n"
        outcome = running.end(text)
        self.assertEqual(outcome.status, 0, f"{line}\n{outcome.out}{outcome.err}")
        return outcome

    def set_up(self):
        """Answers the questions of `setup`, and starts over for the commands that do the same."""
        self.environment["BROWSER"] = self.browser_command
        with open(self.said["client-secret-file"], encoding="utf-8") as file:
            secret = file.read().strip()
        person = self.terminal("setup", columns=200)
        for question, answer in (
                ("Set up what", self.said["descriptor"]), ("Another value", ""), ("Open this page", "n"),
                ("client ID:", self.said["client-id"]), ("client secret:", secret), ("Add it?", "y"),
                ("Log in?", "y"), ("Let git use", "n")):
            person.wait_for(question)
            person.type(answer + "\r")
        if shutil.which("docker"):
            person.wait_for("Let docker use")
            person.type("n\r")
        self.assertEqual(person.end(), 0, person.seen)
        self.assertIn("logged in to", person.seen)
        self.new_home()

    def filled(self, line):
        """Returns the line with this test's files and a simulated provider filled in."""
        for name, key in self.keys.items():
            if line.startswith(f"credmgr login {name}"):
                # Without a terminal, the key comes from standard input.
                return f"{line.partition(' --with-token')[0]} --with-token <{key}"
        if line.startswith("credmgr import gh"):
            # The simulated provider is not GitHub.
            return line + " --yes"
        if "--with-token" in line:
            return line.replace("FILE", self.token)
        if line.startswith("credmgr add-provider "):
            source = line.split()[2]
            said = self.said if source == "github" else self.simulate(source)
            line = line.replace(f" {source} ", f" {said['descriptor']} ").replace(" ID", " " + said["client-id"])
            return line.replace("FILE", said["client-secret-file"])
        if re.match("credmgr vault (protect passphrase|export|import)", line) and "FILE" not in line:
            line += " --passphrase-file FILE"
        return line.replace("FILE", self.passphrase)

    def run_commands(self, text):
        """Runs each command of a page; returns how many there are."""
        ran = commands(text)
        for line in ran:
            with self.subTest(line):
                if line == "credmgr setup":
                    self.set_up()
                    continue
                # The user pastes because no browser opens.
                self.environment.pop("BROWSER", None)
                if line == "credmgr login github":
                    self.environment["BROWSER"] = self.browser_command
                if line.startswith("credmgr vault import"):
                    self.new_home()
                self.run_line(self.filled(line))
                if line == "credmgr login github":
                    self.token = self.file("token", self.credmgr("token", "github").line + "\n")
        return len(ran)

    def test_the_session_of_the_readme(self):
        text = text_of("README.md")
        self.assertLessEqual(text.count("\n"), 150)
        included = int(re.search(r"more than (\d+) are included", text).group(1))
        self.assertLess(included, len(os.listdir(os.path.join(ROOT, "providers"))))
        session = re.search(r"(?ms)^```console\n(.*?)^```", text).group(1)
        lines = [line.partition(" && ")[0] for line in re.findall(r"(?m)^\$ (credmgr .*)$", session)]
        lines = [re.sub("Ov23li\\w+", "ID", line).replace("secret.txt", "FILE") for line in lines]
        self.simulate_key("openai")
        self.file("chat.py", "import os\nassert os.environ['OPENAI_API_KEY']\n")
        self.assertEqual(self.run_commands("```sh\n" + "\n".join(lines) + "\n```\n"), 5)

    def test_get_started(self):
        self.assertGreater(self.run_commands(text_of("docs/get-started.md")), 20)

    def test_logging_in(self):
        self.log_in()
        for name in ("openai", "anthropic"):
            self.simulate_key(name)
        self.assertEqual(self.run_commands(text_of("docs/login.md")), 9)

    def test_moving_from_another_tool(self):
        self.log_in()
        token = self.credmgr("token", "github").line
        self.new_home()
        self.add_github()
        os.makedirs(os.path.join(self.folder, ".config/gh"))
        self.file(".config/gh/hosts.yml", f"github.com:\n    user: ada\n    oauth_token: {token}\n")
        self.assertEqual(self.run_commands(text_of("docs/import.md")), 4)
        self.assertEqual(text_of(os.path.join(self.folder, ".config/gh/hosts.yml")), "github.com:\n    user: ada\n")

    def test_git(self):
        self.log_in("--account", "work")
        os.mkdir(os.path.join(self.folder, "work"))
        self.assertEqual(self.run_commands(text_of("docs/git.md")), 4)

    def test_containers_and_ci(self):
        self.log_in()
        self.new_home()
        self.add_github()
        self.simulate_key("openai")
        self.file("chat.py", "import os\nassert os.environ['OPENAI_API_KEY']\n")
        text = text_of("docs/ci.md")
        self.file("reports.yaml", re.search(r"(?ms)^```yaml\n(provider: reports\n.*?)^```", text).group(1))
        self.assertEqual(self.run_commands(text), 10)

    def test_commands(self):
        self.log_in()
        self.assertEqual(self.run_commands(text_of("docs/commands.md")), 2)

    def test_the_vault(self):
        self.log_in()
        self.environment["CREDMGR_PASSPHRASE_FILE"] = self.passphrase
        self.assertEqual(self.run_commands(text_of("docs/vault.md")), 11)

    def test_helpers(self):
        self.log_in()
        self.assertEqual(self.run_commands(text_of("docs/helpers.md")), 4)

    def test_the_simulator(self):
        script = re.search(r"(?ms)^```sh\n(.*?)^```", text_of("docs/simulator.md")).group(1)
        outcome = self.start("60", "/bin/bash", "-e", "-c", script, binary="/usr/bin/timeout", cwd=self.folder).end()
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertIn('"account":"ada"', outcome.out)

    def test_links(self):
        """Every link within the project leads to an existing file and heading."""
        documents = [name for name in os.listdir(ROOT) if name.endswith(".md")]
        for folder in ("docs", "docs/decisions"):
            names = os.listdir(os.path.join(ROOT, folder))
            documents += [f"{folder}/{name}" for name in names if name.endswith(".md")]
        for document in documents:
            for target in re.findall(r"\]\(([^)\s]+)\)", text_of(document)):
                if re.match(r"[a-z]+:", target):
                    continue
                with self.subTest(document=document, target=target):
                    path, _, heading = target.partition("#")
                    path = os.path.normpath(os.path.join(os.path.dirname(document), path)) if path else document
                    self.assertTrue(os.path.exists(os.path.join(ROOT, path)))
                    if heading:
                        headings = re.findall(r"(?m)^#+ (.*)$", text_of(path))
                        self.assertIn(heading, [re.sub(r"[^\w\- ]", "", h).lower().replace(" ", "-") for h in headings])

    def test_the_tests_of_the_threat_model(self):
        """Every test that the threat model names is a function of the linked file."""
        count = 0
        for path, names in re.findall(r"\]\(\.\./(Tests/[^)]+)\)((?:,? ?`\w+`)*)", text_of("docs/threat-model.md")):
            for name in re.findall(r"\w+", names):
                count += 1
                with self.subTest(path=path, name=name):
                    self.assertRegex(text_of(path), rf"\b(func|def) {name}\b")
        self.assertGreater(count, 100)
