"""Moves the credentials that the real tools stored, and lets the tools work with credmgr afterwards."""

import base64
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import unittest

import clock
import oauth2_server
from discovery_server import DiscoveryServer
from git_server import GitServer
from oauth2_server import OAuth2Server
from oauth2_store import USER, Client, Token
from program import ADA, BINARY, DESCRIPTORS, DONE, REFUSED, USAGE, ProgramTest, text_of
from registry_server import RegistryServer
from service import Refusal, json_response
from session_keyring import SessionKeyring
from tls import Authority

GIT = "/usr/bin/git"


def with_tool(name):
    return unittest.skipUnless(shutil.which(name), f"there is no {name}")


class Import(ProgramTest):
    def setUp(self):
        super().setUp()
        self.service = self.serve(OAuth2Server())
        self.served = os.path.join(self.folder, "served")
        subprocess.run([GIT, "init", "--quiet", "--bare", os.path.join(self.served, "team/demo.git")], check=True,
                       env=self.environment)
        self.git_server = self.enterContext(GitServer(self.served, lambda _, password: self.service.accepts(password)))
        # Another home gets the token that the tools store.
        self.token = self.logged_in_elsewhere()

    def logged_in_elsewhere(self):
        self.add_provider()
        self.credmgr("login", "import-host", "--account", ADA)
        token = self.credmgr("token", "import-host").line
        self.new_home()
        self.add_provider()
        return token

    def add_provider(self):
        self.add("import-host", self.service, oauth2_server.PUBLIC_CLIENT, git_port=self.git_server.port)

    def tool(self, *command, stdin="", status=0, environment=None):
        outcome = self.run_program(*command[1:], stdin=stdin, binary=shutil.which(command[0]), environment=environment)
        self.assertEqual(outcome.status, status, outcome.out + outcome.err)
        # A tool's own messages are not checked for secrets.
        self.errors.pop()
        return outcome

    def listed(self, tool):
        entries = json.loads(self.credmgr("import", "--list", "--json").out)
        self.assertNotIn(self.token, json.dumps(entries))
        return [entry for entry in entries if entry["tool"] == tool]

    def move(self, label, *more, removed=True):
        """Moves an entry and cleans its old place; returns its line of JSON. The descriptor's servers have other ports than
        the git host, so only the user knows that they belong together."""
        rows = json.loads(self.credmgr("import", label, "--remove", "--json", "--yes", *more).out)
        self.assertEqual([(row["state"], row["removed"]) for row in rows], [("moved", removed)], rows)
        self.assertEqual(rows[0]["account"], USER)
        self.assertEqual(self.credmgr("token", "import-host", "--account", USER).line, self.token)
        return rows[0]

    def clone(self, name, helper, status=0):
        self.tool("git", "-c", "credential.helper=", "-c", f"credential.helper={helper}", "clone", "--quiet",
                  f"{self.git_server.base}/team/demo.git", os.path.join(self.folder, name), status=status)

    def clone_with_credmgr(self):
        self.clone("with-credmgr", f"!'{BINARY}' git-credential")

    def approve(self, helper, scheme="http"):
        """Lets git store the token, as after a successful push."""
        text = f"protocol={scheme}\nhost=127.0.0.1:{self.git_server.port}\nusername=ada\npassword={self.token}\n\n"
        self.tool("git", "-c", "credential.helper=", "-c", f"credential.helper={helper}", "credential", "approve", stdin=text)


class Git(Import):
    def test_credential_store(self):
        self.approve("store")
        self.clone("before", "store")
        with open(os.path.join(self.folder, ".git-credentials"), "a", encoding="utf-8") as file:
            file.write("https://grace:another@other.example\n")
        self.assertEqual([entry["provider"] for entry in self.listed("git-store")], ["import-host", None])
        self.move(f"git-store:127.0.0.1:{self.git_server.port}")
        self.assertEqual(text_of(os.path.join(self.folder, ".git-credentials")), "https://grace:another@other.example\n")
        self.clone("after", "store", status=128)
        self.clone_with_credmgr()

    def test_a_file_in_git_s_configuration(self):
        path = os.path.join(self.folder, "own-store")
        self.tool("git", "config", "--global", "credential.helper", f"store --file={path}")
        self.approve(f"store --file={path}")
        self.move("git-store")
        self.assertEqual(text_of(path), "")

    def test_two_tokens_of_one_user(self):
        """`--replace` never replaces what the same import stored, because that would be in neither place."""
        second = self.logged_in_elsewhere()
        port = self.git_server.port
        path = self.file(".git-credentials", f"http://ada:{self.token}@127.0.0.1:{port}\nhttp://bob:{second}@127.0.0.1:{port}\n")
        rows = json.loads(self.run_program("import", "git-store", "--remove", "--replace", "--yes", "--json").out)
        self.assertEqual([row["state"] for row in rows], ["moved", "failed"])
        self.assertIn("this import stored another token of the same account", rows[1]["error"])
        self.assertEqual(self.credmgr("token", "import-host").line, self.token)
        self.assertIn(second, text_of(path))
        third = self.logged_in_elsewhere()
        self.file(".git-credentials", f"http://ada:{third}@127.0.0.1:{port}\nhttp://bob:{second}@127.0.0.1:{port}\n")
        outcome = self.run_program("import", "git-store", "--remove", "--replace", "--yes")
        self.assertIn(f'hint: run "credmgr import git-store:bob@127.0.0.1:{port} --remove --yes --replace" to replace the token that '
                      "was moved, which deletes it", outcome.err)

    def test_a_login_for_one_repository(self):
        """Such a login is not returned for the host, as in git's own store."""
        self.file(".git-credentials", "https://bob:for-the-host@git.example\nhttps://bob:for-one@git.example/team/demo.git\n")
        self.credmgr("import", "git-store", "--remove")
        question = "protocol=https\nhost=git.example\n"
        self.assertIn("password=for-the-host\n", self.credmgr("git-credential", "get", stdin=question + "\n").out)
        self.assertIn("password=for-one\n", self.credmgr("git-credential", "get", stdin=question + "path=team/demo.git\n\n").out)
        listed = self.credmgr("list").out
        self.assertIn("https://git.example/team/demo.git", listed)
        self.credmgr("logout", "https://git.example/team/demo.git")
        self.assertNotIn("team/demo.git", self.credmgr("list").out)
        self.assertIn("password=for-the-host\n", self.credmgr("git-credential", "get", stdin=question + "\n").out)

    def test_a_file_server_stays_in_netrc(self):
        text = "machine ftp.example.org login ada password one\n"
        path = self.file(".netrc", text)
        row, = json.loads(self.credmgr("import", "--all", "--remove", "--json").out)
        self.assertEqual((row["state"], text_of(path)), ("skipped", text))
        self.assertEqual(self.listed("netrc")[0]["advice"], "file_server")

    def test_credential_cache(self):
        self.approve("cache", "https")
        self.addCleanup(self.tool, "git", "credential-cache", "exit")
        self.assertEqual([entry["place"] for entry in self.listed("git-cache")], ["git credential-cache"])
        self.move("git-cache")
        self.assertEqual(self.listed("git-cache"), [])
        self.clone_with_credmgr()

    def test_a_revoked_token_is_not_stored(self):
        self.approve("store")
        self.service.tokens[-1].revoked = True
        before = text_of(os.path.join(self.folder, ".git-credentials"))
        outcome = self.run_program("import", "git-store", "--remove", "--yes")
        self.assertEqual(outcome.status, REFUSED, outcome.err)
        self.assertIn("rejected the token", outcome.err)
        self.assertEqual(text_of(os.path.join(self.folder, ".git-credentials")), before)
        self.assertIn("not logged in", self.credmgr("status", "import-host").err)

    def test_a_user_chooses_at_the_terminal(self):
        self.approve("store")
        self.file(".netrc", "machine other.example login grace password another\n")
        person = self.terminal("import")
        person.wait_for("Enter for none: ")
        self.assertIn("1. git-store:ada@127.0.0.1", person.seen)
        person.type("7\r")
        person.wait_for("enter numbers from 1 to 2")
        person.type("2\r")
        self.assertEqual(person.end(), DONE, person.seen)
        self.assertNotIn(self.token, person.seen)
        self.assertIn("moved netrc:grace@other.example", person.seen)
        person = self.terminal("import")
        person.wait_for("Enter for none: ")
        person.type("\r")
        self.assertEqual(person.end(), DONE, person.seen)

    @with_tool("curl")
    def test_netrc(self):
        self.file(".netrc", f"# mine\nmachine 127.0.0.1:{self.git_server.port} login ada password {self.token}\n")
        self.move("netrc")
        self.assertEqual(text_of(os.path.join(self.folder, ".netrc")), "# mine\n")
        self.clone_with_credmgr()


