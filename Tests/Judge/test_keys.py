"""Keys, passwords and secrets that a user types: verified, stored, and sent only to the agreed hosts."""

import base64
import json
import os
import re
import shutil
import time
import unittest

from program import DONE, LOGIN_NEEDED, REFUSED, ROOT, UNREACHABLE, USAGE, ProgramTest
from service import Service, html_response, json_response, text_response

OPENAI, ANTHROPIC = "sk-proj-0123456789abcdefghij", "sk-ant-api03-0123456789abcdefghij"

# The headers of the providers' Python packages: openai sends a Bearer token, anthropic the header x-api-key.
CONSUMER = """
import os, urllib.request
request = urllib.request.Request(os.environ["BASE"] + "/v1/chat")
for name, value in (("Authorization", os.environ.get("OPENAI_API_KEY") and "Bearer " + os.environ["OPENAI_API_KEY"]),
                    ("x-api-key", os.environ.get("ANTHROPIC_API_KEY")), ("anthropic-version", "2023-06-01")):
    if value:
        request.add_header(name, value)
urllib.request.urlopen(request).read()
"""


class KeyService(Service):
    """Accepts known keys, and remembers the headers of every request."""

    def __init__(self, **options):
        super().__init__(**options)
        self.seen = []
        self.answer = None
        self.secrets |= {OPENAI, ANTHROPIC}

    def handle(self, request):
        self.seen.append((request.target, dict(request.headers.items())))
        if self.answer:
            return self.answer
        headers = request.headers
        if headers.get("Authorization") == f"Bearer {OPENAI}":
            return json_response({"data": []})
        if headers.get("x-api-key") == ANTHROPIC and headers.get("anthropic-version"):
            return json_response({"data": []})
        pair = base64.b64encode("Ada:p w:ä".encode()).decode()
        if headers.get("Authorization") == f"Basic {pair}":
            return json_response({"email": "ada"})
        if headers.get("X-Id") == "id-0123456789" and headers.get("X-Secret") == "secret-0123456789":
            return json_response({"email": "ada"})
        return json_response({"error": {"message": "Incorrect API key provided"}}, 401)


class KeyTest(ProgramTest):
    shipped = ("openai", "anthropic", "mongodb-atlas-key", "ibm-cloud")

    def setUp(self):
        super().setUp()
        self.service = self.serve(KeyService())
        for name in self.shipped:
            self.ship(name, self.service.base)

    def ship(self, name, base):
        """Ships a descriptor with another host."""
        with open(os.path.join(ROOT, "providers", name + ".yaml"), encoding="utf-8") as file:
            text = file.read()
        text = re.sub(rf"https://api\.{name}\.com", base, text)
        text = re.sub("(?m)^hosts: .*$", f'hosts: ["{base.removeprefix("http://")}"]', text)
        folder = os.path.join(os.path.dirname(os.path.dirname(self.binary)), "share/credmgr/providers")
        with open(os.path.join(folder, name + ".yaml"), "w", encoding="utf-8") as file:
            file.write(text)

    def accounts_of(self, provider):
        return json.loads(self.credmgr("status", provider, "--json").out)

    def assert_nothing_stored(self):
        self.assertEqual(self.run_program("status", "--json").out.strip(), "[]")
        added = json.loads(self.credmgr("providers", "--json").out)
        self.assertFalse([row["provider"] for row in added if row["added"]])


class Consent(ProgramTest):
    def test_the_consent_to_a_borrowed_page_is_remembered(self):
        for name, more in (("page", "key: { page: https://github.com/wiki }\nhosts: [api.example]\n"),
                           ("claim", "hosts: [api.example]\ngit: { hosts: [github.com], username: x }\n")):
            with self.subTest(name):
                path = self.file(f"{name}.yaml", f"provider: {name}\ngrant: api_key\nendpoints: {{}}\n{more}")
                self.assertIn("requires your consent", self.credmgr("add-provider", path, status=USAGE).err)
                self.credmgr("add-provider", path, "--yes")
                self.credmgr("login", name, "--with-token", stdin="a-key\n")
                self.credmgr("token", name)


