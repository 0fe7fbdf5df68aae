"""Harmful descriptors are refused with a place, or require consent; credmgr stores and sends nothing of them."""

import os
import re
import time

from faulty_server import FaultyServer
from program import ADA, REFUSED, USAGE, ProgramTest, text_of
from service import json_response, redirect
SECONDS = 60

HEAD = """provider: evil
grant: authorization_code
endpoints:
  authorization: https://good.example/authorize
  token:
    url: https://good.example/token
"""


def bomb():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    return "\n".join(lines) + "\n" + HEAD


# The text, the reported line, and a word of the message; FindingTests has each kind of fault.
REFUSED_TEXTS = {
    "an alias bomb": (bomb(), None, "values"),
    "an alias within itself": ("a: &a [*a]\n" + HEAD, 1, ""),
    "a deep list": ("a: " + "[" * 100_000 + "\n" + HEAD, 1, ""),
    "ten megabytes": (HEAD + "# " + "x" * (10 << 20) + "\n", 1, "256 KiB"),
    "many keys": ("".join(f"k{n}: 1\n" for n in range(20_001)) + HEAD, None, ""),
    "a second document": (HEAD + "---\n" + HEAD, None, "document"),
    "a merge key": ("x: &x { title: y }\n<<: *x\n" + HEAD, None, "unknown key"),
    "no UTF-8": (HEAD.encode() + b"title: \xff\xfe\n", None, "UTF-8"),
    "NUL": (HEAD + "title: \"a\"\x00\n", None, ""),
    "Host": (HEAD + "    headers: { Host: evil.example }\n", 7, "cannot be set"),
    "CR and LF in a header": (HEAD + "    headers: { X-A: \"a\\r\\nHost: evil.example\" }\n", 7, "cannot be set"),
    "CR and LF in a URL": (HEAD.replace("/token", "/token\\r\\nX: y").replace(
        "https://good.example/token\\r\\nX: y", "\"https://good.example/token\\r\\nX: y\""), 6, "URL"),
    "http": (HEAD.replace("https://good.example/token", "http://good.example/token"), 6, "must use https"),
    "link-local": (HEAD.replace("https://good.example/token", "http://169.254.169.254/latest"), 6, "must use https"),
    "a file": (HEAD.replace("https://good.example/token", "file:///etc/passwd"), 6, ""),
    "a script": (HEAD.replace("https://good.example/authorize", "javascript:alert(1)"), 4, ""),
    "a state in the page's address": (HEAD.replace("/authorize", "/authorize?state=x"), 4, "protects the login"),
    "a template that never ends": (HEAD.replace("good.example/token", "{x"), 6, ""),
    "a pattern that would take for ever": (HEAD + "variables: { x: { pattern: \"(?=a)+\" } }\n", 7, "regular expression"),
}


