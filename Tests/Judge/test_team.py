"""A vault that machines share through a real PostgreSQL, each machine with a home of its own."""

import json
import os
import unittest

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

import postgres
from oauth2_server import PUBLIC_CLIENT, OAuth2Server
from program import ADA, GRACE, LOCKED, REFUSED, UNREACHABLE, USAGE, ProgramTest, brief, is_test_build, text_of

SCHEMA = json.loads(text_of("docs/output.schema.json"))


@unittest.skipUnless(postgres.available(), "PostgreSQL and pgbouncer are not installed")
class Team(ProgramTest):
    def setUp(self):
        super().setUp()
        self.server = self.enterContext(postgres.PostgreSQL())
        self.server.create("team")

    def create(self):
        return self.credmgr("vault", "create", "team", "--at", self.server.url("team"), "--member", "ada",
                     "--password-file", self.file("password", postgres.PASSWORD + "\n"))

    def join(self, member, *options):
        """Joins on a new machine."""
        invitation = self.credmgr("vault", "invite", member, *options).line
        self.new_home()
        return self.credmgr("vault", "join", "-", stdin=invitation + "\n")

    def at(self, machine):
        self.environment["CREDMGR_HOME"] = self.homes[machine]

    def shared(self):
        """Returns a provider whose account is in the vault, with an access token that expires soon."""
        service, provider = self.provided(lifetime=brief(), refreshed_lifetime=brief())
        self.create()
        self.credmgr("login", provider, "--account", ADA, "--vault", "team")
        return service, provider

    @staticmethod
    def refreshes(service):
        """Returns the refresh tokens that the provider got."""
        forms = [dict(request.form) for request in service.requests("/token")]
        return [form["refresh_token"] for form in forms if form.get("grant_type") == "refresh_token"]

    def valid(self, *arguments, **options):
        shown = json.loads(self.credmgr(*arguments, "--json", **options).out)
        schema = {**SCHEMA, "$ref": "#/$defs/" + arguments[0]}
        error = best_match(Draft202012Validator(schema).iter_errors(shown))
        self.assertIsNone(error, f"{' '.join(arguments)}: {error and (error.json_path, error.message[:300])}")
        return shown

    def test_two_machines_refresh_a_token_once(self):
        service, provider = self.shared()
        self.join("grace")
        first = self.credmgr("token", provider, "--account", ADA).line
        self.expire()
        second = self.credmgr("token", provider, "--account", ADA).line
        self.assertNotEqual(first, second)
        self.at(0)
        self.assertEqual(self.credmgr("token", provider).line, second)
        self.assertEqual(len(self.refreshes(service)), 1)
        self.server.kill()
        self.assertEqual(self.credmgr("token", provider).line, second)
        self.expire()
        self.assertIn("cannot reach the vault", self.credmgr("token", provider, status=UNREACHABLE).err)

    def test_each_output(self):
        service, provider = self.shared()
        self.credmgr("login", provider, "--account", GRACE)
        self.assertEqual(self.valid("share", provider, GRACE, "--vault", "team")["vault"], "team")
        self.assertEqual([each["vault"] for each in self.valid("status")], ["team", "team"])
        self.valid("list")
        invitation = self.valid("vault", "invite", "grace", "--administrator")["invitation"]
        self.assertEqual(len(self.valid("vault", "members")), 2)
        self.new_home()
        self.assertEqual(len(self.valid("vault", "join", invitation, "--as", "ours")["accounts"]), 2)
        self.assertEqual(len(self.valid("vault", "sync")["accounts"]), 2)
        self.assertIn("joined", self.credmgr("vault", "members").out)
        self.valid("vault", "status", "--vault", "ours")
        self.assertEqual(self.valid("vault", "verify", "--vault", "ours")["findings"], [])
        self.assertIn("share", [each["event"] for each in self.valid("log", "--vault", "ours")])
        exported = self.credmgr("vault", "export", "-", "--plain", "--plain", "--vault", "ours").out
        self.assertEqual(len([each for each in json.loads(exported)["records"] if each["kind"] == "credential"]), 2)
        path = os.path.join(self.folder, "copy")
        self.valid("vault", "backup", path, "--vault", "ours", "--passphrase-file", self.file("p", "correct horse\n"))
        self.valid("vault", "rotate", "--vault", "ours", "--yes")
        # The new key keeps the accounts of the other machine.
        self.at(0)
        self.expire()
        self.credmgr("token", provider, "--account", ADA)
        seen = self.valid("vault", "remove-member", "grace", "--yes")["seen"]
        self.assertEqual({each["account"] for each in seen}, {ADA, GRACE})
        self.assertIn("--vault team", seen[0]["revoke"])
        self.at(1)
        self.expire()
        self.assertIn("removed", self.credmgr("token", provider, "--account", ADA, status=LOCKED).err)
        self.valid("vault", "leave", "--yes")
        self.at(0)
        self.credmgr("logout", provider, "--account", GRACE, "--vault", "team")
        self.assertEqual([each["account"] for each in self.valid("status")], [ADA])

    def test_git_finds_a_provider_that_was_shared_after_the_machine_joined(self):
        self.create()
        self.join("grace")
        self.at(0)
        service = self.serve(OAuth2Server())
        provider = self.add("git-host", service, PUBLIC_CLIENT, git_port=4711)
        self.credmgr("login", provider, "--account", ADA, "--vault", "team")
        token = self.credmgr("token", provider).line
        self.at(1)

        def ask(port):
            return self.credmgr("git-credential", "get", stdin=f"protocol=http\nhost=127.0.0.1:{port}\n\n").out

        self.assertIn(f"password={token}\n", ask(4711))
        # Unknown hosts do not wait for a server that is away.
        self.server.kill()
        self.assertIn(f"password={token}\n", ask(4711))
        self.assertEqual(ask(4712), "")

    def test_a_changed_client_reaches_the_members(self):
        _, provider = self.shared()
        # The new member sees where tokens go.
        self.assertRegex(self.join("grace").err, r"tokens go to 127\.0\.0\.1:\d+")
        self.credmgr("add-provider", provider, "--client-id", "mine", "--replace", "--vault", "nowhere", status=USAGE)
        self.at(0)
        said = self.credmgr("add-provider", provider, "--client-id", "another", "--replace", "--vault", "team", "--yes").err
        self.assertIn("credmgr vault sync", said)
        self.at(1)

        def client():
            export = json.loads(self.credmgr("vault", "export", "-", "--plain", "--plain").out)
            return next(each["value"]["client_id"] for each in export["records"] if each["kind"] == "registration")

        before = client()
        self.assertIn("another", self.credmgr("vault", "sync").err)
        self.assertEqual(client(), before)
        self.credmgr("vault", "sync", "--yes")
        self.assertEqual(client(), "another")

    def test_a_token_never_goes_to_another_provider_of_the_same_name(self):
        service, provider = self.shared()
        invitation = self.credmgr("vault", "invite", "grace").line
        token = self.credmgr("token", provider, "--account", ADA).line
        self.new_home()
        # This machine's provider of this name is another server.
        other = self.serve(OAuth2Server())
        self.add(provider, other, PUBLIC_CLIENT)
        said = self.credmgr("vault", "join", "-", stdin=invitation + "\n").err
        self.assertIn(f"credmgr remove-provider {provider}", said)
        self.assertNotEqual(self.run_program("token", provider, "--account", ADA).out.strip(), token)
        # Nor does an account of this machine go to the team's server.
        self.credmgr("login", provider, "--account", GRACE)
        self.assertIn("another provider", self.credmgr("share", provider, GRACE, status=USAGE).err)
        self.credmgr("login", provider, "--account", GRACE, "--vault", "team", status=USAGE)
        self.credmgr("logout", provider, "--account", GRACE)
        self.credmgr("remove-provider", provider)
        self.credmgr("vault", "sync", "--yes")
        self.assertEqual(self.credmgr("token", provider, "--account", ADA).line, token)
        # The same holds for a provider that the team changes later.
        self.at(0)
        self.credmgr("add-provider", provider, "--set", f"port={other.port}", "--replace", "--vault", "team", "--yes")
        self.at(1)
        self.expire()
        said = self.credmgr("token", provider, "--account", ADA, status=USAGE).err
        self.assertIn("credmgr vault sync --vault team", said)
        self.assertEqual(self.refreshes(service), [])
        # A login would be in vain, so it does not begin.
        before = len(service.requests("/authorize"))
        said = self.credmgr("login", provider, "--account", ADA, status=USAGE).err
        self.assertIn("credmgr vault sync --vault team", said)
        self.assertEqual(len(service.requests("/authorize")), before)

    def test_the_question_names_accounts_that_this_machine_has_not_seen(self):
        _, provider = self.shared()
        self.join("grace")
        self.credmgr("login", provider, "--account", GRACE, "--vault", "team")
        self.credmgr("login", provider, "--account", "own")
        self.at(0)
        other = self.serve(OAuth2Server())
        change = ("add-provider", provider, "--set", f"port={other.port}", "--replace", "--vault", "team")
        self.assertIn(GRACE, self.run_program(*change).err)
        self.credmgr(*change, "--yes")
        # The other machine's own account follows the provider too.
        self.at(1)
        self.assertIn('tokens of "own"', self.credmgr("vault", "sync", "--yes").err)

    def test_leaving_asks_and_says_what_is_lost(self):
        self.shared()
        self.join("grace")
        self.at(0)
        self.assertIn("no terminal", self.credmgr("vault", "leave", status=USAGE).err)
        self.assertIn("no other administrator", self.credmgr("vault", "leave", "--yes").err)
        self.at(1)
        self.assertNotIn("lost", self.credmgr("vault", "leave", status=USAGE).err)

    def test_doctor_compares_the_clock_with_the_server(self):
        _, provider = self.shared()
        self.assertNotIn("ahead", self.run_program("doctor", provider).out)
        self.later(7200)
        self.assertRegex(self.run_program("doctor", provider).out, "clock is 2 h ahead of that of")
        self.server.kill()
        outcome = self.run_program("doctor", provider)
        self.assertIn("check that the database runs", outcome.out + outcome.err)

    def test_an_administrator_leaves(self):
        self.shared()
        self.join("grace", "--administrator")
        said = self.credmgr("vault", "leave", "--yes").err
        self.assertNotIn("list this machine", said)
        self.at(0)
        self.assertEqual(len(self.valid("vault", "members")), 1)

    def test_the_last_member_leaves(self):
        self.shared()
        self.assertIn("shared vaults are not in", self.credmgr("vault", "export", "file", "--plain", "--plain").err)
        said = self.credmgr("vault", "leave", "--yes").err
        self.assertIn("will be lost", said)
        self.assertNotIn("administrator removes it", said)
        folder = os.path.join(self.homes[-1], "vault", "shared")
        self.assertEqual([name for _, _, names in os.walk(folder) for name in names if name != "asked"], [])

    def test_a_login_to_a_name_that_the_vault_has(self):
        _, provider = self.shared()
        self.join("grace")
        # The account of this machine's own hides the vault's.
        self.credmgr("logout", provider, "--account", ADA)
        self.credmgr("login", provider, "--account", ADA)
        said = self.credmgr("login", provider, "--account", ADA, "--vault", "team", status=USAGE).err
        self.assertIn("another account", said)
        self.assertIn(f"credmgr login {provider} --account {ADA} --vault team --replace", said)
        self.credmgr("login", provider, "--account", ADA, "--vault", "team", "--replace")
        self.assertEqual([each["vault"] for each in self.valid("status")], ["team"])
        token = self.credmgr("token", provider).line
        self.at(0)
        self.credmgr("vault", "sync")
        self.assertEqual(self.credmgr("token", provider).line, token)

    def test_a_change_of_the_key_names_the_invitations_that_it_ends(self):
        self.assertIn("no standby", self.create().err)
        for member in ("grace", "hedy"):
            self.credmgr("vault", "invite", member)
        said = self.credmgr("vault", "remove-member", "grace", "--yes").err
        self.assertIn("hedy", said)
        self.assertNotIn('"grace" no longer', said)
        self.assertIn("nobody", self.credmgr("vault", "remove-member", "nobody", status=USAGE).err)

    def test_a_provider_is_removed_from_the_vault(self):
        _, provider = self.shared()
        said = self.credmgr("remove-provider", provider, "--vault", "team", status=USAGE).err
        self.assertIn(f"credmgr logout {provider} --account {ADA} --vault team", said)
        self.credmgr("logout", provider, "--account", ADA, "--vault", "team")
        self.assertEqual(self.valid("remove-provider", provider, "--vault", "team")["provider"], provider)
        self.credmgr("remove-provider", provider, "--vault", "team", status=USAGE)
        self.assertIn(provider, self.credmgr("providers").out)
        self.credmgr("vault", "verify", "--vault", "team")
        self.join("grace")
        self.assertNotIn(provider, self.credmgr("vault", "export", "-", "--plain", "--plain", "--vault", "team").out)

    def test_a_login_that_the_vault_does_not_take_names_the_share(self):
        _, provider = self.shared()
        self.server.sql("alter database team set default_transaction_read_only = on")
        said = self.credmgr("login", provider, "--account", ADA, "--vault", "team", "--replace", status=LOCKED).err
        self.assertIn(f"credmgr share {provider} {ADA} --vault team --replace", said)

    def test_two_vaults_in_one_database(self):
        self.create()
        self.credmgr("vault", "create", "other", "--at", self.server.url("team"), "--member", "ada",
                     "--password-file", self.file("password", postgres.PASSWORD + "\n"))
        ours, theirs = (self.credmgr("vault", "invite", "grace", "--vault", name).line for name in ("team", "other"))
        self.new_home()
        # An invitation opens only its own vault, also if the server moves its row.
        swap = "update credmgr.invitation i set vault = v.id from credmgr.vault v where v.id <> i.vault"
        self.server.sql(swap, "team")
        for invitation in (ours, theirs):
            self.credmgr("vault", "join", invitation, status=REFUSED)
        self.server.sql(swap, "team")
        self.assertIn('"other"', self.credmgr("vault", "join", theirs).err)
        self.credmgr("vault", "members", "--vault", "team", status=USAGE)
        self.credmgr("vault", "join", theirs, "--as", "again", status=REFUSED)
        self.credmgr("vault", "join", ours)
        self.at(0)
        for name in ("team", "other"):
            self.assertEqual(len(self.valid("vault", "members", "--vault", name)), 2)
            self.credmgr("vault", "verify", "--vault", name)

    def test_the_log_says_who_used_an_invitation(self):
        self.create()
        invitation = self.credmgr("vault", "invite", "grace").line
        self.new_home()
        self.credmgr("vault", "join", "-", "--machine", "runner-17", stdin=invitation + "\n")
        self.at(0)
        joined = next(each for each in self.valid("log", "--vault", "team") if each["event"] == "join")
        self.assertEqual((joined["detail"], joined["member"]), ("grace", "runner-17"))

    def test_invitations(self):
        self.create()
        self.assertIn("between", self.credmgr("vault", "invite", "grace", "--for", "0s", status=USAGE).err)
        replaced = self.credmgr("vault", "invite", "grace").line
        again = self.credmgr("vault", "invite", "grace")
        self.assertIn("earlier invitation", again.err)
        invitation = again.line
        self.new_home()
        self.credmgr("vault", "join", invitation[:-3], status=USAGE)
        self.assertIn("replaced", self.credmgr("vault", "join", replaced, status=REFUSED).err)
        self.credmgr("vault", "join", invitation)
        self.new_home()
        self.assertIn("already used", self.credmgr("vault", "join", invitation, status=REFUSED).err)

    def test_a_file_in_the_place_of_a_descriptor_of_the_vault_gets_no_token(self):
        service, other = self.serve(OAuth2Server()), self.serve(OAuth2Server())

        def put(name, *lines, home=-1):
            folder = os.path.join(self.homes[home], "config/providers")
            os.makedirs(folder, mode=0o700, exist_ok=True)
            return self.file(os.path.join(folder, name), "\n".join(lines) + "\n")

        def base(server, home=-1):
            return put(
                "base.yaml", "provider: base", "title: Base", "grant: authorization_code", "endpoints:",
                f"  authorization: http://127.0.0.1:{server.port}/authorize", f"  token: http://127.0.0.1:{server.port}/token",
                "scope: [read, offline]", "client: { authentication: none }", f'hosts: ["127.0.0.1:{server.port}"]', home=home)

        base(service)
        put("forge.yaml", "extends: base", "provider: forge", "title: Forge")
        self.create()
        self.credmgr("add-provider", "forge", "--client-id", PUBLIC_CLIENT)
        self.credmgr("login", "forge", "--account", ADA, "--vault", "team")
        invitation = self.credmgr("vault", "invite", "grace").line
        self.new_home()
        path = base(other)
        self.assertIn(path, self.credmgr("vault", "join", "-", "--yes", stdin=invitation + "\n").err)
        outcome = self.run_program("header", "forge", "--account", ADA)
        self.assertEqual(outcome.out, "")
        self.assertNotIn("unknown provider", outcome.err)
        os.rename(path, f"{path}.old")
        self.credmgr("vault", "sync", "--yes")
        self.credmgr("token", "forge", "--account", ADA, "--refresh")
        self.assertEqual(other.requests("/token"), [])
        # Nor is a file replaced that the user has changed, and one sync says what to do.
        with open(path, "a", encoding="utf-8") as file:
            file.write("# Mine.\n")
        self.at(0)
        base(other, 0)
        self.credmgr("add-provider", "forge", "--client-id", PUBLIC_CLIENT, "--replace", "--vault", "team", "--yes")
        self.at(1)
        self.assertIn(path, self.credmgr("vault", "sync", "--yes").err)
        with open(path, encoding="utf-8") as file:
            self.assertIn("# Mine.", file.read())
        os.rename(path, f"{path}.old")
        self.assertIn(str(other.port), self.credmgr("vault", "sync", "--yes").err)
        self.credmgr("token", "forge", "--account", ADA)

    @unittest.skipUnless(is_test_build(), "a release build has no fault points")
    def test_a_share_that_goes_on_compares_the_providers_again(self):
        service, provider = self.shared()
        other = self.serve(OAuth2Server())
        invitation = self.credmgr("vault", "invite", "grace").line
        self.new_home()
        self.add(provider, service, PUBLIC_CLIENT)
        self.credmgr("login", provider, "--account", GRACE)
        self.credmgr("vault", "join", "-", stdin=invitation + "\n")
        self.run_program("share", provider, GRACE, environment={"CREDMGR_FAULT": "share.marked"})
        self.at(0)
        self.credmgr("add-provider", provider, "--set", f"port={other.port}", "--replace", "--vault", "team", "--yes")
        self.at(1)
        said = self.credmgr("token", provider, "--account", GRACE, "--refresh", status=USAGE).err
        self.assertIn("another provider", said)
        self.assertIn("another provider", self.credmgr("share", provider, GRACE, status=USAGE).err)
        self.credmgr("vault", "sync")
        self.at(0)
        self.credmgr("vault", "sync")
        self.assertNotIn(GRACE, self.credmgr("status", "--json").out)
        # The account stays where it was.
        self.at(1)
        self.credmgr("token", provider, "--account", GRACE, "--refresh")
        self.assertEqual((len(self.refreshes(service)), self.refreshes(other)), (1, []))

    @unittest.skipUnless(is_test_build(), "a release build has no fault points")
    def test_an_account_on_its_way_is_named(self):
        _, provider = self.shared()
        self.join("grace")
        self.credmgr("login", provider, "--account", GRACE)
        self.run_program("share", provider, GRACE, environment={"CREDMGR_FAULT": "share.compared"})
        self.at(0)
        other = self.serve(OAuth2Server())
        self.credmgr("add-provider", provider, "--set", f"port={other.port}", "--replace", "--vault", "team", "--yes")
        self.at(1)
        self.assertIn(f'tokens of "{GRACE}"', self.credmgr("vault", "sync", "--yes").err)
        said = self.credmgr("logout", provider, "--account", GRACE, "--keep-remote").err
        self.assertIn("may not be in the vault", said)
        self.assertIn("stays in the vault", self.credmgr("logout", provider, "--account", ADA).err)

    def test_a_base_that_another_provider_of_the_vault_brought(self):
        servers = self.serve(OAuth2Server()), self.serve(OAuth2Server())

        def put(name, *lines):
            folder = os.path.join(self.environment["CREDMGR_HOME"], "config/providers")
            os.makedirs(folder, mode=0o700, exist_ok=True)
            self.file(os.path.join(folder, name), "\n".join(lines) + "\n")

        def base(port):
            put("base.yaml", "provider: base", "title: Base", "grant: authorization_code", "endpoints:",
                f"  authorization: http://127.0.0.1:{port}/authorize", f"  token: http://127.0.0.1:{port}/token",
                "scope: [read, offline]", "client: { authentication: none }", f'hosts: ["127.0.0.1:{port}"]')

        self.at(0)
        base(servers[0].port)
        self.create()
        for name in ("forge", "smith"):
            put(f"{name}.yaml", "extends: base", f"provider: {name}", f"title: {name.title()}")
            self.credmgr("add-provider", name, "--client-id", PUBLIC_CLIENT)
            self.credmgr("login", name, "--account", ADA, "--vault", "team")
        self.join("grace")
        self.credmgr("vault", "sync", "--yes")
        # The team moves the providers in turn.
        path = os.path.join(self.homes[1], "config/providers/base.yaml")
        before = text_of(path)
        change = "credmgr add-provider smith --replace --vault team"
        for name in ("forge", "smith"):
            self.at(0)
            base(servers[1].port)
            said = self.credmgr("add-provider", name, "--replace", "--vault", "team", "--yes").err
            self.assertEqual([words in said for words in ('cannot use "smith" until', change)], [name == "forge"] * 2)
            self.at(1)
            said = self.credmgr("vault", "sync").err
            if name == "forge":
                # Without consent, nothing changes, and the other provider goes on.
                self.assertNotIn("smith", said)
                self.assertEqual(text_of(path), before)
                self.credmgr("token", "smith", "--account", ADA, "--refresh")
            self.assertNotIn("another provider", self.credmgr("vault", "sync", "--yes").err)
            self.credmgr("token", name, "--account", ADA)
            self.assertEqual(change in self.credmgr("vault", "sync").err, name == "forge")
        self.credmgr("header", "smith", "--url", f"http://127.0.0.1:{servers[1].port}/resource")

    @unittest.skipUnless(is_test_build(), "a release build has no fault points")
    def test_a_share_that_is_killed_at_each_step_loses_nothing(self):
        service, provider = self.provided(lifetime=brief(), refreshed_lifetime=brief())
        self.create()
        for point in ("published", "marked", "compared", "stored", "done"):
            for repeats in (False, True):
                with self.subTest(point=point, repeats=repeats):
                    name, before = f"{point}-{repeats}", len(self.refreshes(service))
                    self.credmgr("login", provider, "--account", name)
                    self.run_program("share", provider, name, environment={"CREDMGR_FAULT": f"share.{point}"})
                    if repeats:
                        self.run_program("share", provider, name)
                    self.expire()
                    self.credmgr("token", provider, "--account", name)
                    if repeats:
                        found = [each for each in self.valid("status") if each["account"] == name]
                        self.assertEqual([each["vault"] for each in found], ["team"])
                    self.assertLessEqual(len(self.refreshes(service)), before + 1)
        # Every refresh token was used once.
        used = self.refreshes(service)
        self.assertEqual(len(used), len(set(used)))