class Logins(Import):
    """Logins of hosts without a provider."""

    def test_they_are_listed_and_deleted(self):
        self.file(".git-credentials", "https://grace:another@other.example\n", 0o600)
        os.mkdir(os.path.join(self.folder, ".docker"))
        self.file(".docker/config.json", '{"auths": {"registry.example": {"auth": "Ym9iOmhpZGRlbi13b3Jk"}}}', 0o600)
        outcome = self.credmgr("import", "--all", "--remove")
        self.assertIn('for "https://other.example", and removed it from ' + self.folder + "/.git-credentials\n", outcome.err)
        self.assertEqual(self.credmgr("list").out.splitlines(), [
            "docker:registry.example  bob    ready to use  docker login", "https://other.example    grace  ready to use  git login"])
        shown = self.credmgr("status").out
        self.assertIn("docker:registry.example  bob\n", shown)
        command = "credmgr logout https://other.example"
        self.assertRegex(shown, f'to delete it +run "{command}"')
        person = self.terminal("list", columns=120)
        self.assertEqual(person.end(), DONE, person.seen)
        self.assertIn('run "credmgr logout docker:registry.example" to delete a login of git or docker', person.seen)
        refused = self.credmgr("logout", "https://other.example", "--account", "ada", status=USAGE)
        self.assertIn('"https://other.example" has no login of "ada"', refused.err)
        self.credmgr(*command.split()[1:])
        self.assertEqual([row["provider"] for row in json.loads(self.credmgr("status", "--json").out)], ["docker:registry.example"])
        self.credmgr("logout", "registry.example")
        self.assertEqual(json.loads(self.credmgr("list", "--json").out), [])
        refused = self.credmgr("logout", "https://ada:hidden@other.example", status=USAGE)
        self.assertNotIn("hidden", refused.err)


class Owners(Import):
    """A credential goes to a provider's servers only if it belongs to them."""

    def test_servers_that_only_the_users_own_descriptor_names(self):
        self.approve("store")
        before = len(self.service.exchanges)
        outcome = self.run_program("import", "git-store")
        self.assertEqual(outcome.status, USAGE, outcome.err)
        self.assertIn(f"at 127.0.0.1:{self.service.port}", outcome.err)
        self.assertIn("--yes", outcome.err)
        for answer, status in (("n", USAGE), ("y", DONE)):
            self.assertEqual(len(self.service.exchanges), before)
            person = self.terminal("import", "git-store", columns=200)
            person.wait_for(r"Does it belong there\? \[y/N\]")
            person.type(answer + "\n")
            self.assertEqual(person.end(), status, person.seen)
        self.assertGreater(len(self.service.exchanges), before)

    def test_two_providers_for_a_host(self):
        self.approve("store")
        descriptor = text_of(os.path.join(DESCRIPTORS, "import-host.yaml")).replace("import-host", "another")
        self.credmgr("add-provider", self.file("another.yaml", descriptor), "--client-id", "x",
                     "--set", f"port={self.service.port}", "--set", f"git_port={self.git_server.port}")
        entry, = self.listed("git-store")
        self.assertEqual((entry["provider"], entry["login"], entry["movable"], entry["providers"]),
                         (None, None, False, ["another", "import-host"]))
        self.assertIn("for one of another, import-host", self.credmgr("import", "--list").out)

    def test_a_host_that_the_added_provider_does_not_have(self):
        self.credmgr("add-provider", "github", "--client-id", "Ov23liExample", "--set", "host=acme.ghe.com",
                     "--client-secret-file", self.file("secret", "a-client-secret\n"))
        self.file(".netrc", "machine github.com login ada password one\nmachine acme.ghe.com login ada password two\n")
        self.assertEqual([(entry["host"], entry["provider"]) for entry in self.listed("netrc")],
                         [("github.com", "github.com"), ("acme.ghe.com", "github")])
        # The registry still has the host that it has with github.com.
        self.file(".netrc", "machine ghcr.io login ada password one\n")
        entry, = self.listed("netrc")
        self.assertEqual((entry["provider"], "api.acme.ghe.com" in entry["asks_about"]), ("github", True))

    def add_tenant(self):
        self.credmgr("add-provider", "github", "--client-id", "Ov23liExample", "--set", "host=acme.ghe.com",
                     "--client-secret-file", self.file("secret", "a-client-secret\n"))

    def test_a_variable_for_several_hosts(self):
        """gh reads it for github.com and for tenants of ghe.com."""
        self.add_tenant()
        path = self.file(".env", "GH_TOKEN=one\n")
        entry, = self.listed("env")
        self.assertEqual((entry["provider"], entry["asks_about"]), ("github.com", ["github.com"]))
        outcome = self.run_program("import", "env", "--remove")
        self.assertEqual((outcome.status, text_of(path)), (USAGE, "GH_TOKEN=one\n"), outcome.err)
        self.assertIn("it may belong to another provider", outcome.err)

    def test_a_variable_beside_a_further_host(self):
        """The tenant has a provider of its own, and the file may name its host."""
        self.file(".env", "GITHUB_TOKEN=one\n")
        entry, = self.listed("env")
        self.assertEqual((entry["provider"], entry["asks_about"]), ("github", []))
        self.credmgr("add-provider", "github", "--as", "acme.ghe.com", "--client-id", "Ov23liExample", "--set", "host=acme.ghe.com",
                     "--client-secret-file", self.file("secret", "a-client-secret\n"))
        entry, = self.listed("env")
        self.assertEqual((entry["provider"], "api.github.com" in entry["asks_about"]), ("github", True))
        self.assertIn("it may belong to another provider", self.run_program("import", "env").err)
        self.file(".env", "GITHUB_TOKEN=one\nGH_HOST='beta.ghe.com'\nHF_TOKEN=two\n")
        entry, other = self.listed("env")
        self.assertEqual((entry["provider"], entry["host"], entry["asks_about"]), ("github", "beta.ghe.com", ["beta.ghe.com"]))
        self.assertEqual(other["host"], "huggingface.co")
        self.file(".env", "GH_HOST=acme.ghe.com\nGH_TOKEN=one\n")
        entry, = self.listed("env")
        self.assertEqual((entry["provider"], entry["host"], "api.acme.ghe.com" in entry["asks_about"]),
                         ("acme.ghe.com", "acme.ghe.com", True))

    def test_a_descriptor_that_was_left_over(self):
        """One that is word for word credmgr's own does not take the name."""
        self.add_tenant()
        self.file(".netrc", "machine github.com login ada password one\n")
        own = os.path.join(self.homes[-1], "config/providers/github.com.yaml")
        os.makedirs(os.path.dirname(own), mode=0o700, exist_ok=True)
        self.file(own, "provider: github.com\nextends: github\n")
        entry, = self.listed("netrc")
        self.assertEqual((entry["provider"], entry["asks_about"]), ("github.com", []))
        self.file(own, "provider: github.com\nextends: github\nhosts: [own.example]\n")
        entry, = self.listed("netrc")
        self.assertNotEqual(entry["asks_about"], [])

    def test_a_shipped_provider_comes_before_the_users_own(self):
        """The own descriptor has the honest server, where it could publish the token."""
        self.credmgr("add-provider", "--yes", self.file(
            "catch.yaml", "provider: catch\ngrant: api_key\nendpoints: {}\nhosts: [api.openai.com]\n"))
        self.file(".netrc", "machine api.openai.com login ada password one\n")
        entry, = self.listed("netrc")
        self.assertEqual((entry["provider"], entry["asks_about"]), ("openai", []))

    def test_a_host_that_gets_tokens_of_another(self):
        """Its own server and a helper's host elsewhere: the token could leave through the helper."""
        self.credmgr("add-provider", "--yes", self.file(
            "catch.yaml", "provider: catch\ngrant: api_key\nendpoints: {}\nhosts: [bank.example]\n"
            "git: { hosts: [bank.example, evil.example], username: x }\n"))
        self.file(".netrc", "machine bank.example login ada password one\n")
        entry, = self.listed("netrc")
        self.assertEqual((entry["provider"], entry["asks_about"]), ("catch", ["evil.example"]))
        self.assertIn("it may belong to another provider", self.run_program("import", "netrc").err)

    def test_the_name_of_a_variable(self):
        self.file(".env", f"IMPORT_HOST_TOKEN={self.token}\nIMPORT_HOST_ENTERPRISE_TOKEN=x\nAWS_SECRET_ACCESS_KEY=x\n")
        self.assertEqual([entry["provider"] for entry in self.listed("env")], ["import-host", None, None])
        before = len(self.service.exchanges)
        outcome = self.run_program("import", "env:IMPORT_HOST_TOKEN")
        self.assertEqual((outcome.status, len(self.service.exchanges)), (USAGE, before), outcome.err)
        self.move("env:IMPORT_HOST_TOKEN")

    def test_a_provider_that_moves_while_a_question_is_open(self):
        """The token goes only to the servers that the user saw, in the question or in the list."""
        path = self.file(".env", f"IMPORT_HOST_TOKEN={self.token}\n")
        other = self.serve(OAuth2Server())
        for question, answer, arguments, server in (
                (r"Does it belong there\? \[y/N\]", "y", ("import", "env", "--remove"), other), ("Move which", "1", ("import",), self.service)):
            with self.subTest(arguments=arguments):
                before = len(server.exchanges)
                person = self.terminal(*arguments, columns=200)
                person.wait_for(question)
                self.credmgr("add-provider", "import-host", "--replace", "--yes", "--set", f"port={server.port}")
                person.type(answer + "\r")
                self.assertEqual(person.end(), USAGE, person.seen)
                self.assertIn("was changed during the login; nothing was stored", person.seen)
                self.assertRegex(person.seen, r'hint: run "credmgr import env:IMPORT_HOST_TOKEN[^"]*" to look again')
                self.assertEqual(len(server.exchanges), before)
                self.assertIn(self.token, text_of(path))

    def test_a_key_that_its_provider_refuses(self):
        """The descriptor names no field with the account's name, so the answer counts only as a verification."""
        self.service.routes["GET", "/keys"] = lambda _: json_response({"error": "invalid key"}, 401)
        self.credmgr("add-provider", self.file(
            "keys.yaml", f"provider: keys\ngrant: api_key\nendpoints: {{ identity: {self.service.base}/keys }}\n"))
        path = self.file(".env", "KEYS_API_KEY=not-a-key\n")
        outcome = self.run_program("import", "env", "--remove", "--yes")
        self.assertEqual(outcome.status, REFUSED, outcome.err)
        self.assertEqual(text_of(path), "KEYS_API_KEY=not-a-key\n")

    def test_all_does_not_include_the_file_of_a_repository(self):
        self.file(".env", f"IMPORT_HOST_TOKEN={self.token}\n")
        outcome = self.credmgr("import", "--all", "--yes")
        self.assertIn("left out .env", outcome.err)
        self.assertIn("not logged in", self.credmgr("status", "import-host").err)

    def test_a_token_as_the_user_name(self):
        self.file(".git-credentials", f"http://{self.token}:x-oauth-basic@127.0.0.1:{self.git_server.port}\n")
        entry, = self.listed("git-store")
        self.assertEqual((entry["kind"], entry["user"]), ("token", None))
        self.assertNotIn(self.token, self.run_program("import", "git-store").err)
        self.move("git-store")


