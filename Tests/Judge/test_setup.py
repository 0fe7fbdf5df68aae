"""`credmgr setup`: from a question at the terminal to the first token, and every way to stop in between."""

import json
import os
import re

import test_keys
from discovery_server import DiscoveryServer
from oauth2_server import CLIENT_SECRET, CONFIDENTIAL_CLIENT, POST_CLIENT, OAuth2Server
from program import DONE, LOGIN_NEEDED, REFUSED, UNREACHABLE, USAGE, ProgramTest

INTERRUPTED = 130

FORGE = """provider: {name}
title: Forge
group: forge
grant: [authorization_code, device_code]
key: {{ page: https://forge.example/tokens }}
endpoints:
  authorization: {base}/authorize
  token: {base}/token
  device_authorization: {base}/device
  identity: {base}/resource
account: login
scope: [read, offline]
client: {{ authentication: client_secret_post, register: https://forge.example/register }}
hosts: ["{place}"]
git: {{ hosts: [git.forge.example] }}
docker: {{ hosts: [registry.forge.example] }}
"""


class SetupTest(ProgramTest):
    shipped = ("openai", "anthropic")

    def setUp(self):
        super().setUp()
        # The program offers docker only where it is installed.
        self.file("docker", "#!/bin/sh\n", 0o700)
        self.environment["PATH"] = self.folder + ":" + self.environment["PATH"]

    def forge(self):
        """Ships a provider of OAuth, which also takes tokens."""
        service = self.serve(OAuth2Server())
        self.ship("forge", FORGE.format(name="forge", base=service.base, place=service.base.removeprefix("http://")))
        self.addCleanup(os.remove, self.place("forge"))
        return service

    def place(self, name):
        prefix = os.path.dirname(os.path.dirname(self.binary))
        return os.path.join(prefix, "share/credmgr/providers", name + ".yaml")

    def ship(self, name, text):
        with open(self.place(name), "w", encoding="utf-8") as file:
            file.write(text)

    def own_file(self):
        """Returns a server and a file with its descriptor."""
        service = self.serve(OAuth2Server())
        text = FORGE.format(name="own", base=service.base, place=service.base.removeprefix("http://"))
        return service, self.file("own.yaml", text)

    def answer(self, answers, *arguments):
        """Answers each question as it appears; returns the terminal."""
        person = self.terminal(*arguments, columns=200)
        self.give(person, answers)
        return person

    def give(self, person, answers):
        for question, answer in answers:
            person.wait_for(question)
            person.seen_before, person.seen = getattr(person, "seen_before", "") + person.seen, ""
            person.type(answer if answer == "\x03" else answer + "\r")

    def completed(self, answers, *arguments, status=DONE):
        person = self.answer(answers, *arguments)
        self.assertIn(person.end(), status if isinstance(status, tuple) else (status,), person.seen)
        return getattr(person, "seen_before", "") + person.seen

    def accounts_of(self, provider):
        return json.loads(self.credmgr("list", provider, "--json").out)

    def stored(self):
        """Returns the accounts, the added providers and the installed descriptors."""
        added = [row for row in json.loads(self.credmgr("providers", "--json").out) if row["added"]]
        folder = os.path.join(self.homes[-1], "config/providers")
        return json.loads(self.credmgr("list", "--json").out) + added + (os.listdir(folder) if os.path.isdir(folder) else [])

    def assert_stops_everywhere(self, answers, *arguments):
        """Control-C at each question stores nothing, and names the command that continues."""
        for count in range(len(answers)):
            question = answers[count][0]
            with self.subTest(question=question):
                shown = self.completed(answers[:count] + [(question, "\x03")], *arguments, status=INTERRUPTED)
                self.assertRegex(shown, r'hint: run "credmgr setup[^"]*" to continue')
                self.assertEqual(self.stored(), [])