class Keys(KeyTest):
    def test_a_key_from_its_prompt_to_its_use(self):
        terminal = self.terminal("login", "openai")
        terminal.wait_for(r"create the API key at\s+https://platform\.openai\.com")
        terminal.wait_for("API key of OpenAI:")
        terminal.type(OPENAI + "\r")
        self.assertEqual(terminal.end(), DONE)
        self.assertNotIn(OPENAI, terminal.seen)
        self.assertEqual([target for target, _ in self.service.seen], ["/v1/models"])
        self.assertEqual(self.credmgr("token", "openai").line, OPENAI)
        self.assertEqual(self.credmgr("header", "openai").line, f"Authorization: Bearer {OPENAI}")
        self.credmgr("request", "openai", self.service.base + "/v1/chat")
        self.assertIn("active", self.credmgr("validate", "openai").err + self.credmgr("validate", "openai").out)
        account, = self.accounts_of("openai")
        self.assertEqual((account["kind"], account["state"], account["next"]), ("api_key", "usable", "valid"))
        self.credmgr("token", "openai", "--refresh", status=LOGIN_NEEDED)
        self.assertIn("API key", self.credmgr("status", "openai").out)

    def test_requests_of_the_providers_packages(self):
        """The key arrives exactly as the packages of the providers send it."""
        self.credmgr("login", "openai", "--with-token", stdin=OPENAI + "\n")
        self.credmgr("login", "anthropic", "--with-token", stdin=f"  {ANTHROPIC}\r\n\n")
        self.service.seen.clear()
        for wish in ("openai=OPENAI_API_KEY", "anthropic=ANTHROPIC_API_KEY"):
            self.credmgr("exec", wish, "--", "python3", "-c", CONSUMER, environment={"BASE": self.service.base})
        (_, first), (_, second) = self.service.seen
        self.assertEqual(first["Authorization"], f"Bearer {OPENAI}")
        self.assertEqual({name.lower(): value for name, value in second.items()}["x-api-key"], ANTHROPIC)
        self.assertEqual(self.credmgr("header", "anthropic").out,
                         f"x-api-key: {ANTHROPIC}\nanthropic-version: 2023-06-01\n")

    def test_a_wrong_paste(self):
        for text, words in {
            "": "it is empty", " \n": "it is empty", "sk-uno\nsk-due\n": "several lines", "sk-uno due": "a space",
            "sk-\x1b[31m": "a character", "sk-" + "x" * (1 << 20): "longer than 64 KiB", "pk_live_uno": "another form",
            "sk-ant-uno": "a key of Anthropic",
        }.items():
            with self.subTest(text[:20]):
                outcome = self.credmgr("login", "openai", "--with-token", stdin=text, status=USAGE)
                self.assertIn(words, outcome.err)
                for piece in ("uno", "due", "xxx", "[31m"):
                    self.assertNotIn(piece, outcome.err)
        self.assertEqual(self.service.seen, [])
        self.assert_nothing_stored()

    def test_a_refused_key(self):
        outcome = self.credmgr("login", "openai", "--with-token", stdin="sk-wrong-key-0123\n", status=REFUSED)
        self.assertIn("rejected the API key", outcome.err)
        self.assertNotIn("sk-wrong", outcome.err)
        self.assert_nothing_stored()

    def test_a_key_that_cannot_be_verified(self):
        nonsense = {
            "an error": (json_response({}, 503), UNREACHABLE), "a page": (html_response("<p>Sign in</p>"), REFUSED),
            "an empty object": (json_response({}), REFUSED), "an empty list": (json_response([]), REFUSED),
            "no JSON": (text_response("nothing"), REFUSED), "not found": (text_response("", 404), REFUSED),
        }
        for name, (answer, status) in nonsense.items():
            with self.subTest(name):
                self.service.answer = answer
                outcome = self.credmgr("login", "openai", "--with-token", stdin=OPENAI, status=status)
                self.assertIn("nothing was stored", outcome.err)
                self.assert_nothing_stored()
        self.ship("openai", "http://127.0.0.1:1")
        outcome = self.credmgr("login", "openai", "--with-token", stdin=OPENAI, status=UNREACHABLE)
        self.assertRegex(outcome.err, "hint: run \"credmgr login openai --with-token --yes\"")
        self.assert_nothing_stored()
        self.credmgr("login", "openai", "--with-token", "--yes", stdin=OPENAI)
        self.assertEqual(self.credmgr("token", "openai").line, OPENAI)

    def test_the_question_at_a_terminal(self):
        self.service.answer = json_response({}, 503)
        for answer, status in (("n", USAGE), ("y", DONE)):
            terminal = self.terminal("login", "openai")
            terminal.wait_for("API key of OpenAI:")
            terminal.type(OPENAI + "\r")
            terminal.wait_for(r"Store it without verification\?")
            terminal.type(answer + "\r")
            self.assertEqual(terminal.end(), status)
            self.assertEqual(terminal.seen.count("status 503"), 1, terminal.seen)
            self.assertNotIn(OPENAI, terminal.seen)
        self.assertEqual(len(self.accounts_of("openai")), 1)

    def test_an_interruption_at_the_question(self):
        """The user can type the key again, so nothing of it stays, also beside an account."""
        self.service.answer = json_response({}, 503)
        for login in (("setup", "openai"), ("login", "openai"), ("login", "openai", "--account", "default"),
                      ("login", "openai", "--account", "two")):
            with self.subTest(login):
                before = self.run_program("status", "--json").out
                terminal = self.terminal(*login)
                terminal.wait_for("API key of OpenAI:")
                terminal.type(OPENAI + "\r")
                terminal.wait_for(r"Store it without verification\?")
                terminal.type("\x03")
                self.assertEqual(terminal.end(), 130)
                self.assertEqual([file for _, _, files in os.walk(self.homes[-1]) for file in files if file.endswith(".answer")], [])
                status = self.run_program("status", "--json")
                self.assertEqual(status.out, before)
                self.assertNotIn("interrupted", status.err)
            if login == ("login", "openai"):
                self.credmgr("login", "openai", "--with-token", "--yes", stdin=OPENAI)
        self.assertEqual(self.credmgr("token", "openai").line, OPENAI)

    def test_a_token_of_an_oauth_provider(self):
        """The rule of keys: a token that the provider does not confirm is stored only if the user agrees."""
        self.file("forge.yaml", f"""provider: forge
grant: authorization_code
endpoints:
  authorization: {self.service.base}/authorize
  token: {self.service.base}/token
  identity: {self.service.base}/user
key: {{ page: "{self.service.base}/tokens" }}
account: login
""")
        self.credmgr("add-provider", "./forge.yaml", "--client-id", "client", "--yes")
        login = ("login", "forge", "--with-token")
        self.service.answer = html_response("<p>Sign in</p>")
        outcome = self.credmgr(*login, stdin="a-token-0123456789\n", status=REFUSED)
        self.assertIn("hint: run \"credmgr login forge --with-token --yes\"", outcome.err)
        self.service.answer = json_response({}, 429)
        self.credmgr(*login, stdin="a-token-0123456789\n", status=UNREACHABLE)
        self.assertEqual(self.run_program("status", "--json").out.strip(), "[]")
        for answer, status in (("n", USAGE), ("y", DONE)):
            terminal = self.terminal(*login)
            terminal.wait_for("token:")
            terminal.type("a-token-0123456789\r")
            terminal.wait_for(r"Store it without verification\?")
            terminal.type(answer + "\r")
            self.assertEqual(terminal.end(), status)
            self.assertNotIn("a-token-0123456789", terminal.seen)
        self.assertEqual(self.credmgr("token", "forge").line, "a-token-0123456789")
        self.credmgr(*login, "--account", "default", "--yes", stdin="a-token-of-later\n")
        self.assertEqual(self.credmgr("token", "forge").line, "a-token-of-later")

    def test_without_a_terminal(self):
        outcome = self.start("-w", self.binary, "login", "openai", binary="/usr/bin/setsid", stdin=False).end()
        self.assertEqual(outcome.status, LOGIN_NEEDED)
        self.assertIn("no terminal", outcome.err)

    def test_a_variable_without_a_terminal(self):
        self.ship("mastodon", self.service.base)
        outcome = self.start("-w", self.binary, "login", "mastodon", binary="/usr/bin/setsid", stdin=False).end()
        self.assertEqual(outcome.status, USAGE)
        self.assertIn('hint: run "credmgr login mastodon --set host=VALUE"', outcome.err)

    def test_a_header_beside_a_parameter(self):
        place = self.service.base.removeprefix("http://")
        self.file("group.yaml", f"""provider: group
grant: api_key
endpoints: {{}}
variables: {{ group: {{ optional: true }} }}
extra_query: {{ GroupId: g1, Part: "{{group}}" }}
hosts: ["{place}"]
""")
        self.credmgr("add-provider", "./group.yaml")
        self.credmgr("login", "group", "--with-token", stdin="key-0123456789\n")
        outcome = self.credmgr("header", "group", "--url", self.service.base + "/x")
        self.assertEqual(outcome.line, "Authorization: Bearer key-0123456789")
        self.assertIn('requires "GroupId" in the query', outcome.err)
        outcome = self.credmgr("header", "group", "--url", self.service.base + "/x?GroupId=g2")
        self.assertNotIn("GroupId", outcome.err)

    def test_a_changed_descriptor_gets_no_key(self):
        """The attack: a descriptor that names another host. The control: the agreed one."""
        evil = self.serve(KeyService())
        self.credmgr("login", "openai", "--with-token", stdin=OPENAI)
        self.ship("openai", evil.base)
        for arguments in (("request", "openai", evil.base + "/x"), ("request", "openai", self.service.base + "/x"),
                          ("validate", "openai"), ("header", "openai"), ("login", "openai", "--with-token")):
            self.credmgr(*arguments, stdin=OPENAI, status=USAGE)
        self.assertEqual(evil.seen, [])
        self.ship("openai", self.service.base)
        self.credmgr("request", "openai", self.service.base + "/x")
        self.credmgr("request", "openai", evil.base + "/x", status=USAGE)
        self.assertEqual(evil.seen, [])
        self.assertEqual(self.service.seen[-1][1]["Authorization"], f"Bearer {OPENAI}")

    def test_a_file_of_the_user_is_added_first(self):
        folder = os.path.join(self.homes[-1], "config/providers")
        os.makedirs(folder, 0o700)
        with open(os.path.join(folder, "openai.yaml"), "w", encoding="utf-8") as file:
            file.write(f"provider: openai\ngrant: api_key\nendpoints: {{ identity: {self.service.base}/me }}\n")
        outcome = self.credmgr("login", "openai", "--with-token", stdin=OPENAI, status=USAGE)
        self.assertIn("add-provider openai", outcome.err)
        self.assertEqual(self.service.seen, [])

    def test_a_user_name_and_a_password(self):
        place = self.service.base.removeprefix("http://")
        self.file("wiki.yaml", f"provider: wiki\ngrant: basic\nendpoints: {{ identity: {self.service.base}/me }}\n"
                               f'hosts: ["{place}"]\ngit: {{ hosts: [git.wiki.example], username: "{{account}}" }}\n')
        self.credmgr("add-provider", "./wiki.yaml")
        self.credmgr("login", "wiki", "--with-token", stdin="Ada\np w:ä\n")
        pair = base64.b64encode("Ada:p w:ä".encode()).decode()
        self.assertEqual(self.credmgr("header", "wiki").line, f"Authorization: Basic {pair}")
        self.credmgr("request", "wiki", self.service.base + "/x")
        account, = self.accounts_of("wiki")
        self.assertEqual((account["account"], account["kind"]), ("Ada", "basic"))
        answer = self.credmgr("git-credential", "get", stdin="protocol=https\nhost=git.wiki.example\n\n").out
        self.assertIn("username=Ada\npassword=p w:ä\n", answer)
        self.credmgr("login", "wiki", "--with-token", stdin="Ada\n", status=USAGE)
        # A later login to the account takes the same lines.
        self.credmgr("login", "wiki", "--with-token", "--account", "Ada", stdin="p w:ä\n", status=USAGE)
        self.credmgr("login", "wiki", "--with-token", "--account", "Ada", stdin="Ada\np w:ä\n")
        # Another machine.
        self.credmgr("vault", "export", "copy", "--plain", "--plain")
        self.new_home()
        self.credmgr("vault", "import", "copy", "--plain")
        self.assertEqual(self.credmgr("header", "wiki").line, f"Authorization: Basic {pair}")

    def test_git_gets_the_user_name_of_the_pair(self):
        """The user name in a URL selects the account, and the answer has the user name that belongs to the password."""
        place = self.service.base.removeprefix("http://")
        self.file("wiki.yaml", "provider: wiki\ngrant: basic\nendpoints: {}\n"
                               f'hosts: ["{place}"]\ngit: {{ hosts: [git.wiki.example] }}\n')
        self.credmgr("add-provider", "./wiki.yaml")

        def get(name, status=DONE):
            question = f"protocol=https\nhost=git.wiki.example\n{f'username={name}' + chr(10) if name else ''}\n"
            return self.credmgr("git-credential", "get", stdin=question, status=status)

        self.credmgr("login", "wiki", "--with-token", "--account", "work", stdin="me@corp\nfirst-password\n")
        work, home = "username=me@corp\npassword=first-password\n", "username=you@home\npassword=second-password\n"
        for name in ("", "work", "Me@corp"):
            self.assertEqual(get(name).out, work)
        self.assertIn('has no account "other"', get("other", LOGIN_NEEDED).err)
        self.credmgr("login", "wiki", "--with-token", "--account", "home", stdin="you@home\nsecond-password\n")
        for name, answer in (("work", work), ("me@corp", work), ("home", home), ("you@home", home)):
            self.assertEqual(get(name).out, answer)
        # git stores what it got, and this changes no account.
        self.credmgr("git-credential", "store", stdin=f"protocol=https\nhost=git.wiki.example\n{home}\n")
        self.assertEqual(get("you@home").out, home)

    def test_a_server_without_a_challenge(self):
        """HTTP Digest: the server never sees the password, so its refusal says nothing about it."""
        place = self.service.base.removeprefix("http://")
        self.credmgr("add-provider", self.file(
            "cameras.yaml", f"provider: cameras\ngrant: basic\nendpoints: {{}}\nheader_style: Digest\nhosts: [\"{place}\"]\n"))
        self.credmgr("login", "cameras", "--with-token", stdin="ada\ncamera-password\n")
        outcome = self.run_program("request", "cameras", self.service.base + "/x")
        self.assertEqual(outcome.status, REFUSED, outcome.err)
        self.assertIn("without a challenge that credmgr can answer", outcome.err)
        self.assertNotIn("hint", outcome.err)
        self.assertEqual(self.accounts_of("cameras")[0]["state"], "usable")

    def test_an_own_descriptor_and_the_keys_of_others(self):
        """The attack: the user's own descriptor gets the key of a shipped provider. The control: with consent."""
        evil = self.serve(KeyService())
        place, shipped = evil.base.removeprefix("http://"), self.service.base.removeprefix("http://")
        login = "variables:\n  a: { at_login: true }\n  b: { at_login: true, secret: true, pattern: \"sk-.*|x\" }\n"
        cases = {
            "a pattern": ("own", "grant: api_key\nkey: { pattern: \"sk-.*\" }\nendpoints: {}\n", [OPENAI]),
            "the provider's server as well": (
                "own", f"grant: api_key\nendpoints: {{ identity: {evil.base}/me }}\nhosts: [\"{place}\", \"{shipped}\"]\n", [OPENAI]),
            "the same name": ("openai", f"grant: api_key\nendpoints: {{ identity: {evil.base}/me }}\n", [OPENAI]),
            "a password": ("own", "grant: basic\nendpoints: {}\n", ["ada", OPENAI]),
            "a user name": ("own", "grant: basic\nendpoints: {}\n", [OPENAI, "x"]),
            "a secret": ("own", f"grant: secrets\n{login}endpoints: {{}}\n", ["x", OPENAI]),
            "a shown field": ("own", f"grant: secrets\n{login}endpoints: {{}}\n", [OPENAI, "x"]),
        }
        for name, (provider, text, lines) in cases.items():
            with self.subTest(name):
                self.new_home()
                evil.seen.clear()
                more = "" if "hosts:" in text else f'hosts: ["{place}"]\n'
                path = self.file(f"{provider}.yaml", f"provider: {provider}\n{text}{more}")
                self.credmgr("add-provider", path)
                stdin = "".join(f"{line}\n" for line in lines)
                outcome = self.credmgr("login", provider, "--with-token", stdin=stdin, status=USAGE)
                self.assertRegex(outcome.err, f'hint: .*"credmgr login {provider} --with-token --yes"')
                self.assertNotIn(OPENAI, outcome.err)
                self.assertEqual(self.run_program("status", "--json").out.strip(), "[]")
                if provider == "openai":
                    # Another provider still knows whose key this is.
                    refused = self.credmgr("login", "anthropic", "--with-token", stdin=stdin, status=USAGE)
                    self.assertIn("looks like a key of", refused.err)
                self.assertEqual(evil.seen, [])
                # The account would have the name of the key.
                if lines[0] != OPENAI or len(lines) == 1:
                    self.credmgr("login", provider, "--with-token", "--yes", stdin=stdin)

    def test_several_secrets(self):
        place = self.service.base.removeprefix("http://")
        self.file("two.yaml", f"""provider: two
grant: secrets
variables:
  id: {{ secret: true, at_login: true }}
  secret: {{ secret: true, at_login: true }}
endpoints: {{ identity: {self.service.base}/me }}
header_style: {{ header: X-Id }}
extra_headers: {{ X-Secret: "{{secret}}" }}
hosts: ["{place}"]
""")
        self.credmgr("add-provider", "./two.yaml")
        self.credmgr("login", "two", "--with-token", stdin="id-0123456789\nsecret-0123456789\n")
        self.assertEqual(self.credmgr("header", "two").out, "X-Id: id-0123456789\nX-Secret: secret-0123456789\n")
        self.assertEqual(self.credmgr("token", "two").line, "id-0123456789")
        self.assertEqual(self.credmgr("token", "two", "--field", "secret").line, "secret-0123456789")
        outcome = self.credmgr("token", "two", "--field", "sercet", status=USAGE)
        self.assertIn("it has access_token, id, secret", outcome.err)
        self.assertNotIn("0123456789", outcome.err)
        show = ("--", "sh", "-c", "env | grep -E '^(TWO|MY)_' | sort")
        self.assertEqual(self.credmgr("exec", "two", *show).out,
                         "TWO_ID=id-0123456789\nTWO_SECRET=secret-0123456789\nTWO_TOKEN=id-0123456789\n")
        self.assertEqual(self.credmgr("exec", "two/secret=MY_SECRET", *show).out, "MY_SECRET=secret-0123456789\n")
        self.assertEqual(self.credmgr("exec", "two/secret", "two=MY_ID", *show).out,
                         "MY_ID=id-0123456789\nTWO_SECRET=secret-0123456789\n")
        self.credmgr("exec", "two/none", *show, status=USAGE)
        self.credmgr("exec", "two", "two/id", *show, status=USAGE)

    def test_a_key_that_expires(self):
        self.credmgr("login", "openai", "--with-token", "--expires", "20d", stdin=OPENAI)
        self.assertFalse(self.accounts_of("openai")[0]["ends_soon"])
        self.assertNotIn("warning", self.credmgr("status").out)
        self.credmgr("login", "openai", "--account", "default", "--with-token", "--expires", "13d", stdin=OPENAI)
        self.assertTrue(self.accounts_of("openai")[0]["ends_soon"])
        self.assertIn("make a new key", self.credmgr("status").out)
        self.assertRegex(self.run_program("doctor").out, r'(?m)^note +accounts +the key of "default" at OpenAI expires')
        self.assertRegex(self.accounts_of("openai")[0]["key_expires_at"], r"^20\d\d-")
        for date in ("tomorrow", "2020-01-01", "2027-02-30"):
            self.credmgr("login", "openai", "--with-token", "--expires", date, stdin=OPENAI, status=USAGE)

    def test_a_key_that_gets_tokens_expires(self):
        """The token of a session has an expiry of its own, and a refresh keeps that of the key."""
        address, key = self.practising("ibm-cloud")
        self.credmgr("login", "practice", "--with-token", "--expires", "13d", stdin=key)
        self.credmgr("request", "practice", address + "/simulator/expire", "-X", "POST")
        self.credmgr("refresh", "practice")
        account = self.accounts_of("practice")[0]
        self.assertTrue(account["ends_soon"])
        self.assertNotEqual(account["expires_at"], account["key_expires_at"])
        self.assertRegex(self.credmgr("status").out, r"(?m)^ +secrets +expires in 1[23] d")
        self.assertRegex(self.run_program("doctor").out, r'(?m)^note +accounts +the key of .* expires in 1[23] d')
        # The token is still valid after the end of the key.
        self.credmgr("login", "practice", "--account", account["account"], "--with-token", "--expires", "1s", stdin=key)
        time.sleep(1.1)
        row = self.accounts_of("practice")[0]
        self.assertEqual((row["ends_soon"], row["state"]), (True, "usable"))
        self.assertRegex(self.credmgr("status").out, r"(?m)^ +state +.*, secrets expired$")
        self.assertIn("secrets expired", self.credmgr("list").out)
        self.assertRegex(self.run_program("doctor").out, r'(?m)^note +accounts +the key of .* expired \d+ s ago')
        self.credmgr("login", "practice", "--account", account["account"], "--with-token", stdin=key)
        self.assertFalse(self.accounts_of("practice")[0]["ends_soon"])

    def test_a_key_in_the_place_of_a_name(self):
        key = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
        self.credmgr("login", "openai", "--with-token", stdin=OPENAI)
        for arguments in (("login", key), ("check", key), ("use", "openai", key), ("token", "openai", "--account", key),
                          ("login", "ada:sk-proj-AbcDEF"), ("login", "openai", "--account", OPENAI), ("providers", key), ("exec", key, "--", "true"),
                          ("setup", key), ("simulate", key)):
            with self.subTest(arguments=arguments):
                outcome = self.run_program(*arguments)
                self.assertNotEqual(outcome.status, 0)
                self.assertNotIn(arguments[-1] if arguments[-1] != "true" else key, outcome.out + outcome.err)

    def test_a_key_as_a_new_name(self):
        """A key of any provider is refused as a name, and no message repeats it."""
        self.ship("github", self.service.base)
        key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        for arguments in (("login", "openai", "--with-token", "--yes", "--account", key), ("login", "openai", "--account", key),
                          ("login", "openai", "--account", "key-" + key), ("add-provider", "openai", "--as", key.lower())):
            with self.subTest(arguments=arguments):
                outcome = self.credmgr(*arguments, stdin=OPENAI, status=USAGE)
                self.assertIn("it looks like a key of GitHub", outcome.err)
                self.assertNotIn(arguments[-1], outcome.err)
        # No account has this name, so it may be a key.
        for arguments in (("use", "openai", key), ("token", "openai", "--account", key)):
            self.assertNotIn(key, self.credmgr(*arguments, status=LOGIN_NEEDED).err)
        for arguments in (("import", key), ("request", "openai", key), ("login", "openai", "--grant", key),
                          ("login", "openai", "--expires", key), ("login", "openai", "--timeout", key), ("login", "openai", "--vault", key),
                          ("providers", "--search", key), ("completion", key)):
            outcome = self.run_program(*arguments)
            self.assertNotIn(key, outcome.out + outcome.err, arguments)
        self.assert_nothing_stored()

    def practising(self, provider):
        """Starts a simulator and adds its provider as `practice`; returns its address and its keys."""
        said = self.simulated(provider)
        self.credmgr("add-provider", said["descriptor"], "--as", "practice")
        with open(said["key-file"], encoding="utf-8") as file:
            return said["listening on"], file.read()

    def test_the_simulator_plays_a_provider_of_keys(self):
        address, key = self.practising("openai")
        self.credmgr("login", "practice", "--with-token", stdin="wrong-key-0123456789", status=REFUSED)
        self.credmgr("login", "practice", "--with-token", stdin=key)
        self.credmgr("request", "practice", address + "/simulator/resource")

    @unittest.skipUnless(shutil.which("curl"), "there is no curl here")
    def test_a_challenge(self):
        """curl answers the simulator's challenges as credmgr does, so the simulator verifies both right."""
        address, key = self.practising("mongodb-atlas-key")
        name, password = key.split()
        url = address + "/simulator/resource/a%20b?c=%C3%A4&d"
        accept = "Accept: application/vnd.atlas.2025-03-12+json"
        for pair, status in ((f"{name}:{password}", "200"), (f"{name}:wrong", "401"), (f"other:{password}", "401")):
            said = self.run_program("--silent", "--digest", "--header", accept, "--config", "-", "--output", "/dev/null", "--write-out",
                                    "%{http_code}", url, binary=shutil.which("curl"), stdin=f'user = "{pair}"\n')
            self.assertEqual(said.out, status, pair)
        self.credmgr("login", "practice", "--with-token", stdin=f"{name}\nwrong-password\n", status=REFUSED)
        self.credmgr("login", "practice", "--with-token", stdin=key)
        traced = self.credmgr("request", "practice", url, "-X", "PUT", "-d", "hello", "--trace")
        self.assertEqual(json.loads(traced.out)["length"], 5)
        # The first request has no credential, and the second one not the password.
        self.assertEqual(re.findall(r"(?m)^> (PUT|Authorization: \w+)|^< (\d+)", traced.err),
                         [("PUT", ""), ("", "401"), ("PUT", ""), ("Authorization: Digest", ""), ("", "200")])
        self.assertNotIn(password, traced.err)
        outcome = self.credmgr("header", "practice", "--url", url, status=USAGE)
        self.assertIn("sends a challenge first", outcome.err)