class GitCredentialManager(Import):
    def test_its_plain_files(self):
        """The form that PlaintextCredentialStore.cs of Git Credential Manager writes."""
        folder = os.path.join(self.folder, ".gcm/store/git/https/forge.example")
        os.makedirs(folder)
        path = self.file(".gcm/store/git/https/forge.example/ada.credential",
                         f"{self.token}\nservice=https://forge.example\naccount=ada\n", 0o600)
        self.assertEqual([entry["name"] for entry in self.listed("gcm")], ["ada@forge.example"])
        self.move("gcm")
        self.assertEqual(text_of(path), "")


@with_tool("gh")
class GitHubCLI(Import):
    def test_hosts_file(self):
        # The real gh writes the file; a login needs the host itself.
        for key, value in (("user", "ada"), ("oauth_token", self.token), ("git_protocol", "https")):
            self.tool("gh", "config", "set", "--host", "forge.example", key, value)
        self.assertEqual(self.tool("gh", "auth", "token", "--hostname", "forge.example").line, self.token)
        self.assertEqual([entry["name"] for entry in self.listed("gh")], ["ada@forge.example"])
        self.move("gh:forge.example")
        self.tool("gh", "auth", "token", "--hostname", "forge.example", status=1)
        self.assertEqual(self.tool("gh", "config", "get", "--host", "forge.example", "git_protocol").line, "https")
        self.assertEqual(self.credmgr("exec", "import-host=GH_TOKEN", "--", "gh", "auth", "token").line, self.token)


