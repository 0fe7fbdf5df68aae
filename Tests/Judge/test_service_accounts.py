"""Service accounts and sessions: key files, tokens that credmgr gets again, and assertions that PyJWT verifies."""

import json
import os
import re
import subprocess
import time
import types
import urllib.parse

import google.auth.exceptions
import google.auth.jwt
import google.auth.transport
import google.oauth2.service_account
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from program import DONE, LOGIN_NEEDED, REFUSED, ROOT, UNREACHABLE, USAGE, ProgramTest
from service import Service, json_response

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
TOKEN_TYPE = "urn:ietf:params:oauth:token-type:"
CLOUD = "https://www.googleapis.com/auth/cloud-platform"
BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ROBOT = "robot@project.iam.gserviceaccount.com"


def pem(key):
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                             serialization.NoEncryption()).decode()


RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ELLIPTIC = ec.generate_private_key(ec.SECP256R1())


class TokenService(Service):
    """Exchanges assertions that PyJWT accepts, and answers requests with the tokens that it issued."""

    def __init__(self):
        super().__init__()
        self.claims = []
        self.seen = []
        self.issued = 0
        self.answer = None
        self.lifetime = 3600
        self.tokens = set()

    def issue(self, **more):
        self.issued += 1
        token = f"service-token-{self.issued}"
        self.tokens.add(token)
        return {"token_type": "Bearer", "expires_in": self.lifetime, **more, "access_token": token}

    def verified(self, text, algorithm="RS256", key=RSA, audience=None):
        try:
            claims = jwt.decode(text, key.public_key(), algorithms=[algorithm], audience=audience,
                                options={"require": ["exp", "iat"], "verify_aud": audience is not None})
        except jwt.PyJWTError as error:
            return str(error)
        self.claims.append((jwt.get_unverified_header(text), claims))
        return None

    def handle(self, request):
        self.seen.append(request)
        if self.answer:
            return self.answer
        given = (request.headers.get("Authorization") or "").removeprefix("Bearer ")
        if request.path == "/token":
            form = request.form_fields()
            if form.get("grant_type") != BEARER:
                return json_response({"error": "unsupported_grant_type"}, 400)
            fault = self.verified(form.get("assertion", ""), audience=self.base + "/token")
            if fault:
                return json_response({"error": "invalid_grant", "error_description": fault}, 400)
            return json_response(self.issue())
        if found := re.fullmatch(r"/app/installations/(\d+)/access_tokens", request.path):
            if found[1] != "4711" or self.verified(given):
                return json_response({"message": "Not Found"}, 404)
            body = self.issue()
            return json_response({"token": body["access_token"], "expires_at": "2099-01-01T00:00:00Z"}, 201)
        if request.path == "/installation/repositories":
            return json_response({"repositories": [{"owner": {"login": "octo"}}]} if given in self.tokens else {},
                                 200 if given in self.tokens else 401)
        if request.path == "/v1/apps":
            fault = self.verified(given, "ES256", ELLIPTIC, "appstoreconnect-v1")
            return json_response({"errors": [{"detail": fault}]} if fault else {"data": []}, 401 if fault else 200)
        if request.path == "/v1/token":
            form = request.form_fields()
            if (form.get("grant_type"), form.get("subject_token_type"), form.get("requested_token_type")) != (
                    EXCHANGE, TOKEN_TYPE + "jwt", TOKEN_TYPE + "access_token"):
                return json_response({"error": "invalid_request"}, 400)
            if fault := self.verified(form.get("subject_token", ""), audience=form.get("audience")):
                return json_response({"error": "invalid_request", "error_description": fault}, 400)
            return json_response(self.issue(issued_token_type=TOKEN_TYPE + "access_token"))
        if request.path.endswith(":generateAccessToken"):
            if given not in self.tokens or json.loads(request.body) != {"scope": [CLOUD]}:
                return json_response({"error": {"status": "PERMISSION_DENIED"}}, 403)
            return json_response({"accessToken": self.issue()["access_token"], "expireTime": "2099-01-01T00:00:00Z"})
        if request.path == "/_/oidc/mint-token":
            if fault := self.verified(json.loads(request.body)["token"], audience="pypi"):
                return json_response({"errors": [{"code": "invalid-token", "description": fault}]}, 422)
            return json_response({"success": True, "token": self.issue()["access_token"]})
        if request.path == "/identity/token":
            if request.form_fields().get("apikey") != "ibm-key-0123456789":
                return json_response({"errorCode": "BXNIM0415E"}, 400)
            return json_response(self.issue(refresh_token="not_supported"))
        return json_response({}, 200 if given in self.tokens else 401)


