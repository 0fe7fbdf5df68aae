"""What the README and docs/login.md print is run as it is printed; the picture of the README is what the program shows today."""

import os
import re
import subprocess

from browser import Browser
from program import BINARY, ROOT, TIMEOUT, ProgramTest, text_of


def commands(text):
    """The lines of the blocks of shell that are credmgr's, without their comments."""
    blocks = re.findall(r"(?ms)^```sh\n(.*?)^```", text)
    lines = (line.partition(" #")[0].rstrip() for block in blocks for line in block.splitlines())
    return [line for line in lines if line.startswith("credmgr ")]


class Documents(ProgramTest):
    def setUp(self):
        super().setUp()
        simulator = subprocess.Popen(
            [BINARY, "simulate", "github", "--port", "0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            env=self.environment)
        self.addCleanup(lambda: (simulator.terminate(), simulator.wait(TIMEOUT), simulator.stdout.close()))
        self.said = {}
        for line in simulator.stdout:
            word, _, value = line.rstrip("\n").rpartition(" ")
            self.said[word] = value
            if value == "ready":
                break
        # The program that the README gives a token to, which is not GitHub's here.
        path = self.file("gh", '#!/bin/sh\n[ -n "$GH_TOKEN" ]\n', 0o700)
        self.environment["PATH"] = self.folder + ":" + self.environment["PATH"]

    def add_github(self):
        self.credmgr("add-provider", self.said["descriptor"], "--replace", "--client-id", self.said["client-id"],
                     "--client-secret-file", self.said["client-secret-file"])

    def run_line(self, line):
        """Runs a line; where it waits for a person, that person does what it says."""
        line = line.replace("https://api.github.com/user", self.said["listening on"] + "/simulator/resource")
        running = self.start("-c", "exec " + line, binary="/bin/bash")
        text = ""
        if "device_code" in line:
            found = running.wait_for(r"open (\S+) in any browser, and enter the code (\S+)")
            Browser(typed={"user_code": found.group(2)}.items()).open(found.group(1))
        elif "--no-browser" in line:
            Browser().open(running.address())
        elif "--paste" in line:
            _, _, final = Browser(follows_loopback=False).open(running.address())
            text = final + "\n"
        outcome = running.end(text)
        self.assertEqual(outcome.status, 0, f"{line}\n{outcome.out}{outcome.err}")
        return outcome

    def run_commands(self, text):
        """Runs each command of a document; returns how many there were."""
        # Whoever pastes has no browser that opens by itself.
        browser = self.environment.pop("BROWSER")
        ran = commands(text)
        for line in ran:
            with self.subTest(line):
                self.environment.pop("BROWSER", None)
                if line == "credmgr login github":
                    self.environment["BROWSER"] = browser
                if "--with-token" in line:
                    line = line.replace("FILE", self.file("token", self.credmgr("token", "github").line + "\n"))
                if line.startswith("credmgr add-provider github"):
                    line = line.replace(" github ", f" {self.said['descriptor']} ").replace("ID", self.said["client-id"])
                    line = line.replace("FILE", self.said["client-secret-file"])
                self.run_line(line)
        return len(ran)

    def section(self, name):
        return re.search(rf"(?ms)^## {name}\n(.*?)^## ", text_of("README.md")).group(1)

    def test_everyday_use(self):
        self.add_github()
        self.assertGreater(self.run_commands(self.section("Everyday use")), 15)

    def test_the_first_login(self):
        self.assertEqual(self.run_commands(self.section("The first login")), 5)

    def test_logging_in(self):
        self.add_github()
        self.assertEqual(self.run_commands(text_of("docs/login.md")), 5)

    def test_links(self):
        """Every link to a file of ours leads to one, and to a heading that is there."""
        folder = os.path.join(ROOT, "docs")
        documents = ["README.md", *(f"docs/{name}" for name in os.listdir(folder) if name.endswith(".md"))]
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