class Enterprise(ProgramTest):
    """gh's logins at hosts that no descriptor names."""

    shipped = ("openai",)

    DESCRIPTOR = """provider: github-enterprise
title: GitHub Enterprise Server
grant: authorization_code
variables: {{ host: {{ default: "127.0.0.1:1", help: the host }} }}
key: {{ page: https://docs.example/tokens }}
endpoints:
  authorization: http://{{host}}/authorize
  token: http://{{host}}/token
  identity: http://{{host}}/resource
account: login
client: {{ authentication: client_secret_post }}
hosts: ["{{host}}"]
git: {{ hosts: ["{{host}}"] }}
docker: {{ hosts: [registry.example] }}
"""

    def hosts(self, token, *hosts):
        return self.file(".config/gh/hosts.yml", "".join(
            f'"{host}":\n    users:\n        ada:\n            oauth_token: {token}\n    user: ada\n' for host in hosts), 0o600)

    def setUp(self):
        super().setUp()
        self.service = self.serve(OAuth2Server())
        prefix = os.path.dirname(os.path.dirname(self.binary))
        with open(os.path.join(prefix, "share/credmgr/providers/github-enterprise.yaml"), "w", encoding="utf-8") as file:
            file.write(self.DESCRIPTOR.format())
        os.makedirs(os.path.join(self.folder, ".config/gh"))
        self.host = f"127.0.0.1:{self.service.port}"

    def test_the_shipped_provider_takes_the_host(self):
        self.add("oauth2-public", self.service, oauth2_server.PUBLIC_CLIENT)
        self.credmgr("login", "oauth2-public", "--account", ADA)
        token = self.credmgr("token", "oauth2-public").line
        self.new_home()
        path = self.hosts(token, self.host, "ghe.example.org")
        outcome = self.credmgr("import", f"gh:{self.host}", "--remove")
        self.assertIn(f'moved gh:ada@{self.host} as "{USER}" at GitHub Enterprise Server, and removed it from {path}', outcome.err)
        self.assertEqual(self.credmgr("token", "github-enterprise").line, token)
        # The provider has one host, so another one gets a provider of its own, unless its server refuses the token.
        outcome = self.run_program("import", "gh:ghe.example.org", "--remove")
        self.assertNotEqual(outcome.status, DONE, outcome.err)
        self.assertIn(token, text_of(path))
        self.assertNotIn("ghe.example.org", self.credmgr("list").out)
        other = f"localhost:{self.service.port}"
        path = self.hosts(token, other)
        outcome = self.credmgr("import", f"gh:{other}", "--remove")
        self.assertEqual(self.credmgr("token", other.replace(":", "-")).line, token)
        self.assertNotIn(token, text_of(path))
        # Its descriptor is what credmgr wrote, so the registry in it is no reason to ask.
        path = self.hosts("gho_of_another_user", other)
        row, = json.loads(self.credmgr("import", "--list", "--json").out)
        self.assertEqual((row["provider"], row["asks_about"]), (other.replace(":", "-"), []))

    def test_several_hosts_in_one_import(self):
        """The token of each host goes to its own server only, whichever comes first."""
        self.add("oauth2-public", self.service, oauth2_server.PUBLIC_CLIENT)
        self.credmgr("login", "oauth2-public", "--account", ADA)
        token = self.credmgr("token", "oauth2-public").line
        other = self.serve(OAuth2Server())
        default = f"127.0.0.1:{other.port}"
        prefix = os.path.dirname(os.path.dirname(self.binary))
        with open(os.path.join(prefix, "share/credmgr/providers/github-enterprise.yaml"), "w", encoding="utf-8") as file:
            file.write(self.DESCRIPTOR.format().replace("127.0.0.1:1", default))
        self.new_home()
        path = self.hosts(token, self.host)
        text = text_of(path)
        # The host of the descriptor's defaults comes last.
        self.file(".config/gh/hosts.yml", text + text.replace(self.host, default).replace(token, "gho_of_the_default"))
        planned = {row["name"]: (row["provider"], row["state"]) for row in json.loads(
            self.credmgr("import", "gh", "--dry-run", "--json").out)}
        rows = json.loads(self.run_program("import", "gh", "--remove", "--json").out)
        self.assertEqual({row["name"]: (row["provider"], row["state"]) for row in rows}, {
            f"ada@{self.host}": (self.host.replace(":", "-"), "moved"), f"ada@{default}": ("github-enterprise", "failed")})
        self.assertEqual(planned[f"ada@{default}"], ("github-enterprise", "would_move"))
        self.assertEqual(planned[f"ada@{self.host}"], (self.host.replace(":", "-"), "would_move"))
        self.assertEqual(self.service.counts["resource_refused"], 0)
        self.assertNotIn(token, text_of(path))
        self.assertIn("gho_of_the_default", text_of(path))

    def test_a_descriptor_of_the_user_with_the_name_of_the_host(self):
        self.credmgr("add-provider", "github-enterprise", "--client-id", "x", "--set", "host=ghe.example.org",
                     "--client-secret-file", self.file("secret", "a-client-secret\n"))
        host = f"localhost:{self.service.port}"
        name = host.replace(":", "-")
        own = os.path.join(self.homes[-1], f"config/providers/{name}.yaml")
        os.makedirs(os.path.dirname(own), mode=0o700, exist_ok=True)
        text = f"provider: {name}\ngrant: api_key\nendpoints: {{}}\nhosts: [own.example]\n"
        self.file(own, text)
        path = self.hosts("gho_of_the_host", host)
        planned, = json.loads(self.credmgr("import", "gh", "--dry-run", "--json").out)
        self.assertEqual((planned["provider"], planned["state"]), (name + "-2", "would_move"))
        # The server refuses the token, so the hint must not name a provider that is not added.
        outcome = self.run_program("import", "gh", "--remove", "--replace")
        self.assertEqual(outcome.status, REFUSED, outcome.err)
        self.assertNotIn("hint:", outcome.err)
        self.assertNotIn(name, self.credmgr("list").out)
        outcome = self.run_program("add-provider", "github-enterprise", "--as", name, "--client-id", "x", "--set", f"host={host}")
        self.assertEqual(outcome.status, USAGE, outcome.err)
        self.assertIn("another descriptor is stored in", outcome.err)
        self.assertEqual(text_of(own), text)
        self.assertIn("gho_of_the_host", text_of(path))

    def test_the_host_of_the_defaults_comes_later(self):
        """The provider was added for another host, so the host of its descriptor gets a provider of its own."""
        self.add("oauth2-public", self.service, oauth2_server.PUBLIC_CLIENT)
        self.credmgr("login", "oauth2-public", "--account", ADA)
        token = self.credmgr("token", "oauth2-public").line
        prefix = os.path.dirname(os.path.dirname(self.binary))
        with open(os.path.join(prefix, "share/credmgr/providers/github-enterprise.yaml"), "w", encoding="utf-8") as file:
            file.write(self.DESCRIPTOR.format().replace('"127.0.0.1:1"', f'"{self.host}", format: hostname'))
        self.new_home()
        other = self.serve(OAuth2Server())
        self.credmgr("add-provider", "github-enterprise", "--client-id", "x", "--set", f"host=127.0.0.1:{other.port}",
                     "--client-secret-file", self.file("secret", "a-client-secret\n"))
        self.file(".git-credentials", f"http://ada:{token}@{self.host}\n", 0o600)
        name = self.host.replace(":", "-")
        row, = json.loads(self.credmgr("import", "git-store", "--dry-run", "--json").out)
        self.assertEqual((row["provider"], row["state"]), (name, "would_move"))
        row, = json.loads(self.credmgr("import", "git-store", "--remove", "--json").out)
        self.assertEqual((row["provider"], row["account"], row["state"], row["removed"]), (name, USER, "moved", True))
        self.assertEqual(other.exchanges, [])

    def test_a_token_that_is_not_verified_stays(self):
        path = self.hosts("gho_not_a_token", self.host)
        before = text_of(path)
        outcome = self.run_program("import", "gh", "--remove")
        self.assertEqual(outcome.status, REFUSED, outcome.err)
        self.assertEqual(text_of(path), before)
        self.assertEqual(json.loads(self.credmgr("list", "--json").out), [])


@unittest.skipUnless(SessionKeyring.is_possible(), "no gnome-keyring-daemon")
class Keyring(SessionKeyring, Import):
    def setUp(self):
        super().setUp()
        self.start_keyring()

    def keep(self, *attributes):
        self.tool("secret-tool", "store", "--label", "a label", *attributes, stdin=self.token)

    def test_libsecret(self):
        host = ["server", "127.0.0.1", "port", str(self.git_server.port)]
        self.keep("xdg:schema", "org.git.Password", "user", "ada", "object", "", "protocol", "http", *host)
        self.move("secret-service")
        self.assertEqual(self.listed("secret-service"), [])
        self.clone_with_credmgr()

    def test_git_credential_manager(self):
        self.keep("xdg:schema", "com.microsoft.GitCredentialManager", "service", "git:https://forge.example", "account", "ada")
        self.move("secret-service:ada@forge.example")

    def test_github_cli(self):
        path = os.path.join(self.folder, ".config/gh")
        os.makedirs(path)
        self.file(".config/gh/hosts.yml", "forge.example:\n    users:\n        ada:\n    git_protocol: https\n    user: ada\n")
        self.keep("service", "gh:forge.example", "username", "ada")
        self.move("gh")
        self.tool("secret-tool", "lookup", "service", "gh:forge.example", "username", "ada", status=1)


@with_tool("docker")
class Docker(Import):
    def test_config_and_login(self):
        authority = Authority(self.folder)
        registry = self.enterContext(RegistryServer(
            lambda username, password: (username, password) == ("ada", "the-password"), authority.context()))
        address = f"127.0.0.1:{registry.port}"
        engine = {"DOCKER_HOST": f"unix://{self.folder}/no-engine"}
        self.tool("docker", "login", "--username", "ada", "--password-stdin", address, stdin="the-password", environment=engine)
        path = os.path.join(self.folder, ".docker/config.json")
        self.assertIn('"auth"', text_of(path))
        self.assertEqual([entry["login"] for entry in self.listed("docker")], ["docker"])
        self.environment["SSL_CERT_FILE"] = authority.certificate
        self.credmgr("import", "docker", "--remove")
        self.assertEqual(json.loads(text_of(path)), {"auths": {}})
        programs = os.path.join(self.folder, "bin")
        os.mkdir(programs)
        os.symlink(BINARY, os.path.join(programs, "docker-credential-credmgr"))
        self.environment["PATH"] = programs + ":" + self.environment["PATH"]
        self.credmgr("docker-credential", "setup", "--all")
        before = registry.counts["served"]
        self.run_program("manifest", "inspect", "--insecure", f"{address}/team/demo:latest",
                         binary=shutil.which("docker"), environment=engine)
        self.assertGreater(registry.counts["served"], before)
        self.assert_nowhere_in(self.homes[-1], {"the-password"})