class Keys(SetupTest):
    def setUp(self):
        super().setUp()
        self.service = self.serve(test_keys.KeyService())
        test_keys.Keys.ship(self, "openai", self.service.base)

    def test_a_key_from_a_word(self):
        answers = [("Set up what", "ai"), (r"2  OpenAI \(openai\)", "2"), ("API key of OpenAI:", test_keys.OPENAI)]
        self.assert_stops_everywhere(answers, "setup")
        shown = self.completed(answers, "setup")
        self.assertIn('"credmgr token openai" prints the token', shown)
        self.assertNotIn(test_keys.OPENAI, shown)
        self.assertEqual(self.credmgr("token", "openai").line, test_keys.OPENAI)

    def test_searching_for_a_provider(self):
        shown = self.completed(
            [("Set up what", ""), ("ai +anthropic, openai", "opnai"), (r'no provider matches "opnai" \(did you mean "openai"', "OpenAI"),
             ("API key of OpenAI:", test_keys.OPENAI)], "setup")
        self.assertIn("logged in to OpenAI", shown)

    def test_an_unknown_word(self):
        answers = [("no provider matches this(?s:.*)Set up what", "opnai"), ('no provider matches "opnai"(?s:.*)Set up what', "\x03")]
        shown = self.completed(answers, "setup", "127.0.0.1", status=INTERRUPTED)
        self.assertIn('hint: run "credmgr setup" to continue', shown)
        self.assertEqual(self.stored(), [])
        self.completed([("no provider matches this(?s:.*)first name its provider(?s:.*)Set up what", "openai"), ("API key of OpenAI:", test_keys.OPENAI)],
                       "setup", "ghp_notAKeyOfAnyone")
        self.assertEqual(self.credmgr("token", "openai").line, test_keys.OPENAI)

    def test_words_for_keys_and_servers(self):
        shown = self.completed(
            [(r"1  an API key of another service.*\n.*2  the URL of an issuer.*\n.*3  the file of a descriptor(?s:.*)search 2 providers", "kube"),
             ("type the URL of the issuer that your cluster trusts", "mcp"), ("type the URL of the MCP server", "sso"),
             ("type the URL of the issuer, such as", "ghp_notAKeyOfAnyone"),
             ("no provider matches this(?s:.*)if it is a key or a token", "wJalrXUtnFEMI/K7MDENG"),
             ("no file has this name(?s:.*)if it is a key or a token(?s:.*)Set up what", "/etc/passwd"),
             ("this file is not a descriptor(?s:.*)Set up what", self.file("broken.yaml", "provider: [\n")),
             ("broken.yaml(?s:.*)Set up what", "http://127.0.0.1:1/"),
             ("error: cannot reach(?s:.*)Set up what", "API key"), (r"1  OpenAI \(openai\)(?s:.*)another service", "1"),
             ("API key of OpenAI:", test_keys.OPENAI)], "setup")
        self.assertNotIn("matches \"ghp_", shown)
        self.assertNotIn("root:", shown)
        # The terminal itself shows the answer once.
        self.assertEqual(shown.count("K7MDENG"), 1)
        self.assertIn('"credmgr exec openai -- COMMAND" sets "OPENAI_API_KEY" for programs that read it', shown)

    def test_a_second_account(self):
        self.completed([("API key of OpenAI:", test_keys.OPENAI)], "setup", "openai")
        shown = self.completed([('already logged in to OpenAI as "default".*\n.*another account', "n")], "setup", "openai")
        self.assertIn('"credmgr list" shows your accounts', shown)
        self.completed([("another account", "y"), ("name of the account:", "second"), ("API key of OpenAI:", test_keys.OPENAI)],
                       "setup", "openai")
        self.assertEqual([account["account"] for account in self.accounts_of("openai")], ["default", "second"])

    def test_a_refused_key(self):
        shown = self.completed([("API key of OpenAI:", "sk-proj-wrong-key-0123456789")], "setup", "openai", status=4)
        self.assertIn("OpenAI rejected the API key", shown)
        self.assertEqual(self.accounts_of("openai"), [])

    def test_a_wrong_paste_is_asked_for_again(self):
        self.completed([("API key of OpenAI:", "https://platform.openai.com/api-keys"),
                        (r"it is a web address; it was not stored\r\n(?s:.*)API key of OpenAI:", test_keys.OPENAI)], "setup", "openai")
        self.assertEqual(self.credmgr("token", "openai").line, test_keys.OPENAI)