class ServiceAccount(ProgramTest):
    shipped = ("google-service", "github-app", "app-store-connect", "ibm-cloud", "google-workload",
               "google-workload-service", "pypi-trusted")

    def setUp(self):
        super().setUp()
        self.service = self.serve(TokenService())
        place = self.service.base.removeprefix("http://")
        for name, hosts in (("google-service", {"https://oauth2.googleapis.com": self.service.base,
                                                '"*.googleapis.com"': f'"{place}"'}),
                            ("github-app", {"https://api.github.com": self.service.base,
                                            "hosts: [api.github.com]": f'hosts: ["{place}"]'}),
                            ("app-store-connect", {"https://api.appstoreconnect.apple.com": self.service.base,
                                                   "[api.appstoreconnect.apple.com]": f'["{place}"]'}),
                            ("google-workload", {"https://sts.googleapis.com": self.service.base,
                                                 '"*.googleapis.com"': f'"{place}"'}),
                            ("google-workload-service", {"https://iamcredentials.googleapis.com": self.service.base}),
                            ("pypi-trusted", {"https://pypi.org/_": self.service.base + "/_",
                                              "[upload.pypi.org]": f'["{place}"]'}),
                            ("ibm-cloud", {"https://iam.cloud.ibm.com": self.service.base,
                                           '"*.cloud.ibm.com"': f'"{place}"'})):
            with open(os.path.join(ROOT, "providers", name + ".yaml"), encoding="utf-8") as file:
                text = file.read()
            for before, after in hosts.items():
                self.assertIn(before, text)
                text = text.replace(before, after)
            folder = os.path.join(os.path.dirname(os.path.dirname(self.binary)), "share/credmgr/providers")
            with open(os.path.join(folder, name + ".yaml"), "w", encoding="utf-8") as file:
                file.write(text)

    def key_file(self, name, text, mode=0o600):
        path = self.file(name, text)
        os.chmod(path, mode)
        return path

    def google(self, name="robot.json", **changes):
        """Writes a key file as Google's console does."""
        members = {"type": "service_account", "project_id": "project", "private_key_id": "0123abcd",
                   "private_key": pem(RSA), "client_email": ROBOT, "client_id": "1",
                   "auth_uri": "https://accounts.google.com/o/oauth2/auth",
                   "token_uri": "https://oauth2.googleapis.com/token", "universe_domain": "googleapis.com"}
        members = {key: value for key, value in {**members, **changes}.items() if value is not None}
        return self.key_file(name, json.dumps(members, indent=2))

    def assert_nothing_stored(self):
        self.assertEqual(self.run_program("status", "--json").out.strip(), "[]")
        self.assertEqual(self.service.seen, [])