class Registries(Import):
    """A login of docker is verified as `docker login` does it. docker itself writes such a file."""

    def registry(self, accepts=lambda username, password: (username, password) == ("ada", "the-password"), **options):
        self.authority = Authority(self.folder)
        self.environment["SSL_CERT_FILE"] = self.authority.certificate
        registry = self.enterContext(RegistryServer(accepts, self.authority.context(), **options))
        self.address = f"127.0.0.1:{registry.port}"
        return registry

    def logins(self, user="ada", **passwords):
        os.makedirs(os.path.join(self.folder, ".docker"), exist_ok=True)
        auths = {address or self.address: {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}
                 for address, password in passwords.items()}
        return self.file(".docker/config.json", json.dumps({"auths": auths}), 0o600)

    def check(self, password, state, status=DONE):
        path = self.logins(**{self.address: password})
        before = text_of(path)
        outcome = self.run_program("import", "docker", "--remove", "--json")
        self.assertEqual(outcome.status, status, outcome.err)
        row, = json.loads(outcome.out)
        self.assertEqual((row["state"], row["removed"], text_of(path) != before), (state, state == "moved", state == "moved"), row)
        logins = json.loads(self.credmgr("list", "--json").out)
        self.assertEqual(len(logins), 0 if state == "failed" else 1)
        self.credmgr("logout", f"docker:{self.address}") if logins else None

    def test_basic(self):
        self.registry()
        self.check("the-password", "moved")
        self.check("another", "failed", REFUSED)

    def test_a_token_server(self):
        registry = self.registry(has_tokens=True)
        self.check("the-password", "moved")
        self.assertEqual(registry.counts["tokens"], 1)
        self.check("another", "failed", REFUSED)

    def test_a_token_server_elsewhere(self):
        """A realm without TLS gets no password."""
        registry = self.registry(has_tokens=True, realm="http://tokens.example/token")
        self.check("the-password", "moved_unverified")
        self.assertEqual(registry.counts["tokens"], 0)

    def test_a_token_server_at_another_address(self):
        """The user sees where the password went."""
        registry = self.registry(has_tokens=True)
        other = self.enterContext(RegistryServer(registry.accepts, self.authority.context(), has_tokens=True))
        registry.realm, other.token = other.base + "/token", registry.token
        self.logins(**{self.address: "the-password"})
        outcome = self.credmgr("import", "docker", "--remove")
        self.assertIn(f'the token server of "{self.address}" got the password: {other.base}\n', outcome.err)
        self.assertIn("and removed it", outcome.err)

    def test_an_unconfirmed_login_replaces_no_other(self):
        registry = self.registry()
        self.logins(**{self.address: "the-password"})
        self.assertNotIn("token server", self.credmgr("import", "docker").err)
        registry.routes["GET", "/v2/"] = lambda _: json_response({}, 503)
        # docker asks without a user name, so another user's login would replace it too.
        for user in ("ada", "bob"):
            path = self.logins(user, **{self.address: "stale"})
            before = text_of(path)
            outcome = self.run_program("import", "docker", "--remove", "--replace")
            self.assertEqual((outcome.status, text_of(path)), (USAGE, before), outcome.err)
            self.assertIn("the registry did not confirm this one; nothing was changed", outcome.err)
            self.assertIn(f'hint: run "credmgr logout docker:{self.address}" first to replace it', outcome.err)
            answer = json.loads(self.credmgr("docker-credential", "get", stdin=self.address + "\n").out)
            self.assertEqual((answer["Username"], answer["Secret"]), ("ada", "the-password"))

    def test_a_registry_that_is_down(self):
        registry = self.registry()
        registry.routes["GET", "/v2/"] = lambda _: json_response({}, 503)
        self.check("the-password", "moved_unverified")
        # One that answers everybody confirms nothing.
        registry.routes["GET", "/v2/"] = lambda _: json_response({})
        self.check("the-password", "moved_unverified")

    def test_the_login_of_a_helper(self):
        self.registry()
        self.file("docker-credential-own", f"""#!/bin/sh
case "$1" in
get) [ -e "{self.folder}/erased" ] || echo '{{"ServerURL":"{self.address}","Username":"ada","Secret":"the-password"}}' ;;
erase) touch "{self.folder}/erased" ;;
esac
""", 0o700)
        self.environment["PATH"] = self.folder + ":" + self.environment["PATH"]
        os.makedirs(os.path.join(self.folder, ".docker"), exist_ok=True)
        self.file(".docker/config.json", json.dumps({"auths": {self.address: {}}, "credsStore": "own"}), 0o600)
        row, = json.loads(self.credmgr("import", "docker", "--remove", "--json").out)
        self.assertEqual((row["state"], row["removed"]), ("moved", True))
        self.assertTrue(os.path.exists(os.path.join(self.folder, "erased")))
        answer = json.loads(self.credmgr("docker-credential", "get", stdin=self.address + "\n").out)
        self.assertEqual((answer["Username"], answer["Secret"]), ("ada", "the-password"))

    def test_a_helper_that_does_not_erase(self):
        self.registry()
        script = f"""#!/bin/sh
case "$1" in
get) echo '{{"ServerURL":"{self.address}","Username":"ada","Secret":"the-password"}}' ;;
erase) exit STATUS ;;
esac
"""
        self.environment["PATH"] = self.folder + ":" + self.environment["PATH"]
        os.makedirs(os.path.join(self.folder, ".docker"), exist_ok=True)
        self.file(".docker/config.json", json.dumps({"auths": {self.address: {}}, "credsStore": "own"}), 0o600)
        for status in ("0", "1"):
            self.file("docker-credential-own", script.replace("STATUS", status), 0o700)
            outcome = self.run_program("import", "docker", "--remove")
            self.assertEqual(outcome.status, USAGE, outcome.err)
            self.assertRegex(outcome.err, f'(moved|already had) docker:{self.address} as a login of docker')
            self.assertIn(f"left docker:{self.address} in docker-credential-own: ", outcome.err)
            self.assertNotIn("cannot move", outcome.err)


class Packages(Import):
    def setUp(self):
        super().setUp()
        self.host = f"127.0.0.1:{self.service.port}"

        def whoami(request):
            if request.headers.get("Authorization") != f"Bearer {self.token}":
                raise Refusal(json_response({}, 401))
            return json_response({"username": "ada"})

        self.service.routes["GET", "/-/whoami"] = whoami
        self.service.routes["GET", "/index/config.json"] = lambda _: json_response(
            {"dl": self.service.base, "api": self.service.base})

    @with_tool("npm")
    def test_npm(self):
        key = f"//{self.host}/:_authToken"
        whoami = ("npm", "whoami", "--registry", self.service.base + "/")
        self.tool("npm", "config", "set", key, self.token)
        self.assertEqual(self.tool(*whoami).line, "ada")
        self.move("npm")
        self.tool(*whoami, status=1)
        self.tool("npm", "config", "set", key, "${NPM_TOKEN}")
        self.assertEqual(self.listed("npm"), [])
        self.assertEqual(self.credmgr("exec", "import-host=NPM_TOKEN", "--", *whoami).line, "ada")

    @with_tool("cargo")
    def test_cargo(self):
        user = os.path.expanduser("~")
        rust = {"RUSTUP_HOME": os.environ.get("RUSTUP_HOME", os.path.join(user, ".rustup")),
                "CARGO_HOME": os.path.join(self.folder, "cargo")}
        self.environment.update(rust)
        os.mkdir(rust["CARGO_HOME"])
        self.file("cargo/config.toml", f'[registries.own]\nindex = "sparse+{self.service.base}/index/"\n')
        self.tool("cargo", "login", "--registry", "own", stdin=self.token)
        self.move("cargo:own")
        self.assertNotIn(self.token, text_of(os.path.join(self.folder, "cargo/credentials.toml")))

    def test_pypirc(self):
        self.file(".pypirc", "[distutils]\nindex-servers = own\n\n[own]\n"
                  f"repository = http://{self.host}/legacy/\nusername = __token__\npassword = {self.token}\n")
        self.move("pypi:own")
        self.assertIn("username = __token__", text_of(os.path.join(self.folder, ".pypirc")))


@with_tool("pass")
class Pass(Import):
    def test_an_entry_of_a_provider(self):
        self.environment["GNUPGHOME"] = os.path.join(self.folder, "gnupg")
        os.mkdir(self.environment["GNUPGHOME"], 0o700)
        self.addCleanup(self.tool, "gpgconf", "--kill", "gpg-agent")
        self.tool("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "ada@example.org", "default",
                  "default", "never")
        self.tool("pass", "init", "ada@example.org")
        self.tool("pass", "insert", "--multiline", "git/forge.example/ada", stdin=f"{self.token}\n")
        self.tool("pass", "insert", "--multiline", "bank.example/ada", stdin="private\n")
        self.assertEqual([entry["name"] for entry in self.listed("pass")], ["git/forge.example/ada"])
        self.move("pass")
        self.tool("pass", "show", "git/forge.example/ada", status=1)
        self.assertEqual(self.tool("pass", "show", "bank.example/ada").line, "private")
        # A second factor or recovery codes below the token exist nowhere else.
        text = f"{self.token}\nlogin: ada\notpauth://totp/Forge:ada?secret=JBSWY3DPEHPK3PXP\n"
        self.tool("pass", "insert", "--multiline", "git/forge.example/ada", stdin=text)
        outcome = self.credmgr("import", "pass", "--remove", "--yes")
        self.assertRegex(outcome.err, '(?s)had pass:git/forge.example/ada.*left pass:git/forge.example/ada .*it has more lines')
        self.assertEqual(self.tool("pass", "show", "git/forge.example/ada").out, text)
        # Git Credential Manager writes below the secret what the path says.
        self.tool("pass", "rm", "--force", "git/forge.example/ada")
        self.tool("pass", "insert", "--multiline", "git/https/forge.example/ada",
                  stdin=f"{self.token}\nservice=https://forge.example\naccount=ada\n")
        self.credmgr("import", "pass", "--remove", "--yes")
        self.tool("pass", "show", "git/https/forge.example/ada", status=1)