class XML(ProgramTest):
    """Answers in XML: bombs, files, and addresses of others."""

    DESCRIPTOR = """provider: store
grant: api_key
endpoints: {{ identity: {{ url: "{base}/me", response: {{ format: xml }} }} }}
account: User.Name
hosts: ["{place}"]
"""

    def setUp(self):
        super().setUp()
        self.service = self.serve(Service())
        self.service.secrets.add("key-0123456789")
        self.service.handle = lambda request: text_response(self.document, 200, "application/xml")
        self.credmgr("add-provider", "-", stdin=self.DESCRIPTOR.format(
            base=self.service.base, place=self.service.base.removeprefix("http://")))

    def test_a_document(self):
        self.document = '<?xml version="1.0"?><x:User xmlns:x="urn:x"><Name>ada &amp; bob</Name></x:User>'
        self.credmgr("login", "store", "--with-token", stdin="key-0123456789")
        account, = json.loads(self.credmgr("status", "--json").out)
        self.assertEqual(account["account"], "ada & bob")

    def test_documents_that_attack(self):
        secret = self.file("secret", "a-secret-of-this-machine")
        grows = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
        documents = {
            "a bomb": f'<!DOCTYPE User [<!ENTITY e0 "ha">{grows}]><User><Name>&e12;</Name></User>',
            "a file": f'<!DOCTYPE User [<!ENTITY e SYSTEM "file://{secret}">]><User><Name>&e;</Name></User>',
            "an address": f'<!DOCTYPE User [<!ENTITY e SYSTEM "{self.service.base}/dtd">]><User><Name>&e;</Name></User>',
            "a type": f'<!DOCTYPE User SYSTEM "{self.service.base}/dtd"><User><Name>ada</Name></User>',
            "a parameter": f'<!DOCTYPE User [<!ENTITY % e SYSTEM "{self.service.base}/dtd"> %e;]><User><Name>a</Name></User>',
            "depth": "<User>" * 100_000, "no end": "<User><Name>ada</Name>", "a page": "<!doctype html><p>Sign in",
            "a page in XML": "<html><p>Sign in</p></html>", "no name": "<User><Id>1</Id></User>",
        }
        reasons = {"depth": "as XML: its elements have more than 64 levels", "no end": "is not valid XML",
                   "a page": "is not valid XML", "a page in XML": "is not valid XML", "no name": "does not show that"}
        for name, document in documents.items():
            with self.subTest(name):
                self.document = document
                before = len(self.service.exchanges)
                outcome = self.credmgr("login", "store", "--with-token", stdin="key-0123456789", status=REFUSED)
                self.assertIn(reasons.get(name, "as XML: it has a document type"), outcome.err.replace("\n", " "))
                self.assertIn("nothing was stored", outcome.err)
                self.assertNotIn("a-secret-of-this-machine", outcome.err)
                self.assertEqual(len(self.service.exchanges), before + 1)
                self.assertEqual(self.credmgr("status", "--json").out.strip(), "[]")