class Machine(ServiceAccount):
    """Machines with the token of another issuer, which PyJWT verifies."""

    POOL = "projects/4711/locations/global/workloadIdentityPools/ci/providers/gitlab"

    def token(self, audience, lifetime=600):
        now = int(time.time())
        return jwt.encode({"iss": "https://ci.example", "sub": "job", "aud": audience, "iat": now, "exp": now + lifetime},
                          RSA, algorithm="RS256")

    def test_a_file(self):
        path = self.file("token", self.token("//iam.googleapis.com/" + self.POOL))
        settings = [word for setting in ("project_number=4711", "pool=ci", "pool_provider=gitlab",
                                         "service_account=" + ROBOT, "subject_token=@" + path)
                    for word in ("--set", setting)]
        self.credmgr("login", "google-workload-service", *settings)
        # The second token is that of the service account.
        self.assertEqual(self.credmgr("token", "google-workload-service").line, "service-token-2")
        # The cluster replaces the file.
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.token("//iam.googleapis.com/" + self.POOL, 900) + "\n")
        self.credmgr("refresh", "google-workload-service")
        self.assertEqual(self.credmgr("token", "google-workload-service").line, "service-token-4")
        issued = [claims["exp"] - claims["iat"] for _, claims in self.service.claims]
        self.assertEqual(issued, [600, 900])
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.token("//iam.googleapis.com/" + self.POOL, -100))
        outcome = self.credmgr("refresh", "google-workload-service", status=LOGIN_NEEDED)
        self.assertIn("expired at", outcome.err)
        self.assertEqual(len(self.service.claims), 2)

    def test_a_variable(self):
        outcome = self.credmgr("login", "pypi-trusted", "--set", "subject_token=env:PYPI_ID_TOKEN", status=LOGIN_NEEDED)
        self.assertIn("PYPI_ID_TOKEN is not set", outcome.err)
        self.credmgr("login", "pypi-trusted", "--set", "subject_token=a-token-in-arguments", status=USAGE)
        self.credmgr("login", "pypi-trusted", "--set", "subject_token=env:PYPI_ID_TOKEN",
                     environment={"PYPI_ID_TOKEN": self.token("pypi")})
        self.assertEqual(self.credmgr("token", "pypi-trusted").line, "service-token-1")