@with_tool("aws")
class AWS(Import):
    def test_the_keys_of_a_profile(self):
        """The provider is the one whose programs read the same values from their environment."""
        self.environment["PATH"] = os.environ["PATH"]
        for key, value in (("aws_access_key_id", "AKIAEXAMPLE"), ("aws_secret_access_key", self.token), ("region", "eu-west-1")):
            self.tool("aws", "configure", "set", key, value)
        self.assertEqual([entry["provider"] for entry in self.listed("aws")], ["aws"])
        host = f"127.0.0.1:{self.service.port}"
        self.credmgr("add-provider", self.file("keys.yaml", """
            provider: keys
            grant: secrets
            variables:
              key_id: { at_login: true, help: access key ID }
              key: { at_login: true, secret: true, help: secret access key }
            endpoints: { identity: "http://HOST/identity" }
            environment: { key_id: AWS_ACCESS_KEY_ID, key: AWS_SECRET_ACCESS_KEY }
            account: login
            hosts: [HOST]
            """.replace("HOST", host)))
        self.assertEqual([entry["provider"] for entry in self.listed("aws")], ["keys"])
        row, = json.loads(self.credmgr("import", "aws", "--remove", "--json", "--yes").out)
        self.assertEqual((row["state"], row["removed"], row["account"]), ("moved", True, USER))
        self.assertEqual(self.credmgr("exec", "keys", "--", "sh", "-c", "echo $AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY").line,
                         "AKIAEXAMPLE:" + self.token)
        self.assertEqual(text_of(os.path.join(self.folder, ".aws/credentials")), "[default]\n")

    def test_keys_with_the_same_secret(self):
        """Profiles with another key ID or session token have another credential."""
        host = f"127.0.0.1:{self.service.port}"
        self.credmgr("add-provider", self.file("keys.yaml", """
            provider: keys
            grant: secrets
            variables:
              key_id: { at_login: true, help: access key ID }
              key: { at_login: true, secret: true, help: secret access key }
              session: { at_login: true, secret: true, optional: true, help: session token }
            endpoints: { identity: "http://HOST/identity" }
            environment: { key_id: AWS_ACCESS_KEY_ID, key: AWS_SECRET_ACCESS_KEY, session: AWS_SESSION_TOKEN }
            account: login
            hosts: [HOST]
            """.replace("HOST", host)))
        profile = f"[{{}}]\naws_access_key_id = {{}}\naws_secret_access_key = {self.token}\naws_session_token = {{}}\n"
        first = profile.format("first", "ASIAEXAMPLE1", "session-of-the-first")
        others = [profile.format("second", "ASIAEXAMPLE1", "session-of-the-second"),
                  profile.format("third", "ASIAEXAMPLE2", "session-of-the-first")]
        os.mkdir(os.path.join(self.folder, ".aws"))
        path = self.file(".aws/credentials", first + "".join(others), 0o600)
        rows = json.loads(self.run_program("import", "aws", "--remove", "--yes", "--json").out)
        self.assertEqual([row["state"] for row in rows], ["moved", "failed", "failed"], rows)
        for other in others:
            self.assertIn(other.split("\n", 1)[1], text_of(path))
        self.assertNotIn("[first]\naws", text_of(path))
        self.assertEqual(self.credmgr("exec", "keys", "--", "sh", "-c", "echo $AWS_ACCESS_KEY_ID:$AWS_SESSION_TOKEN").line,
                         "ASIAEXAMPLE1:session-of-the-first")
        # The very same credential is found again.
        self.file(".aws/credentials", first, 0o600)
        row, = json.loads(self.credmgr("import", "aws", "--remove", "--yes", "--json").out)
        self.assertEqual((row["state"], row["removed"]), ("moved", True))


