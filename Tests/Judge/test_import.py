"""Moves the credentials that the real tools stored, and lets the tools work with credmgr afterwards."""

import json
import os
import shutil
import subprocess
import unittest

import oauth2_server
from git_server import GitServer
from oauth2_server import OAuth2Server
from oauth2_store import USER
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
                         [("github.com", None), ("acme.ghe.com", "github")])
        # The registry still has the host that it has with github.com.
        self.file(".netrc", "machine ghcr.io login ada password one\n")
        entry, = self.listed("netrc")
        self.assertEqual((entry["provider"], "api.acme.ghe.com" in entry["asks_about"]), ("github", True))

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
        # The provider has one host, so another one needs a provider of its own.
        outcome = self.run_program("import", "gh:ghe.example.org", "--remove")
        self.assertEqual(outcome.status, USAGE, outcome.err)
        self.assertIn("credmgr add-provider github-enterprise --as NAME --set host=ghe.example.org --client-id ID", outcome.err)
        self.assertIn(token, text_of(path))

    def test_one_command_moves_the_login_of_one_host_only(self):
        self.add("oauth2-public", self.service, oauth2_server.PUBLIC_CLIENT)
        self.credmgr("login", "oauth2-public", "--account", ADA)
        token = self.credmgr("token", "oauth2-public").line
        self.new_home()
        path = self.hosts(token, self.host, f"localhost:{self.service.port}")
        outcome = self.run_program("import", "gh", "--remove")
        self.assertEqual(outcome.status, USAGE, outcome.err)
        self.assertIn(f"--as NAME --set host=localhost:{self.service.port}", outcome.err)
        self.assertIn("localhost", text_of(path))
        self.assertEqual(text_of(path).count(token), 1)

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
        registry = self.enterContext(RegistryServer(
            lambda username, password: (username, password) == ("ada", "the-password"), Authority(self.folder).context()))
        address = f"127.0.0.1:{registry.port}"
        engine = {"DOCKER_HOST": f"unix://{self.folder}/no-engine"}
        self.tool("docker", "login", "--username", "ada", "--password-stdin", address, stdin="the-password", environment=engine)
        path = os.path.join(self.folder, ".docker/config.json")
        self.assertIn('"auth"', text_of(path))
        self.assertEqual([entry["login"] for entry in self.listed("docker")], ["docker"])
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


class OtherFiles(ProgramTest):
    """Files whose secrets cannot be moved. credmgr lists them and leaves them unchanged.

    `oidc-gen` 4.2.6 wrote `notes` for a provider on this machine, with dummy secrets.
    `application_default_credentials.json` has the fields that google.aip.dev/auth/4113 documents for gcloud, and
    google-auth 2.63.0 accepts it.
    """

    def assert_stays(self, entry, path, advice, hint):
        text = text_of("Tests/Judge/imports/" + os.path.basename(path))
        os.makedirs(os.path.dirname(os.path.join(self.folder, path)))
        path = self.file(path, text, 0o600)
        row, = json.loads(self.credmgr("import", "--list", "--json").out)
        self.assertEqual((row["tool"] + ":" + row["name"], row["advice"], row["movable"]), (entry, advice, False))
        outcome = self.run_program("import", entry, "--remove")
        self.assertEqual(outcome.status, USAGE, outcome.err)
        self.assertIn(hint, outcome.err)
        self.assertNotIn("dummy", outcome.out + outcome.err)
        self.assertEqual(text_of(path), text)

    def test_an_account_of_oidc_agent(self):
        self.assert_stays("oidc-agent:notes", ".config/oidc-agent/notes", "encrypted", "credmgr add-provider ISSUER")

    def test_the_application_default_credentials_of_gcloud(self):
        self.assert_stays("gcloud:application-default", ".config/gcloud/application_default_credentials.json",
                          "belongs_to_client", "credmgr login google")