class Google(ServiceAccount):
    def test_a_key_file(self):
        path = self.google()
        self.credmgr("login", "google-service", "--key-file", path)
        header, claims = self.service.claims[0]
        self.assertEqual(header, {"alg": "RS256", "typ": "JWT", "kid": "0123abcd"})
        self.assertEqual(sorted(claims), ["aud", "exp", "iat", "iss", "scope"])
        self.assertEqual((claims["iss"], claims["scope"], claims["exp"] - claims["iat"]),
                         (ROBOT, "https://www.googleapis.com/auth/cloud-platform", 3600))
        # The file is no longer needed.
        os.remove(path)
        self.assertEqual(self.credmgr("token", "google-service").line, "service-token-1")
        self.credmgr("request", "google-service", self.service.base + "/storage")
        self.credmgr("token", "google-service", "--refresh")
        self.assertEqual(self.credmgr("token", "google-service").line, "service-token-2")
        account, = json.loads(self.credmgr("status", "--json").out)
        self.assertEqual((account["account"], account["kind"], account["state"]), (ROBOT, "jwt_bearer", "usable"))
        # Neither requests nor other programs get the private key.
        self.assertNotIn("PRIVATE KEY", "".join(f"{one.headers}{one.body}" for one in self.service.seen))
        self.assertNotIn("PRIVATE", self.credmgr("exec", "google-service", "--", "env").out)
        # The API refuses the token before its time.
        self.service.tokens.clear()
        self.credmgr("request", "google-service", self.service.base + "/storage")
        self.assertEqual(self.service.issued, 3)

    def test_the_library_of_google(self):
        """google-auth accepts our assertion, and its own request differs only in the time and the place."""
        path = self.google()
        self.credmgr("login", "google-service", "--key-file", path)
        ours = self.service.seen[-1]
        public = RSA.public_key().public_bytes(serialization.Encoding.PEM,
                                               serialization.PublicFormat.SubjectPublicKeyInfo).decode()
        audience = self.service.base + "/token"
        claims = google.auth.jwt.decode(ours.form_fields()["assertion"], {"0123abcd": public}, audience=audience)
        self.assertEqual(claims["iss"], ROBOT)
        # The control: another key.
        other = ELLIPTIC.public_key().public_bytes(serialization.Encoding.PEM,
                                                   serialization.PublicFormat.SubjectPublicKeyInfo).decode()
        with self.assertRaises((ValueError, google.auth.exceptions.GoogleAuthError)):
            google.auth.jwt.decode(ours.form_fields()["assertion"], {"0123abcd": other}, audience=audience)
        sent = []

        class Transport(google.auth.transport.Request):
            def __call__(self, url, method="GET", body=None, headers=None, timeout=None, **more):
                sent.append((url, method, body, headers))
                return types.SimpleNamespace(status=200, headers={}, data=b'{"access_token": "t", "expires_in": 3600}')

        google.oauth2.service_account.Credentials.from_service_account_file(
            path, scopes=["https://www.googleapis.com/auth/cloud-platform"]).refresh(Transport())
        (url, method, body, headers), = sent
        theirs = dict(urllib.parse.parse_qsl(body.decode()))
        self.assertEqual((url, method), ("https://oauth2.googleapis.com/token", ours.method))
        self.assertEqual(headers["Content-Type"], ours.headers["Content-Type"])
        self.assertEqual(sorted(theirs), sorted(ours.form_fields()))
        self.assertEqual(theirs["grant_type"], ours.form_fields()["grant_type"])
        headers = [jwt.get_unverified_header(form["assertion"]) for form in (theirs, ours.form_fields())]
        self.assertEqual(*headers)
        values = jwt.decode(theirs["assertion"], options={"verify_signature": False})
        same = {name: values[name] for name in values if name not in ("iat", "exp", "aud")}
        self.assertEqual(same, {name: claims[name] for name in claims if name not in ("iat", "exp", "aud")})
        self.assertEqual((values["aud"], values["exp"] - values["iat"]), (url, claims["exp"] - claims["iat"]))

    def test_options_of_a_login(self):
        self.credmgr("login", "google-service", "--key-file", self.google(), "--scope", "https://example.org/read",
                     "--set", "subject=ada@example.org", "--account", "ada")
        claims = self.service.claims[0][1]
        self.assertEqual((claims["scope"], claims["sub"]), ("https://example.org/read", "ada@example.org"))
        self.credmgr("token", "google-service", "--refresh")
        self.assertEqual(self.service.claims[1][1]["sub"], "ada@example.org")

    def test_standard_input(self):
        with open(self.google(), encoding="utf-8") as file:
            text = file.read()
        self.credmgr("login", "google-service", "--key-file", "-", stdin=text)
        self.credmgr("login", "google-service", "--with-token", stdin=text)
        self.assertEqual(len(json.loads(self.credmgr("status", "--json").out)), 1)

    def test_the_question_at_a_terminal(self):
        terminal = self.terminal("login", "google-service")
        terminal.wait_for(r"create the key file at\s+https://console\.cloud\.google\.com")
        terminal.wait_for("key file of Google service account:")
        terminal.type(self.google() + "\r")
        self.assertEqual(terminal.end(), DONE)
        self.assertNotIn("PRIVATE KEY", terminal.seen)

    def test_without_a_terminal(self):
        outcome = self.start("-w", self.binary, "login", "google-service", binary="/usr/bin/setsid", stdin=False).end()
        self.assertEqual(outcome.status, LOGIN_NEEDED)
        self.assertIn("credmgr login google-service --key-file FILE", outcome.err)

    def test_the_file_chooses_no_host(self):
        """The attack: a file with another token endpoint. The control: it still works, with the agreed one."""
        evil = self.serve(TokenService())
        self.credmgr("login", "google-service", "--key-file", self.google(token_uri=evil.base + "/token"))
        self.assertEqual(evil.seen, [])
        self.assertEqual(self.service.issued, 1)

    def test_the_provider_deletes_the_key(self):
        self.credmgr("login", "google-service", "--key-file", self.google())
        self.service.answer = json_response({"error": "invalid_grant", "error_description": "Invalid JWT Signature."}, 400)
        outcome = self.credmgr("token", "google-service", "--refresh", status=LOGIN_NEEDED)
        self.assertIn("Invalid JWT Signature.", outcome.err)
        self.service.answer = json_response({}, 503)
        self.credmgr("token", "google-service", "--refresh", status=UNREACHABLE)

    def test_a_refused_key(self):
        other = pem(rsa.generate_private_key(public_exponent=65537, key_size=2048))
        outcome = self.credmgr("login", "google-service", "--key-file", self.google(private_key=other), status=REFUSED)
        self.assertIn("Signature verification failed", outcome.err)
        self.assertEqual(self.run_program("status", "--json").out.strip(), "[]")

    def test_bad_files(self):
        encrypted = RSA.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                      serialization.BestAvailableEncryption(b"secret")).decode()
        for name, (path, words) in {
            "empty": (self.key_file("empty", ""), "it is empty"),
            "not JSON": (self.key_file("text", "hello\n"), "it is not a JSON file"),
            "PEM": (self.key_file("pem", pem(RSA)), "it is not a JSON file"),
            "of a user": (self.google(type="authorized_user"), 'its "type" has another value'),
            "half": (self.google("half", client_email=None), 'it has no "client_email"'),
            "a passphrase": (self.google("locked", private_key=encrypted), "it has a passphrase"),
            "a certificate": (self.google("cert", private_key="-----BEGIN CERTIFICATE-----\nMA\n-----END CERTIFICATE-----\n"),
                              "it has no private key"),
            "another kind": (self.google("ec", private_key=pem(ELLIPTIC)), "is not an RSA key of at least 2048 bits"),
            "short": (self.google("short", private_key=pem(rsa.generate_private_key(public_exponent=65537, key_size=1024))),
                      "is not an RSA key of at least 2048 bits"),
            "broken": (self.google("broken", private_key="-----BEGIN PRIVATE KEY-----\nMA\n-----END PRIVATE KEY-----\n"),
                       "is not an RSA key of at least 2048 bits"),
            "a directory": (self.folder, "is a directory"),
            "long": (self.key_file("long", "x" * (1 << 20)), "65536 bytes"),
            "binary": (self.key_file("binary", "\0\x01\x02"), "it is not a JSON file"),
        }.items():
            with self.subTest(name):
                outcome = self.credmgr("login", "google-service", "--key-file", path, status=USAGE)
                self.assertIn(words, outcome.err)
                self.assertNotRegex(outcome.err, "MIIE|mv |client(?!_email)")
        for path, words in ((self.google("open"), "other users can read"), ("/no/such/file", "does not exist")):
            if os.path.exists(path):
                os.chmod(path, 0o644)
            outcome = self.credmgr("login", "google-service", "--key-file", path, status=USAGE)
            self.assertIn(words, outcome.err)
        outcome = self.credmgr("login", "ibm-cloud", "--key-file", self.google(), status=USAGE)
        self.assertIn("has no key file", outcome.err)
        self.assert_nothing_stored()

    def test_forms_of_a_key(self):
        """OpenSSL's older form, Windows line ends, and a byte order mark."""
        old = RSA.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL,
                                serialization.NoEncryption()).decode()
        for text in (old, old.replace("\n", "\r\n"), pem(RSA).strip()):
            path = self.google(private_key=text)
            self.credmgr("login", "google-service", "--key-file", path, "--account", "robot")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.credmgr("login", "google-service", "--key-file",
                     self.key_file("mark", "\ufeff" + text.replace("\n", "\r\n")), "--account", "robot")

    def test_another_key_of_an_account_in_an_import(self):
        self.environment["GOOGLE_APPLICATION_CREDENTIALS"] = path = self.google()
        for _ in range(2):
            self.credmgr("import", "gcloud")
        self.google(private_key_id="ffff")
        outcome = self.run_program("import", "gcloud", "--remove")
        self.assertEqual(outcome.status, USAGE, outcome.err)
        self.assertIn("--replace", outcome.err)
        self.assertTrue(os.path.exists(path))
        self.credmgr("import", "gcloud", "--remove", "--replace")
        self.assertFalse(os.path.exists(path))

    def test_an_export(self):
        """Another machine gets tokens without the file."""
        self.credmgr("login", "google-service", "--key-file", self.google())
        self.credmgr("vault", "export", "copy", "--plain", "--plain")
        self.new_home()
        self.credmgr("vault", "import", "copy", "--plain")
        self.credmgr("token", "google-service", "--refresh")
        self.assertEqual(self.service.issued, 2)