class Clients(SetupTest):
    CLIENT = [("client ID:", POST_CLIENT), ("client secret:", CLIENT_SECRET)]
    LATER = [("Let git use credmgr", "n"), ("Let docker use credmgr", "n")]

    def test_a_token_needs_no_registration(self):
        service = self.forge()
        self.assert_stops_everywhere(
            [("Which one", "3"), ("type a number from 1 to 2\r\n.*Which one", ""), ("Open this page", "n"), ("token:", "x")],
            "setup", "forge")
        self.completed([("Which one", "2"), ("Open this page", "n"), *self.CLIENT, *self.LATER], "setup", "forge")
        token = self.credmgr("token", "forge").line
        self.new_home()
        shown = self.completed(
            [("1  a token that you make at https://forge.example/tokens", ""), ("Open this page", "n"), ("token:", token),
             ("Let git use credmgr for \"git.forge.example\"", "y"), ("Let docker use credmgr for \"registry.forge.example\"", "y")],
            "setup", "forge")
        self.assertIn('logged in to Forge as "ada"', shown)
        self.assertIn("create a token at https://forge.example/tokens with the scopes read offline, if the page asks for scopes", shown)
        self.assertTrue(service.accepts(token))
        with open(self.environment["GIT_CONFIG_GLOBAL"], encoding="utf-8") as file:
            self.assertIn("git.forge.example", file.read())
        with open(os.path.join(self.folder, ".docker/config.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["credHelpers"], {"registry.forge.example": "credmgr"})
        # Both are set up now.
        shown = self.completed([("another account", "n")], "setup", "forge")
        self.assertNotIn("Let git", shown)
        # Both files were made for credmgr.
        self.credmgr("git-setup", "--remove")
        self.assertFalse(os.path.exists(self.environment["GIT_CONFIG_GLOBAL"]))
        self.credmgr("docker-credential", "setup", "--remove")
        self.assertFalse(os.path.exists(os.path.join(self.folder, ".docker")))

    AGAIN = "Enter the client ID and the secret again"

    def test_a_refused_client_is_asked_for_again(self):
        service, path = self.own_file()
        wrong = [("client ID:", POST_CLIENT), ("client secret:", "not-the-secret")]
        shown = self.completed([("Open this page", "n"), *wrong, (self.AGAIN, "n")], "setup", path, status=REFUSED)
        self.assertIn('hint: run "credmgr setup own" to enter the client ID and the secret again', shown)
        shown = self.completed([("Use it", ""), (self.AGAIN, "y"), ("Open this page", "n"), *wrong, (self.AGAIN, "y"), ("Open this page", "n"),
                                *self.CLIENT, *self.LATER], "setup", "own")
        self.assertEqual(shown.count("invalid_client"), 2)
        self.assertTrue(service.accepts(self.credmgr("token", "own").line))
        # Without a terminal, a command replaces both values.
        self.credmgr("add-provider", path, "--replace", "--client-id", POST_CLIENT, "--client-secret-file",
                     self.file("wrong", "not-the-secret\n"))
        refused = self.credmgr("login", "own", "--account", "again", status=REFUSED)
        self.assertIn('hint: run "credmgr add-provider own --replace --client-id ID --client-secret-file FILE"', refused.err)

    def test_a_provider_that_hides_unknown_clients(self):
        """GitHub answers the request for a device code with 404 then."""
        service = self.serve(OAuth2Server())
        text = FORGE.format(name="forge", base=service.base, place=service.base.removeprefix("http://"))
        self.ship("forge", text.replace("/device\n", "/missing\n"))
        self.addCleanup(os.remove, self.place("forge"))
        del self.environment["BROWSER"]
        self.environment["SSH_TTY"] = "/dev/pts/0"
        shown = self.completed([("Which one", "2"), *self.CLIENT, (self.AGAIN, "n")], "setup", "forge", status=REFUSED)
        self.assertIn("(status 404)", shown)
        self.assertIn('hint: run "credmgr setup forge" to enter', shown)

    def test_a_client_of_a_file(self):
        service, path = self.own_file()
        answers = [("Open this page", "n"), *self.CLIENT]
        self.assert_stops_everywhere(answers, "setup", path)
        self.assert_stops_everywhere([("Set up what", path), *answers], "setup")
        shown = self.completed([*answers, *self.LATER], "setup", path)
        self.assertIn('register a client of "own" at https://forge.example/register with these values:', shown)
        self.assertEqual(shown.count("allows only the following"), 1)
        self.assertLess(shown.index("allows only the following"), shown.index("register a client"))
        self.assertRegex(shown, r"callback URL +http://127\.0\.0\.1/callback/own\r\n")
        self.assertRegex(shown, r"device flow +enabled")
        self.assertRegex(shown, r"scopes +read offline, if the page asks")
        self.assertIn('logged in to Forge (own) as "ada"', shown)
        self.assertNotIn(CLIENT_SECRET, shown)
        self.assertTrue(service.accepts(self.credmgr("token", "own").line))

    def test_a_file_that_replaces_a_built_in_provider(self):
        service = self.forge()
        path = self.file("forge.yaml", FORGE.format(name="forge", base=service.base, place=service.base.removeprefix("http://")))
        answers = [("Open this page", "n"), *self.CLIENT]
        question = r'replaces the built-in "forge" for you\r\n.*Add it'
        self.completed([*answers, (question, "n")], "setup", path, status=USAGE)
        self.assertEqual(self.stored(), [])
        shown = self.completed([*answers, (question, "y"), ("Log in", "n")], "setup", path)
        self.assertIn('run "credmgr setup forge" to log in later', shown)

    def test_a_page_of_another_provider(self):
        """The question comes before the user types a client."""
        path = self.file("evil.yaml", """provider: evil
grant: authorization_code
endpoints: { authorization: https://evil.example/a, token: https://evil.example/t }
client: { register: https://platform.openai.com/settings/organization/api-keys }
""")
        shown = self.completed([(r"requires your consent:\r\n.*belongs to .*\r\n.*Do you agree", "n")], "setup", path, status=USAGE)
        self.assertNotIn("client ID:", shown)
        self.assertEqual(self.stored(), [])
        shown = self.completed([("Do you agree", "y"), ("Open this page", "n"), ("client ID:", "x"), ("client secret", "\x03")],
                               "setup", path, status=INTERRUPTED)
        self.assertEqual(shown.count("requires your consent"), 1)
        self.assertEqual(self.stored(), [])

    def test_setup_continues_after_an_interrupted_login(self):
        service, path = self.own_file()
        browser = self.environment.pop("BROWSER")
        self.environment["SSH_TTY"] = "/dev/pts/0"
        person = self.answer(self.CLIENT, "setup", path)
        person.wait_for("Ctrl-C stops")
        person.type("\x03")
        self.assertEqual(person.end(), INTERRUPTED, person.seen)
        self.assertIn(f'hint: run "credmgr setup {path}" to continue', person.seen)
        del self.environment["SSH_TTY"]
        self.environment["BROWSER"] = browser
        shown = self.completed([("has the client \"" + POST_CLIENT + "\"\r\n.*Use it", ""), *self.LATER], "setup", path)
        self.assertNotIn("client ID", shown)
        self.assertTrue(service.accepts(self.credmgr("token", "own").line))
        with open(path, "a", encoding="utf-8") as file:
            file.write("# changed\n")
        shown = self.completed([], "setup", path, status=USAGE)
        self.assertIn(f'hint: run "credmgr add-provider {path} --replace"', shown)

    def test_a_wrong_client_is_corrected_after_an_interrupted_login(self):
        """The page of a provider that does not know a client never redirects."""
        service = self.forge()
        browser = self.environment.pop("BROWSER")
        self.environment["BROWSER"] = self.file("browser", "#!/bin/sh\n", 0o700)
        wrong = [("client ID:", "wrong"), ("client secret:", CLIENT_SECRET)]
        self.completed([("Which one", "2"), ("Open this page", "n"), *wrong, ("waiting for the browser", "\x03")],
                       "setup", "forge", status=INTERRUPTED)
        question = 'Forge has the client "wrong"\r\n.*Use it'
        shown = self.completed([("waiting for the browser", "\x03")], "login", "forge", status=INTERRUPTED)
        self.assertIn('hint: run "credmgr setup forge" to use another client', shown)
        shown = self.completed([(question, ""), ("waiting for the browser", "\x03")], "setup", "forge", status=INTERRUPTED)
        self.assertIn('hint: run "credmgr setup forge" to continue', shown)
        unchanged = self.credmgr("add-provider", "forge", "--replace")
        self.assertIn('Forge is unchanged; run "credmgr add-provider forge --replace --client-id ID --client-secret-file FILE" '
                      "for another client", unchanged.err)
        self.assertNotIn("added", unchanged.err)
        self.environment["BROWSER"] = browser
        shown = self.completed([(question, "n"), ("Which one", "2"), ("Open this page", "n"), *self.CLIENT, *self.LATER], "setup", "forge")
        token = self.credmgr("token", "forge").line
        self.assertTrue(service.accepts(token))
        # A token needs no client.
        self.credmgr("logout", "forge", "--keep-remote")
        self.credmgr("add-provider", "forge", "--replace", "--client-id", "wrong")
        self.completed([(question, "n"), ("Which one", "1"), ("Open this page", "n"), ("token:", token), *self.LATER], "setup", "forge")
        self.assertEqual(self.credmgr("token", "forge").line, token)

    def test_an_issuer_registers_the_client(self):
        service = self.serve(DiscoveryServer())
        answers = [("Set up what", service.issuer), (r'Add it as "([^"]+)"\?', "y")]
        self.assert_stops_everywhere(answers, "setup")
        self.assertEqual(service.counts["registered"], 0)
        shown = self.completed(answers, "setup")
        provider = json.loads(self.credmgr("list", "--json").out)[0]["provider"]
        self.assertIn("registered the client", shown)
        self.assertTrue(service.accepts(self.credmgr("token", provider).line))
        self.completed([("another account", "n")], "setup", service.issuer)
        self.assertEqual(service.counts["registered"], 1)

    def test_a_login_offers_the_setup(self):
        service = self.forge()
        for command in (("token", "forge"), ("exec", "forge=TOKEN", "--", "true"), ("use", "forge", "ada")):
            self.assertIn('hint: run "credmgr setup forge"', self.completed([], *command, status=(USAGE, LOGIN_NEEDED)))
        shown = self.completed([("Set up Forge now", "n")], "login", "forge", status=USAGE)
        self.assertIn("Forge has not been added: register a client", shown)
        self.completed([("Set up Forge now", "\x03")], "login", "forge", status=INTERRUPTED)
        self.assertEqual(self.stored(), [])
        self.completed(
            [("Set up Forge now", "y"), ("Open this page", "n"), *self.CLIENT, *self.LATER],
            "login", "forge", "--account", "work", "--scope", "read")
        account, = self.accounts_of("forge")
        self.assertEqual((account["account"], account["scope"], account["title"]), ("work", ["read"], "Forge"))
        self.assertTrue(service.accepts(self.credmgr("token", "forge").line))


class Settings(SetupTest):
    """Variables of a descriptor, such as the host of a server and a tenant."""

    VARIABLES = """variables:
  host: { default: "127.0.0.1:1", format: hostname, help: the host of your own Forge }
  tenant: { pattern: "[a-z]+", help: the tenant }
endpoints:
  authorization: %(base)s/authorize
  token: %(base)s/token
"""

    def test_they_are_asked_for(self):
        service, path = self.own_file()
        place = service.base.removeprefix("http://")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        text = text.replace(f"endpoints:\n  authorization: {service.base}/authorize\n  token: {service.base}/token\n",
                            self.VARIABLES % {"base": "http://{host}/{tenant}"})
        text = text.replace(f"{service.base}/", "http://{host}/").replace("{tenant}/", "").replace(
            f'hosts: ["{place}"]', 'hosts: ["{host}"]\nextra_headers: { X-Tenant: "{tenant}" }', 1)
        path = self.file("own.yaml", text)
        answers = [
            (r"host=127\.0\.0\.1:1 +\(the host of your own Forge\)\r\n.*Another value", "hst=x"),
            (r"type a name from the list.*\n.*Another value", "host=a b"),
            (r"not a valid value of host.*\n.*Another value", "host=" + place), ("Another value", ""),
            (r"tenant \(the tenant\):", "4711"), (r"not a valid value\r\n.*tenant", "acme"),
            ("Open this page", "n"), *Clients.CLIENT]
        self.assert_stops_everywhere(answers, "setup", path)
        self.completed([*answers, *Clients.LATER], "setup", path)
        self.assertTrue(service.accepts(self.credmgr("token", "own").line))


    def movable(self):
        """Ships a provider with a variable for its host, and returns another host with a token."""
        service, other = self.serve(OAuth2Server()), self.serve(OAuth2Server())
        place, elsewhere = (server.base.removeprefix("http://") for server in (service, other))
        self.ship("forge", FORGE.format(name="forge", base="http://{host}", place="{host}")
                  + f'variables: {{ host: {{ default: "{place}", format: hostname }} }}\n')
        self.addCleanup(os.remove, self.place("forge"))
        client = ("--client-id", POST_CLIENT, "--client-secret-file", self.file("secret", CLIENT_SECRET))
        self.credmgr("add-provider", "forge", *client, "--set", f"host={elsewhere}")
        self.credmgr("login", "forge")
        token = self.credmgr("token", "forge").line
        self.new_home()
        return other, elsewhere, token

    def test_a_provider_that_moves_while_setup_prompts(self):
        """The token and the client go only to the host that setup showed."""
        other, elsewhere, token = self.movable()
        for way, more, secret in (("1", [], "token:"), ("2", [("client ID:", POST_CLIENT)], "client secret:")):
            with self.subTest(secret):
                self.new_home()
                person = self.answer([("Which one", way), ("host=127(?s:.*)Another value", ""), ("Open this page", "n"), *more], "setup", "forge")
                person.wait_for(secret)
                self.credmgr("login", "forge", "--set", f"host={elsewhere}", "--with-token", stdin=token)
                before = len(other.exchanges)
                person.type("typed-secret-0123456789\r")
                self.assertEqual(person.end(), USAGE, person.seen)
                self.assertIn("Forge was changed during the login; nothing was stored", person.seen)
                self.assertIn('hint: run "credmgr providers forge" to see its servers, then log in again', person.seen)
                self.assertEqual(len(other.exchanges), before)
                self.assertIn(json.loads(self.credmgr("providers", "forge", "--json").out)["client_id"], ("", None))


class Shapes(SetupTest):
    """Values of a client that the user pasted by mistake."""

    RULES = """  id_pattern: "id-[0-9a-z]+"
  secret_pattern: "cs-.*"
  other_shapes: { "Iv1\\\\..*": the client ID of a GitHub App, "[0-9]+": the App ID }
"""

    def shaped(self):
        service, path = self.own_file()
        with open(path, encoding="utf-8") as file:
            text = file.read()
        client = "client: { authentication: client_secret_post, register: https://forge.example/register }\n"
        self.assertIn(client, text)
        block = "client:\n  authentication: client_secret_post\n  register: https://forge.example/register\n"
        return service, self.file("own.yaml", text.replace(client, block + self.RULES))

    WARNING = 'warning: this is probably not a client %s of "own": it '

    def test_a_wrong_paste_is_noticed_in_setup(self):
        service, path = self.shaped()
        answers = [
            ("Open this page", "n"), ("client ID:", "Iv1.8a61f9b3a7aba766"), ("Use it anyway", "n"),
            ("client ID:", POST_CLIENT), ("Use it anyway", "y"), ("client secret:", "id-4711"), ("Use it anyway", "n"),
            ("client secret:", CLIENT_SECRET), ("Use it anyway", "y")]
        self.assert_stops_everywhere(answers, "setup", path)
        shown = self.completed([*answers, *Clients.LATER], "setup", path)
        self.assertIn(self.WARNING % "ID" + "looks like the client ID of a GitHub App\r\n", shown)
        self.assertIn(self.WARNING % "secret" + "looks like a client ID\r\n", shown)
        self.assertIn(self.WARNING % "secret" + "has another form\r\n", shown)
        self.assertNotIn("id-4711", shown)
        self.assertNotIn(CLIENT_SECRET, shown)
        self.assertTrue(service.accepts(self.credmgr("token", "own").line))

    def test_the_client_id_as_the_secret(self):
        """No pattern is needed for this."""
        service, path = self.own_file()
        answers = [("Open this page", "n"), ("client ID:", POST_CLIENT), ("client secret:", POST_CLIENT), ("Use it anyway", "n"),
                   ("client secret:", CLIENT_SECRET)]
        shown = self.completed([*answers, *Clients.LATER], "setup", path)
        self.assertIn(self.WARNING % "secret" + "looks like a client ID\r\n", shown)
        self.assertTrue(service.accepts(self.credmgr("token", "own").line))
        outcome = self.credmgr("add-provider", path, "--replace", "--client-id", "same", "--client-secret-file", self.file("same", "same\n"))
        self.assertIn(self.WARNING % "secret" + "looks like a client ID\n", outcome.err)

    def test_a_wrong_paste_is_noticed_in_add_provider(self):
        _, path = self.shaped()
        secret = self.file("secret", "id-4711\n")
        command = ("add-provider", path, "--client-id", "cs-hidden", "--client-secret-file", secret)
        shown = self.completed([("Use it anyway", "n")], *command, status=USAGE)
        self.assertIn(self.WARNING % "ID" + "looks like a client secret\r\n", shown)
        self.assertIn("nothing was added", shown)
        self.assertNotIn("cs-hidden", shown.split("Use it anyway")[0].split("warning")[1])
        self.assertEqual(self.stored(), [])
        outcome = self.credmgr(*command)
        self.assertIn(self.WARNING % "ID" + "looks like a client secret\n", outcome.err)
        self.assertIn(self.WARNING % "secret" + "looks like a client ID\n", outcome.err)
        self.assertNotIn("id-4711", outcome.err)
        self.assertNotIn("cs-hidden", outcome.err)


class AnotherMachine(SetupTest):
    def test_an_import_says_what_is_missing(self):
        service, path = self.own_file()
        self.completed([("Open this page", "n"), *Clients.CLIENT, *Clients.LATER], "setup", path)
        self.credmgr("login", "own", "--account", "brief", "--with-token", "--expires", "1h", stdin=self.credmgr("token", "own").line)
        copy = os.path.join(self.folder, "copy.json")
        self.credmgr("vault", "export", copy, "--plain", "--plain")
        os.remove(path)
        self.new_home()
        self.later(7200)
        shown = self.credmgr("vault", "import", copy, "--plain", "--yes").err
        self.assertIn('Forge (own) requires a new login as "brief"\n', shown)
        hints = re.findall(r'hint: run "credmgr ([^"]+)"', shown)
        self.assertEqual(hints, ["login own --account brief", "git-setup", "docker-credential setup registry.forge.example"])
        for hint in hints[1:]:
            self.credmgr(*hint.split())
        self.assertTrue(service.accepts(self.credmgr("token", "own", "--account", "ada").line))


class WithoutATerminal(SetupTest):
    def test_the_hint_without_a_terminal_does_the_same(self):
        self.forge()
        _, path = self.own_file()
        key = "--with-token <FILE"
        for arguments, hint in (
                ((), 'run "credmgr providers" to see the providers'),
                (("openai",), f'run "credmgr login openai {key}" with its file'),
                (("forge",), "create a token at https://forge.example/tokens with the scopes read offline and run "
                 f'"credmgr login forge {key}" with its file; or register a client at https://forge.example/register '
                 "(name: any, for example credmgr; callback URL: http://127.0.0.1/callback/forge; device flow: enabled, if the "
                 "page has this setting; scopes: read offline, if the page asks) and run "
                 '"credmgr add-provider forge --client-id ID --client-secret-file FILE && credmgr login forge"'),
                ((path,), f'run "credmgr add-provider {path} --client-id ID --client-secret-file FILE && credmgr login own"'),
                (("kube",), 'run "credmgr setup https://id.example.org" with the URL of the issuer that your cluster trusts'),
                (("forge", "--for", "nope"), 'hint: use "--scope" with the provider\'s names'),
                (("opnai",), 'run "credmgr setup openai"')):
            with self.subTest(arguments=arguments):
                outcome = self.credmgr("setup", *arguments, status=USAGE)
                self.assertTrue(outcome.err.endswith(f"{hint}\n"), outcome.err)
        self.assertIn("Forge has not been added", self.credmgr("login", "forge", status=USAGE).err)
        self.assertEqual(self.stored(), [])

    def test_an_issuer_that_registers_clients(self):
        service = self.serve(DiscoveryServer())
        outcome = self.credmgr("setup", service.issuer, status=USAGE)
        name = re.search(r"--as (\S+)", outcome.err)[1]
        line = f"credmgr add-provider {service.issuer} --as {name} --yes && credmgr login {name}"
        self.assertTrue(outcome.err.endswith(f'hint: run "{line}", if you trust this server\n'), outcome.err)
        self.assertEqual(json.loads(self.credmgr("setup", service.issuer, "--json").out)["ways"], [{
            "way": "address", "first": None, "commands": [part.split() for part in line.split(" && ")], "input": None}])
        self.assertEqual((service.counts["registered"], self.stored()), (0, []))
        for part in line.split(" && "):
            self.credmgr(*part.split()[1:])
        self.assertTrue(service.accepts(self.credmgr("token", name).line))

    def test_an_issuer_without_registration(self):
        """The command contains the client, and the hint the callback URL to register."""
        service = self.serve(DiscoveryServer(change=lambda metadata: metadata.__delitem__("registration_endpoint")))
        way, = json.loads(self.credmgr("setup", service.issuer, "--json").out)["ways"]
        name = way["commands"][1][-1]
        self.assertEqual(way["way"], "client")
        self.assertIn(f"callback URL: http://127.0.0.1/callback/{name}", way["first"])
        line = " && ".join(" ".join(words) for words in way["commands"])
        self.assertIn(f'{way["first"]} and run "{line}"', self.credmgr("setup", service.issuer, status=USAGE).err)
        values = {"ID": CONFIDENTIAL_CLIENT, "FILE": self.file("secret", CLIENT_SECRET)}
        for words in way["commands"]:
            self.credmgr(*(values.get(word, word) for word in words[1:]))
        self.assertTrue(service.accepts(self.credmgr("token", name).line))

    def test_an_issuer_with_a_slash(self):
        """Both spellings of a server's root mean the same."""
        service = self.serve(DiscoveryServer())
        route = json.loads(self.credmgr("setup", service.issuer + "/", "--json").out)
        self.assertEqual(route["provider"], json.loads(self.credmgr("setup", service.issuer, "--json").out)["provider"])

    def test_an_address_that_cannot_be_reached(self):
        self.assertIn("cannot reach", self.credmgr("setup", "http://127.0.0.1:1", status=UNREACHABLE).err)
