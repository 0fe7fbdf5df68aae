"""The output of each command with `--json`, validated with docs/output.schema.json."""

import json
import os
import re

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from discovery_server import DiscoveryServer
from program import DONE, LOGIN_NEEDED, ROOT, ProgramTest, text_of

SCHEMA = json.loads(text_of("docs/output.schema.json"))


class Output(ProgramTest):
    def setUp(self):
        super().setUp()
        self.service, self.provider = self.provided()
        self.seen = set()

    def valid(self, *arguments, status=(DONE,), **options):
        outcome = self.run_program(*arguments, "--json", **options)
        self.assertIn(outcome.status, status, outcome.err)
        return self.shown(arguments[0], json.loads(outcome.out), arguments)

    def shown(self, command, shown, arguments=()):
        schema = {**SCHEMA, "$ref": "#/$defs/" + command}
        error = best_match(Draft202012Validator(schema).iter_errors(shown))
        self.assertIsNone(error, f"{' '.join(arguments)}: {error and (error.json_path, error.message[:300])}")
        for value in shown if isinstance(shown, list) else [shown]:
            self.assertEqual(value["version"], 1)
        self.seen.add(command)
        return shown

    def test_each_command(self):
        provider = self.provider
        self.valid("providers")
        self.valid("providers", provider)
        self.valid("providers", "github")
        path = os.path.join(self.homes[-1], "config/providers", provider + ".yaml")
        self.valid("add-provider", path, "--replace", "--yes")
        for more in ((), ("--grant", "device_code")):
            self.valid("login", "github", "--dry-run", *more)
        self.valid("login", "openai", "--dry-run")
        self.valid("login", provider, "--account", "ada")
        self.valid("token", provider)
        self.valid("header", provider)
        self.assertIn("method", self.valid("request", provider, f"{self.service.base}/resource")["body"])
        self.valid("request", provider, f"{self.service.base}/none", status=(4,))
        issuer = self.serve(DiscoveryServer()).issuer
        for source in ("github", "openai", "aws", "github-app", "google-workload", issuer, provider):
            self.assertGreater(len(self.valid("setup", source)["ways"]), 0)
        for command in (("exec", provider, "--json", "--", "true"), ("completion", "--json"), ("git-credential", "--json", "get"),
                        ("kubectl-credential", provider, "--json")):
            self.assertIn('has no "--json": ', self.run_program(*command).err)
        self.valid("validate", provider, status=(DONE, LOGIN_NEEDED))
        self.valid("list")
        self.valid("status")
        self.valid("status", "--why")
        self.valid("refresh", provider)
        self.valid("refresh", "--all")
        self.valid("use", provider, "ada")
        self.valid("use", provider, "ada", "--in", self.folder)
        self.assertEqual(len(self.valid("use", "--list")), 1)
        self.valid("status", "--why", cwd=self.folder)
        self.valid("use", provider, "--remove", "--in", self.folder)
        self.file(".netrc", "machine git.example.org login ada password a-password-of-netrc\n")
        self.file(".git-credentials", "https://ada:a-password-of-git@forge.example\n")
        self.assertGreater(len(self.valid("import", "--list")), 0)
        self.valid("import", "netrc", "--yes", status=(DONE, 2, 3, 4))
        # A login without a provider has the fields of an account.
        for command in ("list", "status"):
            login = self.valid(command)[-1]
            self.assertEqual((login["provider"], login["account"], login["kind"]), ("https://git.example.org", "ada", "git_login"))
        self.valid("logout", login["provider"], "--account", "ada")
        self.assertNotIn("https://git.example.org", [row["provider"] for row in self.valid("list")])
        self.assertEqual(self.valid("check", path), [])
        broken = self.file("broken.yaml", "provider: broken\ngrant: api_key\n")
        self.assertEqual(self.valid("check", broken, status=(2,))[0]["line"], 1)
        self.valid("vault", "status")
        self.valid("vault", "verify")
        self.valid("vault", "backup", os.path.join(self.folder, "copy"))
        self.vault_operations()
        self.valid("git-setup")
        self.valid("git-setup", "--remove")
        self.assertFalse(self.valid("git-setup", "--remove")["changed"])
        self.valid("docker-credential", "setup", "ghcr.io")
        self.simulator()
        self.valid("log")
        self.valid("doctor", status=tuple(range(7)))
        self.valid("logout", provider)
        self.valid("login", provider)
        self.valid("logout", provider, "--all")
        self.valid("remove-provider", provider)
        # Each command with this option has been tried, and has its part of the schema.
        commands = re.findall(r"(?m)^  ([a-z-]+)  +\S", self.credmgr("help").out)
        able = {name for name in commands if "--json" in self.credmgr("help", name).out}
        # `share` needs a server, so test_team tries it.
        self.assertEqual(self.seen, able - {"share"})
        self.assertEqual(set(SCHEMA["$defs"]), able | {"moment"})

    def vault_operations(self):
        path = os.path.join(self.folder, "export")
        self.valid("vault", "export", path, "--plain", "--plain")
        self.valid("vault", "import", path, "--plain")
        self.assertIn("--json", self.run_program("vault", "export", "-", "--plain", "--plain", "--json").err)
        self.valid("vault", "restore", os.path.join(self.folder, "copy"))
        self.valid("vault", "protect", "passphrase", "--passphrase-file", self.file("passphrase", "correct horse battery\n"))
        self.valid("vault", "unlock")
        self.assertFalse(self.valid("vault", "lock")["locked"])
        self.valid("vault", "protect", "passphrase", "--remove")
        self.valid("vault", "rotate")

    def simulator(self):
        running = self.start("simulate", "github", "--json", stdin=False)
        # The object is complete at its last brace.
        text = ""
        while not text.endswith("\n}\n"):
            text += running.process.stdout.readline()
        running.process.terminate()
        running.process.stdout.close()
        self.shown("simulate", json.loads(text))

    def test_the_reference_names_the_schema(self):
        self.assertIn("(output.schema.json)", text_of("docs/commands.md"))
        self.assertTrue(os.path.exists(os.path.join(ROOT, "docs/output.schema.json")))
