"""Tab in real shells."""

import os
import shutil
import unittest

import oauth2_server
from oauth2_server import OAuth2Server
from program import BINARY, ProgramTest
from terminal import Terminal

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(credmgr completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -Uz compinit; compinit -u -D; eval "$(credmgr completion zsh)"'),
    "fish": (["fish", "--no-config", "-i"], "credmgr completion fish | source"),
}


class Completion(ProgramTest):
    def setUp(self):
        super().setUp()
        service = self.serve(OAuth2Server())
        self.provider = self.add("oauth2-public", service, oauth2_server.PUBLIC_CLIENT)
        for name in ("ada", "ada two", "it's grace"):
            self.credmgr("login", self.provider, "--account", name)
        self.file("notes.txt", "")

    def completed(self, shell, typed, expected):
        """What the shell makes of `typed` and Tab: the arguments that a command gets."""
        if not shutil.which(shell):
            self.skipTest(f"there is no {shell}")
        command, setup = SHELLS[shell]
        # In the place of credmgr, once the words are there, stands a program that shows its arguments.
        shower = self.file("shower", "#!/bin/sh\nprintf '<%s>' \"$@\" > " + self.folder + "/shown\n")
        os.chmod(shower, 0o700)
        terminal = Terminal(command, {**self.environment, "TERM": "dumb" if shell != "fish" else "xterm", "PS1": "$ ",
                                      "fish_greeting": ""}, self.folder)
        self.addCleanup(lambda: terminal.process.poll() is None and terminal.process.kill())
        terminal.type(setup + "; echo re''ady\n")
        terminal.wait_for(r"(?<!'')ready")
        terminal.type(typed + "\t")
        # The line stands in the shell's editor; its beginning is turned into the other program there.
        terminal.wait_until_quiet()
        terminal.type("\x01" + shower + " \x05; echo do''ne\n")
        terminal.wait_for(r"(?<!'')done")
        terminal.type("\x04exit\n")
        terminal.end()
        with open(os.path.join(self.folder, "shown"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "".join(f"<{word}>" for word in ("credmgr", *expected)), terminal.seen)

    def each(self, typed, *expected):
        for shell in SHELLS:
            with self.subTest(shell=shell, typed=typed):
                self.completed(shell, typed, expected)

    def test_a_command(self):
        self.each("credmgr add-p", "add-provider")

    def test_an_option(self):
        self.each("credmgr login x --no-b", "login", "x", "--no-browser")

    def test_a_provider_that_was_added(self):
        self.each("credmgr token oau", "token", self.provider)

    def test_a_shipped_provider(self):
        self.each("credmgr add-provider codeb", "add-provider", "codeberg")

    def test_an_account_that_must_be_quoted(self):
        self.each(f"credmgr token {self.provider} --account it", "token", self.provider, "--account", "it's grace")

    def test_an_account_behind_a_colon(self):
        self.each(f"credmgr exec {self.provider}:it", "exec", f"{self.provider}:it's grace")

    def test_an_operation_of_the_vault(self):
        self.each("credmgr vault prot", "vault", "protect")

    def test_a_file(self):
        self.each("credmgr check not", "check", "notes.txt")

    def test_a_command_to_run(self):
        self.each("credmgr exec x -- base64sh", "exec", "x", "--", "base64sh")

    def test_nobody_is_asked_for_a_passphrase(self):
        phrase = self.file("phrase", "correct horse battery staple")
        self.credmgr("vault", "protect", "passphrase", "--passphrase-file", phrase)
        self.credmgr("vault", "protect", "key-file", "--remove", environment={"CREDMGR_PASSPHRASE_FILE": phrase})
        outcome = self.credmgr("completion", "words", "use", self.provider, "a")
        self.assertEqual((outcome.out, outcome.err), ("", ""))
        self.assertIn("github\t", self.credmgr("completion", "words", "token", "gith").out)


if __name__ == "__main__":
    unittest.main()
