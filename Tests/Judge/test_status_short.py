"""`credmgr status --short`, for the prompt of a shell."""

import json
import os

from program import ProgramTest


class Short(ProgramTest):
    def setUp(self):
        super().setUp()
        self.service, self.provider = self.provided()

    def short(self, *arguments, **options):
        outcome = self.credmgr("status", "--short", *arguments, **options)
        self.assertEqual(outcome.err, "")
        return outcome.out

    def test_nothing_without_accounts(self):
        self.assertEqual(self.short(), "")
        self.new_home()
        self.assertEqual(self.short(), "")
        self.assertEqual(self.short("nowhere"), "")

    def test_the_account_of_this_directory(self):
        self.credmgr("login", self.provider, "--account", "ada")
        self.assertEqual(self.short(), f"{self.provider}:ada\n")
        self.credmgr("login", self.provider, "--account", "work")
        self.assertEqual(self.short(), f"{self.provider}:{self.default()}\n")
        project = os.path.join(self.folder, "project")
        os.mkdir(project)
        self.credmgr("use", self.provider, "work", "--in", project)
        self.assertEqual(self.short(cwd=project), f"{self.provider}:work\n")
        environment = {**self.environment, "CREDMGR_ACCOUNT": "ada"}
        self.assertEqual(self.short(self.provider, environment=environment), f"{self.provider}:ada\n")
        self.assertEqual(self.short("other"), "")

    def default(self):
        accounts = json.loads(self.credmgr("list", "--json").out)
        return next((row["account"] for row in accounts if row["default"]), "?")

    def test_a_login_is_required(self):
        self.credmgr("login", self.provider, "--account", "ada", "--with-token", "--expires", "1h", stdin="a-token\n")
        self.later(7200)
        self.assertEqual(self.short(), f"{self.provider}:ada!\n")

    def test_nothing_and_no_prompt_if_the_vault_is_locked(self):
        self.credmgr("login", self.provider, "--account", "ada")
        phrase = self.file("phrase", "correct horse battery staple")
        self.credmgr("vault", "protect", "passphrase", "--passphrase-file", phrase)
        self.credmgr("vault", "protect", "key-file", "--remove", environment={**self.environment, "CREDMGR_PASSPHRASE_FILE": phrase})
        self.assertEqual(self.short(environment={**self.environment, "CREDMGR_PASSPHRASE_FILE": phrase}), "")
        person = self.terminal("status", "--short")
        self.assertEqual(person.end(), 0)
        self.assertEqual(person.seen, "")

    def test_nothing_if_the_vault_is_damaged(self):
        self.credmgr("login", self.provider, "--account", "ada")
        with open(os.path.join(self.homes[-1], "vault/vault.db"), "r+b") as file:
            file.truncate(100)
        self.assertEqual(self.short(), "")

    def test_other_forms_do_not_fit(self):
        self.assertIn('"--short" and "--json" cannot be used together', self.credmgr("status", "--short", "--json", status=2).err)