class Places(KeyTest):
    """Keys in the path, in the body and beside parameters of the query."""

    shipped = ("telegram", "mandrill")
    TELEGRAM = "123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11"

    def setUp(self):
        super().setUp()
        service = self.service

        def handle(request):
            service.seen.append((request.target, request.body))
            if request.target.startswith(f"/bot{self.TELEGRAM}/"):
                return json_response({"ok": True, "result": {"username": "a_bot"}})
            if request.method == "POST" and b"md-0123456789" in request.body:
                return json_response({"username": "ada"})
            return json_response({"ok": False}, 401)

        service.handle = handle
        service.secrets |= {self.TELEGRAM, "md-0123456789"}

    def ship(self, name, base):
        with open(os.path.join(ROOT, "providers", name + ".yaml"), encoding="utf-8") as file:
            text = file.read()
        for host in ("api.telegram.org", "mandrillapp.com"):
            text = text.replace(f"identity: https://{host}", f"identity: {base}").replace(f"url: https://{host}", f"url: {base}")
            text = text.replace(f"[{host}]", f'["{base.removeprefix("http://")}"]')
        folder = os.path.join(os.path.dirname(os.path.dirname(self.binary)), "share/credmgr/providers")
        with open(os.path.join(folder, name + ".yaml"), "w", encoding="utf-8") as file:
            file.write(text)

    def test_a_token_in_the_path(self):
        self.credmgr("login", "telegram", "--with-token", stdin="123456:WRONG", status=REFUSED)
        self.credmgr("login", "telegram", "--with-token", stdin=self.TELEGRAM)
        self.assertEqual(self.accounts_of("telegram")[0]["account"], "a_bot")
        traced = self.credmgr("request", "telegram", self.service.base + "/sendMessage?chat_id=1", "--trace")
        self.assertEqual(self.service.seen[-1][0], f"/bot{self.TELEGRAM}/sendMessage?chat_id=1")
        self.assertNotIn(self.TELEGRAM, traced.err)
        self.credmgr("header", "telegram", status=USAGE)
        other = self.serve(KeyService())
        self.credmgr("request", "telegram", other.base + "/x", status=USAGE)
        self.assertEqual(other.seen, [])

    def test_a_key_in_the_body(self):
        self.credmgr("login", "mandrill", "--with-token", stdin="md-0123456789")
        self.assertEqual(json.loads(self.service.seen[-1][1])["key"], "md-0123456789")
        url = self.service.base + "/api/1.0/messages/send.json"
        send = ("request", "mandrill", url)
        self.credmgr(*send, "-H", "Content-Type: application/json", "-d", '{"message": {"n": 1.50}}')
        self.assertEqual(json.loads(self.service.seen[-1][1]), {"key": "md-0123456789", "message": {"n": 1.5}})
        self.credmgr(*send, "-d", "a=b")
        self.assertEqual(self.service.seen[-1][1], b"a=b&key=md-0123456789")
        self.file("body.json", '{"a": 1}')
        self.credmgr(*send, "-H", "Content-Type: application/json", "-d", "@body.json")
        self.assertEqual(json.loads(self.service.seen[-1][1]), {"key": "md-0123456789", "a": 1})
        count = len(self.service.seen)
        self.credmgr(*send, status=USAGE)
        self.credmgr(*send, "-H", "Content-Type: text/plain", "-d", "text", status=USAGE)
        self.assertEqual(len(self.service.seen), count)