class Refused(ProgramTest):
    def assert_nothing_kept(self):
        found = [os.path.join(folder, name) for folder, _, names in os.walk(self.homes[-1]) for name in names]
        self.assertEqual(found, [])

    def written(self, text):
        path = os.path.join(self.folder, "evil.yaml")
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def timed(self, *arguments, **options):
        began = time.monotonic()
        outcome = self.run_program(*arguments, **options)
        self.assertLess(time.monotonic() - began, SECONDS, arguments)
        return outcome

    def test_a_finding_has_its_place(self):
        for name, (text, line, word) in REFUSED_TEXTS.items():
            with self.subTest(name):
                path = self.written(text)
                checked = self.timed("check", path)
                self.assertEqual(checked.status, USAGE, checked.out[:500] + checked.err[:500])
                wanted = str(line) if line else r"\d+"
                self.assertRegex(checked.out, rf"(?m)^{re.escape(path)}:{wanted}:\d+: error: .*{re.escape(word)}")
                for arguments in (("add-provider", path, "--client-id", "c"), ("login", path, "--dry-run"),
                                  ("simulate", path)):
                    outcome = self.timed(*arguments)
                    self.assertEqual(outcome.status, USAGE, outcome.err[:500])
                    self.assertRegex(outcome.err, rf"(?m)^{re.escape(path)}:{wanted}:\d+: error: ")
                    self.assertEqual(outcome.out, "")
                for text in (checked.out, outcome.err):
                    self.assertNotRegex(text, r"[\x00-\x08\x0b-\x1f\x7f]", "nothing that a terminal would act on")
                    self.assertLess(len(text), 100_000)
                self.assert_nothing_kept()

    def test_from_standard_input(self):
        for name in ("an alias bomb", "ten megabytes", "Host"):
            with self.subTest(name):
                outcome = self.timed("add-provider", "-", "--client-id", "c", stdin=REFUSED_TEXTS[name][0])
                self.assertEqual(outcome.status, USAGE)
                self.assertRegex(outcome.err, r"(?m)^<standard input>:\d+:\d+: error: ")
                self.assert_nothing_kept()

    def test_other_kinds_of_files(self):
        pipe = os.path.join(self.folder, "pipe.yaml")
        os.mkfifo(pipe)
        os.symlink("nowhere", os.path.join(self.folder, "link.yaml"))
        for path in (pipe, "/dev/zero", self.folder + "/", os.path.join(self.folder, "link.yaml"), "/dev/null"):
            for arguments in (("check", path), ("add-provider", path, "--client-id", "c"), ("login", path, "--dry-run")):
                with self.subTest(arguments):
                    outcome = self.timed(*arguments)
                    self.assertEqual(outcome.status, USAGE, outcome.err)
                    self.assertIn(path, outcome.out + outcome.err)

    def test_a_login_whose_assertion_would_go_to_a_third_server(self):
        text = """provider: evil
grant: authorization_code
endpoints:
  pushed_authorization_request: https://{push}.good.example/par
  authorization: https://good.example/authorize
  token: https://mtls.good.example/token
issuer: https://login.good.example
client: {{ authentication: private_key_jwt }}
"""
        self.assertEqual(self.timed("check", self.written(text.format(push="login"))).status, 0)
        path = self.written(text.format(push="push"))
        for arguments in (("check", path), ("add-provider", path, "--client-id", "c")):
            outcome = self.timed(*arguments)
            self.assertEqual(outcome.status, USAGE)
            self.assertIn('"https://push.good.example"', outcome.err)

    def test_values_that_would_make_another_host(self):
        template = HEAD.replace("https://good.example/token", "https://{x}.good.example/token") + "variables: { x: }\n"
        path = self.written(template)
        for value in ("evil.example/", "evil.example/#", "evil.example?", "evil.example#", "evil.example\\", "a@evil.example",
                      "evil.example:1/", "evil.example%2F", "a b", "a\r\nHost: x", "\u0435vil", "..", ""):
            with self.subTest(value):
                outcome = self.timed("add-provider", path, "--client-id", "c", "--set", "x=" + value)
                if outcome.status == 0:  # this fault appears only when the template is filled in
                    outcome = self.timed("login", "evil", "--timeout", "1s")
                    self.new_home()
                self.assertEqual(outcome.status, USAGE, outcome.err)
                self.assertNotRegex(outcome.err, r"[\x00-\x08\x0b-\x1f\x7f]")

    def test_a_pattern_and_a_value_that_would_take_too_long(self):
        path = self.written(HEAD.replace("/token", "/{x}") + "variables: { x: { pattern: \"(a|a?)*(a*)*b\" } }\n")
        outcome = self.timed("add-provider", path, "--client-id", "c", "--set", "x=" + "a" * 20_000)
        self.assertEqual(outcome.status, USAGE)

    def test_control_characters(self):
        path = self.written(HEAD + "title: \"\\e[2J\\e]0;x\\a\\u202e\"\nclient: { register: \"\\e[31m\" }\n")
        self.timed("check", path)
        self.timed("add-provider", path, "--client-id", "c")
        outcomes = [self.timed(*arguments) for arguments in (
            ("providers",), ("providers", "evil"), ("login", "evil", "--dry-run"), ("status",), ("doctor",),
            ("add-provider", path), ("completion", "words", "token", "evi"))]
        for outcome in outcomes:
            for text in (outcome.out, outcome.err):
                self.assertNotRegex(text, r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]")