class OtherClients(ProgramTest):
    """Tools that store a client with its refresh token, or the key of a service account.

    `application_default_credentials.json` has the fields that google.aip.dev/auth/4113 documents for gcloud, and
    google-auth 2.63.0 accepts it. `notes` is what `oidc-gen --print` 4.2.6 prints for an account.
    """

    shipped = ("google", "google-service")

    def setUp(self):
        super().setUp()
        self.service = self.serve(DiscoveryServer())

    def client(self, name, method="client_secret_post", scope="read offline"):
        """Makes a client with a refresh token, as another tool got them."""
        service = self.service
        service.clients[name] = Client(name, service.secret("cs-", 40), method)
        return {"client_id": name, "client_secret": service.clients[name].secret,
                "refresh_token": self.refresh_token(name, scope)}

    def refresh_token(self, client, scope="read offline"):
        service = self.service
        service.families += 1
        token = Token(client, service.secret("at-", 40), service.secret("rt-", 40), scope, clock.now(), 1, service.families)
        service.tokens.append(token)
        return token.refresh_token

    def is_used(self, refresh_token):
        return next(token.used for token in self.service.tokens if token.refresh_token == refresh_token)

    def own(self, provider, text):
        return self.written(os.path.join(self.homes[-1], f"config/providers/{provider}.yaml"), f"provider: {provider}\n{text}")

    def moved(self, *arguments, **options):
        row, = json.loads(self.credmgr("import", *arguments, "--json", **options).out)
        return row

    def refused(self, *arguments, status=USAGE):
        outcome = self.run_program("import", *arguments)
        self.assertEqual(outcome.status, status, outcome.err)
        self.assertIn("cannot move", outcome.err)
        return outcome.err

    def written(self, path, text):
        os.makedirs(os.path.dirname(os.path.join(self.folder, path)), exist_ok=True)
        return self.file(path, text)

    # gcloud

    def gcloud(self, **values):
        """Writes gcloud's file for a client of our server, which the user's own descriptor calls Google."""
        value = json.loads(text_of("Tests/Judge/imports/application_default_credentials.json"))
        place = self.written(".config/gcloud/application_default_credentials.json", json.dumps({**value, **values}))
        os.makedirs(os.path.join(self.homes[-1], "config/providers"), mode=0o700, exist_ok=True)
        self.file(os.path.join(self.homes[-1], "config/providers/google.yaml"), f"""
provider: google
grant: authorization_code
endpoints:
  authorization: {self.service.base}/authorize
  token: {self.service.base}/token
  identity: {self.service.base}/identity
client: {{ authentication: client_secret_post }}
scope: [read]
account: login
""")
        return place

    def test_the_login_of_gcloud(self):
        place = self.gcloud(**self.client("764086051850-judge"))
        listed, = json.loads(self.credmgr("import", "--list", "--json").out)
        self.assertEqual((listed["name"], listed["provider"], listed["added"], listed["movable"], listed["removable"]),
                         ("application-default", "google", False, True, True))
        # Only a file of the user says that these servers are Google's.
        self.assertIn("--yes", self.refused("gcloud"))
        self.assertEqual(self.service.counts["issued"], 0)
        outcome = self.credmgr("import", "gcloud", "--yes")
        self.assertIn(f'moved gcloud:application-default as "{USER}" at "google"\n', outcome.err)
        self.assertIn('the quota project "notes-123456" was not moved', outcome.err)
        token = self.credmgr("token", "google").line
        self.assertTrue(self.service.accepts(token))
        # The provider rotated the token, so a second request with the first one would revoke both.
        row = self.moved("gcloud", "--remove", "--yes")
        self.assertEqual((row["state"], row["removed"], self.service.counts["reuse"]), ("moved", True, 0))
        self.assertFalse(os.path.exists(place))
        self.assertNotEqual(self.credmgr("token", "google", "--refresh").line, token)

    def test_a_provider_with_another_client(self):
        self.gcloud(**self.client("764086051850-judge"))
        self.credmgr("add-provider", "google", "--client-id", oauth2_server.PUBLIC_CLIENT)
        row = self.moved("gcloud", "--yes")
        self.assertEqual((row["state"], row["provider"], row["account"]), ("moved", "google-gcloud", USER))
        self.assertTrue(self.service.accepts(self.credmgr("token", "google-gcloud").line))
        self.assertIn(oauth2_server.PUBLIC_CLIENT, self.credmgr("providers", "google").out)
        self.gcloud(**self.client("764086051850-third"))
        row = self.moved("gcloud", "--yes")
        self.assertEqual((row["state"], row["provider"]), ("moved", "google-gcloud-2"))

    def test_another_login_of_the_same_client(self):
        """A refresh shows whose login it is, but may invalidate the token, so it needs `--replace`."""
        values = self.client("764086051850-judge")
        self.gcloud(**values)
        self.moved("gcloud", "--yes")
        second = self.refresh_token("764086051850-judge")
        place = self.gcloud(**{**values, "refresh_token": second})
        self.assertIn("--replace", self.refused("gcloud", "--yes", "--remove"))
        self.assertEqual((self.is_used(second), os.path.exists(place)), (False, True))
        row = self.moved("gcloud", "--yes", "--remove", "--replace")
        self.assertEqual((row["state"], row["account"], row["removed"]), ("moved", USER, True))

    def test_a_second_secret_of_the_client(self):
        """Two secrets of a client may be valid, and the file has the only copy of the new one."""
        values = self.client("764086051850-judge")
        self.gcloud(**values)
        self.moved("gcloud", "--yes", "--remove")
        old = self.service.clients["764086051850-judge"]
        new = Client(old.identifier, self.service.secret("cs-", 40), "client_secret_post")
        self.service.clients[old.identifier] = new
        second = self.refresh_token(old.identifier)
        place = self.gcloud(**{**values, "client_secret": new.secret, "refresh_token": second})
        self.assertIn("and the client's secret at", self.refused("gcloud", "--yes", "--remove"))
        self.credmgr("logout", "google", "--all", "--keep-remote")
        text = self.refused("gcloud", "--yes", "--remove")
        self.assertIn("has another secret of this client; nothing was changed", text)
        self.assertIn("--replace", text)
        self.assertEqual((self.is_used(second), os.path.exists(place)), (False, True))
        row = self.moved("gcloud", "--yes", "--remove", "--replace")
        self.assertEqual((row["state"], row["provider"], row["removed"]), ("moved", "google", True))
        self.assertTrue(self.service.accepts(self.credmgr("token", "google", "--refresh").line))
        # A secret that the provider refuses takes the place of no other.
        self.gcloud(**{**values, "client_secret": "stale", "refresh_token": self.refresh_token(old.identifier)})
        self.refused("gcloud", "--yes", "--remove", "--replace", status=REFUSED)
        self.assertTrue(self.service.accepts(self.credmgr("token", "google", "--refresh").line))

    def test_another_descriptor_with_the_new_name(self):
        """Neither the user's nor a built-in one loses its name."""
        self.credmgr("add-provider", "google", "--client-id", oauth2_server.PUBLIC_CLIENT)
        text = "provider: {}\ngrant: api_key\nendpoints: {{}}\nhosts: [own.example]\n"
        prefix = os.path.dirname(os.path.dirname(self.binary))
        shipped = self.file(os.path.join(prefix, "share/credmgr/providers/google-gcloud.yaml"), text.format("google-gcloud"))
        self.addCleanup(os.remove, shipped)
        own = self.own("google-gcloud-2", "grant: api_key\nendpoints: {}\nhosts: [own.example]\n")
        before = text_of(own)
        self.gcloud(**self.client("764086051850-judge"))
        planned, = json.loads(self.credmgr("import", "gcloud", "--dry-run", "--json").out)
        row = self.moved("gcloud", "--yes")
        self.assertEqual((row["state"], row["provider"], planned["provider"]), ("moved", "google-gcloud-3", "google-gcloud-3"))
        self.assertEqual(text_of(own), before)
        self.assertIn("own.example", self.credmgr("providers", "google-gcloud").out)
        # The client is found again.
        row = self.moved("gcloud", "--yes", "--remove")
        self.assertEqual((row["provider"], row["removed"], self.service.counts["reuse"]), ("google-gcloud-3", True, 0))

    # Interruptions

    def second(self, values):
        """Writes another file of gcloud with the same client; returns it, its refresh token, and the environment."""
        token = self.refresh_token(values["client_id"])
        place = self.written("second/application_default_credentials.json", json.dumps({
            **json.loads(text_of("Tests/Judge/imports/application_default_credentials.json")), **values, "refresh_token": token}))
        return place, token, {"CLOUDSDK_CONFIG": os.path.dirname(place)}

    @contextlib.contextmanager
    def held(self, method, path):
        """Makes the next request wait until the end of the block; yields an event that says that it arrived."""
        arrived, released = threading.Event(), threading.Event()
        answer = self.service.routes[method, path]

        def hold(request):
            self.service.routes[method, path] = answer
            arrived.set()
            released.wait(60)
            return answer(request)

        self.service.routes[method, path] = hold
        try:
            yield arrived
        finally:
            released.set()

    def interrupted(self, signal_number):
        """Stops an import after the provider has replaced the refresh token."""
        values = self.client("764086051850-judge")
        place = self.gcloud(**values)
        with self.held("GET", "/identity") as arrived:
            running = self.start("import", "gcloud", "--yes", "--remove", stdin=False)
            self.assertTrue(arrived.wait(30))
            running.process.send_signal(signal_number)
            outcome = running.end()
        self.assertEqual((os.path.exists(place), self.is_used(values["refresh_token"])), (True, True), outcome.err)
        return values, place, outcome

    def test_an_interrupted_import_goes_on(self):
        """The provider has replaced the refresh token, so the import must not take the provider away with the new one."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            with self.subTest(number):
                _, place, outcome = self.interrupted(number)
                if number == signal.SIGINT:
                    self.assertEqual(outcome.status, 130)
                row = self.moved("gcloud", "--yes", "--remove")
                self.assertEqual((row["state"], row["account"], row["removed"]), ("moved", USER, True))
                self.assertFalse(os.path.exists(place))
                self.assertTrue(self.service.accepts(self.credmgr("token", "google", "--refresh").line))
                self.assertEqual(self.service.counts["reuse"], 0)
                self.new_home()

    def test_another_import_after_an_interrupted_one(self):
        values, place, _ = self.interrupted(signal.SIGKILL)
        other, token, environment = self.second(values)
        outcome = self.run_program("import", "gcloud", "--yes", "--remove", environment=environment)
        self.assertEqual(outcome.status, USAGE, outcome.err)
        self.assertIn(f'finished an interrupted import of "{USER}" at "google"', outcome.err)
        self.assertIn("nothing was changed", outcome.err)
        self.assertEqual((self.is_used(token), os.path.exists(other)), (False, True))
        self.assertTrue(self.service.accepts(self.credmgr("token", "google", "--refresh").line))
        row = self.moved("gcloud", "--yes", "--remove")
        self.assertEqual((row["account"], row["removed"], self.service.counts["reuse"]), (USER, True, 0))
        self.assertFalse(os.path.exists(place))

    def test_the_client_of_an_interrupted_import_stays(self):
        """Only this client can use the new refresh token, until the user gives it up."""
        self.interrupted(signal.SIGKILL)
        finish = 'hint: run "credmgr import gcloud:application-default --remove --yes" to finish'
        self.assertIn(f'an import at "google" was interrupted\ncredmgr: {finish} it', self.credmgr("list").err)
        for arguments in (("remove-provider", "google"), ("add-provider", "google", "--client-id", "another", "--replace", "--yes")):
            outcome = self.run_program(*arguments)
            self.assertEqual(outcome.status, USAGE, outcome.err)
            self.assertIn("an interrupted import needs it", outcome.err)
            self.assertIn(finish + ' it, or run "credmgr logout google --all" to give it up', outcome.err)
        outcome = self.credmgr("logout", "google", "--all")
        self.assertIn("gave up an interrupted import at \"google\"", outcome.err)
        self.assertIn("the entry of the other tool needs a new login", outcome.err)
        self.assertNotIn("interrupted", self.credmgr("list").err)
        self.credmgr("remove-provider", "google")

    def test_two_imports_at_the_same_time(self):
        """The second one waits, and then finds the account of the first one."""
        values = self.client("764086051850-judge")
        place = self.gcloud(**values)
        other, token, environment = self.second(values)
        with self.held("POST", "/token") as arrived:
            first = self.start("import", "gcloud", "--yes", "--remove", stdin=False)
            self.assertTrue(arrived.wait(30))
            second = self.start("import", "gcloud", "--yes", "--remove", stdin=False, environment=environment)
            second.wait_for("waiting for another login")
        self.assertEqual(first.end().status, DONE)
        outcome = second.end()
        self.assertEqual(outcome.status, USAGE, outcome.err)
        self.assertIn("--replace", outcome.err)
        self.assertEqual((self.is_used(token), os.path.exists(other), os.path.exists(place)), (False, True, False))
        self.assertTrue(self.service.accepts(self.credmgr("token", "google", "--refresh").line))

    def test_an_import_beside_one_that_fails(self):
        """The first one must not take the provider away from the second one."""
        values = self.client("764086051850-judge")
        place = self.gcloud(**{**values, "refresh_token": self.service.secret("rt-", 40)})
        other, _, environment = self.second(values)
        with self.held("POST", "/token") as arrived:
            first = self.start("import", "gcloud", "--yes", "--remove", stdin=False)
            self.assertTrue(arrived.wait(30))
            second = self.start("import", "gcloud", "--yes", "--remove", stdin=False, environment=environment)
            second.wait_for("waiting for another login")
        self.assertEqual(first.end().status, REFUSED)
        outcome = second.end()
        self.assertEqual(outcome.status, DONE, outcome.err)
        self.assertEqual((os.path.exists(other), os.path.exists(place)), (False, True))
        self.assertTrue(self.service.accepts(self.credmgr("token", "google", "--refresh").line))

    def test_a_refused_token_changes_nothing(self):
        values = self.client("764086051850-judge")
        place = self.gcloud(**{**values, "refresh_token": self.service.secret("rt-", 40)})
        own = os.path.join(self.homes[-1], "config/providers/google.yaml")
        before = text_of(place), text_of(own)
        self.refused("gcloud", "--yes", "--remove", status=REFUSED)
        self.assertEqual((text_of(place), text_of(own)), before)
        self.assertEqual(json.loads(self.credmgr("list", "--json").out), [])
        listed, = json.loads(self.credmgr("import", "--list", "--json").out)
        self.assertFalse(listed["added"])

    def test_the_key_of_a_service_account(self):
        """Google refuses every key of a test, so the file stays."""
        place = self.written(".config/gcloud/application_default_credentials.json", json.dumps({
            "type": "service_account", "client_email": "robot@judge.example", "private_key_id": "1", "private_key": "x"}))
        listed, = json.loads(self.credmgr("import", "--list", "--json").out)
        self.assertEqual((listed["name"], listed["provider"], listed["movable"]), ("robot@judge.example", "google-service", True))
        self.assertIn("key file of Google service account", self.refused("gcloud", "--remove"))
        self.assertTrue(os.path.exists(place))

    # oidc-agent

    PASSWORD = "pass word of oidc-agent"

    def stand_in(self, name, client=None):
        """Puts an `oidc-gen` into PATH that prints an account as the real one does, for the right password."""
        printed = text_of("Tests/Judge/imports/notes")
        values = {"issuer_url": self.service.base + "/", **(client or self.client(name, "client_secret_basic"))}
        for key, value in values.items():
            printed = re.sub(f'("{key}":\t)".*"', lambda match: match[1] + json.dumps(value), printed)
        self.written("tools/oidc-gen", f"""#!/bin/sh
