"""Pressing Tab in real shells."""

import os
import shutil

from program import ProgramTest

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(credmgr completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -Uz compinit; compinit -u -D; eval "$(credmgr completion zsh)"'),
    "fish": (["fish", "--no-config", "-i"], "credmgr completion fish | source"),
}

# The text before Tab, and the resulting arguments of the command.
WORDS = {
    "a command": ("add-p", "add-provider"),
    "an option": ("login x --no-b", "login", "x", "--no-browser"),
    "a provider that was added": ("token oau", "token", "oauth2-public"),
    "a shipped provider": ("add-provider codeb", "add-provider", "codeberg"),
    "an account that must be quoted": (
        "token oauth2-public --account it", "token", "oauth2-public", "--account", "it's grace"),
    "an account behind a colon": ("exec oauth2-public:it", "exec", "oauth2-public:it's grace"),
    "an operation of the vault": ("vault prot", "vault", "protect"),
    "a file": ("check not", "check", "notes.txt"),
    "a command to run": ("exec x -- base64sh", "exec", "x", "--", "base64sh"),
}


class Completion(ProgramTest):
    def setUp(self):
        super().setUp()
        _, self.provider = self.provided()
        for name in ("ada", "ada two", "it's grace"):
            self.credmgr("login", self.provider, "--account", name)
        self.file("notes.txt", "")

    def test_words(self):
        # After completion, a program that prints its arguments replaces credmgr.
        path = os.path.join(self.folder, "shown")
        shower = self.file("shower", f"#!/bin/sh\nprintf '<%s>' \"$@\" >'{path}'\n", 0o700)
        for shell, (command, setup) in SHELLS.items():
            with self.subTest(shell=shell):
                if not shutil.which(shell):
                    self.skipTest(f"there is no {shell}")
                environment = {**self.environment, "TERM": "dumb" if shell != "fish" else "xterm", "PS1": "$ ", "fish_greeting": ""}
                terminal = self.terminal(*command[1:], binary=command[0], environment=environment)
                terminal.type(setup + "; echo re''ady\n")
                terminal.wait_for(r"(?<!'')ready")
                for name, (typed, *expected) in WORDS.items():
                    with self.subTest(name):
                        terminal.seen = ""
                        terminal.type(f"credmgr {typed}\t")
                        # The shell's editor still holds the line, so this replaces the program at its start.
                        terminal.type("\x01" + shower + " \x05; echo do''ne\n")
                        terminal.wait_for(r"(?<!'')done")
                        with open(path, encoding="utf-8") as file:
                            self.assertEqual(file.read(), "".join(f"<{word}>" for word in ("credmgr", *expected)), terminal.seen)
                        os.remove(path)
                terminal.type("\x04exit\n")
                terminal.end()

    def test_no_prompt_for_a_passphrase(self):
        phrase = self.file("phrase", "correct horse battery staple")
        self.credmgr("vault", "protect", "passphrase", "--passphrase-file", phrase)
        self.credmgr("vault", "protect", "key-file", "--remove", environment={"CREDMGR_PASSPHRASE_FILE": phrase})
        outcome = self.credmgr("completion", "words", "use", self.provider, "a")
        self.assertEqual((outcome.out, outcome.err), ("", ""))
        self.assertIn("github\t", self.credmgr("completion", "words", "token", "gith").out)