class AtWork(ProgramTest):
    """Faults that appear only in use."""

    def provider(self, service, text):
        path = self.file("evil.yaml", text.replace("$", service.base))
        self.credmgr("add-provider", path, "--client-id", "judge-public")
        return "evil"

    DESCRIPTOR = """provider: evil
grant: authorization_code
endpoints:
  authorization: $/authorize
  token: $/token
  identity: $/me
response: { keep: [more] }
account: name
hosts: [HOST]
"""

    def serve_at(self, path, answer):
        service = self.serve(FaultyServer())
        for method in ("GET", "POST"):
            service.routes[(method, path)] = lambda _: answer
        return service

    def descriptor(self, service):
        return self.DESCRIPTOR.replace("HOST", '"' + service.base.removeprefix("http://") + '"')

    def test_a_redirect_to_other_ports_of_this_machine_and_to_the_network_around_it(self):
        other = self.serve(FaultyServer())
        for target in (other.base + "/token", "http://169.254.169.254/latest/meta-data", "http://[::1]:22/",
                       "file:///etc/passwd"):
            for path in ("/token", "/me"):
                with self.subTest(target=target, path=path):
                    self.new_home()
                    service = self.serve_at(path, redirect(target))
                    provider = self.provider(service, self.descriptor(service))
                    outcome = self.run_program("login", provider, "--account", ADA)
                    if path == "/token":
                        self.assertEqual(outcome.status, REFUSED, outcome.err)
                    self.assertIn("does not send secrets", outcome.err)
        self.assertEqual(other.exchanges, [])

    def test_an_api_that_sends_the_token_elsewhere(self):
        other = self.serve(FaultyServer())
        service = self.serve_at("/moved", redirect(other.base + "/resource"))
        provider = self.provider(service, self.descriptor(service))
        self.credmgr("login", provider, "--account", ADA)
        self.run_program("request", provider, service.base + "/moved")
        self.assertEqual(other.exchanges, [])

    def test_an_answer_that_would_add_a_header(self):
        service = self.serve_at("/token", json_response(
            {"access_token": "t-of-the-judge", "token_type": "bearer", "more": "x\r\nHost: evil.example"}))
        service.secrets.add("t-of-the-judge")
        text = self.descriptor(service) + 'extra_headers: { X-More: "{more}" }\n'
        provider = self.provider(service, text)
        outcome = self.run_program("login", provider, "--account", ADA)
        sent = self.run_program("request", provider, service.base + "/resource")
        self.assertTrue(outcome.status != 0 or sent.status != 0, outcome.err + sent.err)
        for request, _ in service.exchanges:
            self.assertEqual(request.headers.get("Host"), service.base.removeprefix("http://"))
            self.assertNotIn("evil.example", request.headers.get("X-More") or "")

    def test_a_file_that_sends_tokens_elsewhere(self):
        service, other = self.serve(FaultyServer()), self.serve(FaultyServer())
        provider = self.provider(service, self.descriptor(service).replace("  identity: $/me\n", ""))
        self.credmgr("login", provider, "--account", ADA)
        before = len(service.exchanges)
        path = os.path.join(self.homes[-1], "config/providers/evil.yaml")
        text = text_of(path)
        changed = text.replace(service.base + "/token", other.base + "/token")
        with open(path, "w", encoding="utf-8") as file:
            file.write(changed)
        place = f"{path}:5:10"
        authority = other.base.removeprefix("http://")
        self.assertIn(f"{place}: warning: ", self.credmgr("check", path).out)
        for arguments in (("request", "evil", service.base + "/resource"), ("validate", "evil"), ("header", "evil"),
                          ("logout", "evil"), ("login", "evil", "--account", "other")):
            with self.subTest(arguments):
                outcome = self.credmgr(*arguments, status=USAGE)
                self.assertIn(f'"{authority}" ({place})', re.sub(r"\s+", " ", outcome.err))
        # No user is present to ask.
        outcome = self.credmgr("add-provider", "evil", "--replace", status=USAGE)
        self.assertIn(place, outcome.err)
        # The message names the place of a copy elsewhere.
        copy = self.file("copy.yaml", changed)
        outcome = self.credmgr("add-provider", copy, "--replace", status=USAGE)
        self.assertIn(f"{copy}:5:10", outcome.err)
        self.assertEqual((len(service.exchanges), other.exchanges), (before, []))

        for answer, status in (("n", USAGE), ("y", 0)):
            terminal = self.terminal("add-provider", "evil", "--replace", columns=500)
            terminal.wait_for(re.escape(f'"{authority}" ({place})'))
            terminal.wait_for(r"\[y/N\]")
            terminal.type(answer + "\n")
            self.assertEqual(terminal.end(), status, terminal.seen)
        # From here on, the user has agreed.
        self.credmgr("login", "evil", "--account", "other")
        self.assertEqual(len(other.requests("/token")), 1)
        self.assertNotIn("error", self.credmgr("check", path).out)