[ "$1 $3" = "--print --pw-file=/dev/stdin" ] && [ "$(cat)" = "{self.PASSWORD}" ] || exit 1
cat "$2.printed"
""")
        os.chmod(os.path.join(self.folder, "tools/oidc-gen"), 0o700)
        self.environment["PATH"] = os.path.join(self.folder, "tools") + ":" + self.environment["PATH"]
        self.written(f".config/oidc-agent/{name}.printed", printed)
        return self.written(".config/oidc-agent/" + name, "encrypted\n")

    def test_an_account_of_oidc_agent(self):
        place = self.stand_in("notes")
        listed, = json.loads(self.credmgr("import", "--list", "--json").out)
        self.assertEqual((listed["name"], listed["provider"], listed["movable"]), ("notes", None, True))
        self.assertIn("OIDC_ENCRYPTION_PW", self.refused("oidc-agent"))
        self.environment["OIDC_ENCRYPTION_PW"] = "wrong"
        self.assertIn("password", self.refused("oidc-agent", "--yes"))
        self.environment["OIDC_ENCRYPTION_PW"] = self.PASSWORD
        # credmgr makes the provider from the issuer's metadata, which needs consent.
        self.assertIn("--yes", self.refused("oidc-agent"))
        row = self.moved("oidc-agent:notes", "--yes")
        self.assertEqual((row["state"], row["provider"]), ("moved", "127.0.0.1"))
        self.assertTrue(self.service.accepts(self.credmgr("token", "127.0.0.1").line))
        self.assertEqual(self.service.counts["registered"], 0)
        row = self.moved("oidc-agent:notes", "--remove", "--yes")
        self.assertEqual((row["state"], row["removed"], self.service.counts["reuse"]), ("moved", True, 0))
        self.assertFalse(os.path.exists(place))
        # A second account has its own client at the same issuer.
        self.stand_in("work")
        row = self.moved("oidc-agent:work", "--yes")
        self.assertEqual((row["state"], row["provider"]), ("moved", "127.0.0.1-work"))

    def test_an_issuer_whose_address_is_also_an_api(self):
        """oidc-agent ends each issuer with a slash."""
        self.service.routes["GET", "/"] = lambda _: json_response({}, 401, [("WWW-Authenticate", "Bearer")])
        self.environment["OIDC_ENCRYPTION_PW"] = self.PASSWORD
        self.stand_in("notes")
        self.assertNotIn("Made for the resource", self.credmgr("import", "oidc-agent", "--yes").err)
        self.assertTrue(self.service.accepts(self.credmgr("token", "127.0.0.1").line))

    def test_two_accounts_of_one_client(self):
        """Without a refresh, credmgr cannot tell whether both have the same user."""
        self.environment["OIDC_ENCRYPTION_PW"] = self.PASSWORD
        client = self.client("judge-agent", "client_secret_basic")
        self.stand_in("notes", client)
        second = self.refresh_token("judge-agent")
        place = self.stand_in("same", {**client, "refresh_token": second})
        outcome = self.run_program("import", "oidc-agent:notes", "oidc-agent:same", "--yes", "--remove", "--replace", "--json")
        self.assertEqual([row["state"] for row in json.loads(outcome.out)], ["moved", "failed"], outcome.err)
        self.assertIn("--replace", self.refused("oidc-agent:same", "--yes", "--remove"))
        self.assertEqual((self.is_used(second), os.path.exists(place)), (False, True))
        self.assertTrue(self.service.accepts(self.credmgr("token", "127.0.0.1", "--refresh").line))
        row = self.moved("oidc-agent:same", "--yes", "--remove", "--replace")
        self.assertEqual((row["state"], row["removed"]), ("moved", True))

    def test_the_password_at_the_terminal(self):
        self.stand_in("notes")
        terminal = self.terminal("import", "oidc-agent:notes", "--remove")
        terminal.wait_for("password of oidc-agent:notes:")
        terminal.type(self.PASSWORD + "\n")
        terminal.wait_for(r"Add it as .*\[y/N\]")
        terminal.type("y\n")
        self.assertEqual(terminal.end(), DONE, terminal.seen)
        self.assertIn("moved oidc-agent:notes", terminal.seen)
        self.assertNotIn(self.PASSWORD, terminal.seen)

    @unittest.skipUnless(shutil.which("oidc-gen") and shutil.which("oidc-agent"), "no oidc-agent")
    def test_an_account_that_oidc_gen_wrote(self):
        # oidc-agent asks for further scopes.
        values = self.client("judge-agent", "client_secret_basic", "read offline openid offline_access")
        password = self.file("password", self.PASSWORD)
        self.tool_environment = {**self.environment, "PATH": os.environ["PATH"], "OIDC_ENCRYPTION_PW": self.PASSWORD}
        os.makedirs(os.path.join(self.folder, ".config/oidc-agent"))
        done = subprocess.run(
            ["sh", "-c", 'eval "$(oidc-agent)" && oidc-gen "$@"; oidc-agent --kill', "sh", "-m", "--flow=refresh", "--rt-env", f"--iss={self.service.base}", "--pw-file=" + password,
             "--client-id=" + values["client_id"], "--client-secret=" + values["client_secret"], "--scope=read offline",
             "--confirm-yes", "notes"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env={**self.tool_environment, "OIDC_REFRESH_TOKEN": values["refresh_token"]}, timeout=60)
        self.assertTrue(os.path.exists(os.path.join(self.folder, ".config/oidc-agent/notes")), done.stdout + done.stderr)
        row = self.moved("oidc-agent:notes", "--remove", "--yes", environment=self.tool_environment)
        self.assertEqual((row["state"], row["removed"]), ("moved", True))
        self.assertTrue(self.service.accepts(self.credmgr("token", "127.0.0.1").line))