class Others(ServiceAccount):
    def test_github_app(self):
        path = self.key_file("app.pem", pem(RSA))
        outcome = self.start("-w", self.binary, "login", "github-app", "--key-file", path, binary="/usr/bin/setsid",
                             stdin=False).end()
        self.assertEqual(outcome.status, LOGIN_NEEDED)
        self.assertIn("--set app_id=VALUE --set installation_id=VALUE", outcome.err.replace("\n", " "))
        login = ("login", "github-app", "--key-file", path, "--set", "app_id=Iv23abc", "--set")
        self.credmgr(*login, "installation_id=x", status=USAGE)
        self.credmgr(*login, "installation_id=1", status=REFUSED)
        self.credmgr(*login, "installation_id=4711")
        claims = self.service.claims[-1][1]
        self.assertEqual((sorted(claims), claims["iss"]), (["exp", "iat", "iss"], "Iv23abc"))
        self.assertTrue(55 < time.time() - claims["iat"] < 120 and claims["exp"] - time.time() < 600)
        account, = json.loads(self.credmgr("status", "--json").out)
        self.assertEqual(account["account"], "octo")
        self.assertEqual(self.credmgr("token", "github-app").line, "service-token-1")
        answer = self.credmgr("git-credential", "get", stdin="protocol=https\nhost=github.com\n\n").out
        self.assertIn("username=x-access-token\npassword=service-token-1\n", answer)
        self.credmgr("token", "github-app", "--refresh")
        self.assertEqual(self.service.issued, 2)

    def test_app_store_connect(self):
        path = self.key_file("AuthKey_ABC.p8", pem(ELLIPTIC))
        login = ("login", "app-store-connect", "--key-file", path, "--set", "key_id=ABC", "--set", "issuer_id=team")
        self.credmgr(*login)
        header, claims = self.service.claims[0]
        self.assertEqual(header, {"alg": "ES256", "typ": "JWT", "kid": "ABC"})
        self.assertEqual((sorted(claims), claims["exp"] - claims["iat"]), (["aud", "exp", "iat", "iss"], 900))
        first = self.credmgr("token", "app-store-connect").line
        self.credmgr("token", "app-store-connect", "--refresh")
        second = self.credmgr("token", "app-store-connect").line
        self.assertNotEqual(first, second)
        self.assertEqual(self.service.verified(second, "ES256", ELLIPTIC, "appstoreconnect-v1"), None)
        self.credmgr("request", "app-store-connect", self.service.base + "/v1/apps")
        # A key that the provider does not know.
        other = self.key_file("other.p8", pem(ec.generate_private_key(ec.SECP256R1())))
        self.credmgr("login", "app-store-connect", "--account", "other", "--key-file", other, "--set", "key_id=A",
                     "--set", "issuer_id=team", status=REFUSED)
        self.assertEqual(len(json.loads(self.credmgr("status", "--json").out)), 1)

    def test_a_passphrase_can_be_removed(self):
        """The hint of the error works."""
        encrypted = ELLIPTIC.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                           serialization.BestAvailableEncryption(b"secret")).decode()
        path = self.key_file("locked.p8", encrypted)
        login = ("login", "app-store-connect", "--set", "key_id=ABC", "--set", "issuer_id=team", "--key-file")
        outcome = self.credmgr(*login, path, status=USAGE)
        self.assertIn("openssl pkey -in FILE -out NEW", outcome.err)
        new = os.path.join(self.folder, "new.p8")
        subprocess.run(["openssl", "pkey", "-in", path, "-passin", "pass:secret", "-out", new], check=True)
        os.chmod(new, 0o600)
        self.credmgr(*login, new)

    def test_an_api_key_that_becomes_a_token(self):
        self.credmgr("login", "ibm-cloud", "--with-token", stdin="wrong\n", status=REFUSED)
        self.credmgr("login", "ibm-cloud", "--with-token", stdin="ibm-key-0123456789\n")
        self.assertEqual(self.credmgr("token", "ibm-cloud").line, "service-token-1")
        self.credmgr("token", "ibm-cloud", "--refresh")
        self.assertEqual(self.credmgr("token", "ibm-cloud").line, "service-token-2")
        self.assertEqual(json.loads(self.credmgr("status", "--json").out)[0]["kind"], "session")

    def test_the_simulator_plays_a_service(self):
        running = self.start("simulate", "google-service")
        said = {}
        for line in running.process.stdout:
            word, _, value = line.rstrip("\n").rpartition(" ")
            said[word] = value
            if value == "ready":
                break
        self.credmgr("add-provider", said["descriptor"], "--as", "practice", "--yes")
        self.credmgr("login", "practice", "--key-file", said["key-file"])
        self.credmgr("token", "practice", "--refresh")
        running.process.terminate()
        running.process.stdout.close()
        running.process.wait()
