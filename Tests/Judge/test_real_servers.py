"""Independent servers, with descriptors written from their documentation."""

import json

import django_server
import glewlwyd_server
import jwt
from django_server import DjangoServer
from glewlwyd_server import GlewlwydTest
from program import DONE, LOGIN_NEEDED, REFUSED, ProgramTest
from test_oauth1 import rsa_key


class Django(ProgramTest):
    def test_django_oauth_toolkit(self):
        service = self.serve(DjangoServer(self.folder, rsa_key()[1]))
        provider = self.add("django", service, django_server.CLIENT_ID, django_server.CLIENT_SECRET)
        # The ID token and the identity endpoint agree on the user's name.
        self.credmgr("login", provider)
        self.assertEqual(json.loads(self.credmgr("status", provider, "--json").out)[0]["account"], "1")
        first = self.credmgr("token", provider).line
        self.assertEqual(json.loads(self.credmgr("request", provider, service.base + "/api/notes").out), {"owner": "ada"})
        # This server rotates refresh tokens.
        for _ in range(2):
            self.credmgr("refresh", provider)
        second = self.credmgr("token", provider).line
        self.assertEqual(service.tokens(), [second])
        self.assertNotEqual(first, second)
        self.credmgr("request", provider, service.base + "/api/notes")
        # A discovered descriptor fits its ID tokens and metadata.
        self.credmgr("add-provider", service.base + "/o", "--as", "discovered", "--client-id", django_server.CLIENT_ID,
                     "--client-secret-file", self.file("secret", django_server.CLIENT_SECRET), "--yes")
        self.credmgr("logout", provider)
        self.assertEqual(service.tokens(), [])
        self.credmgr("token", provider, status=LOGIN_NEEDED)
        # A wrong secret is refused.
        self.add("django", service, django_server.CLIENT_ID, "not-the-secret")
        self.credmgr("login", provider, status=REFUSED)


class Glewlwyd(GlewlwydTest):
    provider = "glewlwyd"

    def setUp(self):
        super().setUp()
        self.serve_glewlwyd()
        self.add_glewlwyd()

    def test_from_login_to_logout(self):
        self.log_in()
        self.assertIn("openid notes", self.credmgr("status", self.provider).out)
        tokens = {self.credmgr("token", self.provider).line}
        # Each refresh token works once.
        for _ in range(2):
            self.credmgr("refresh", self.provider)
            tokens.add(self.credmgr("token", self.provider).line)
        self.assertEqual(len(tokens), 3)
        self.assertEqual(self.credmgr("validate", self.provider).line, "active")
        userinfo = self.credmgr("request", self.provider, self.service.base + "/api/oidc/userinfo").out
        self.assertIn(json.loads(userinfo)["sub"], self.credmgr("status", self.provider).out)
        self.assertEqual(self.valid_refresh_tokens(), 1)
        # Its metadata is enough for a descriptor.
        secret = self.file("secret", glewlwyd_server.CLIENT_SECRET)
        self.credmgr("add-provider", self.service.base + "/api/oidc", "--as", "discovered", "--client-id",
                     glewlwyd_server.CLIENT_ID, "--client-secret-file", secret, "--yes")
        self.credmgr("logout", self.provider)
        self.assertEqual(self.valid_refresh_tokens(), 0)
        self.credmgr("token", self.provider, status=LOGIN_NEEDED)

    def test_a_code_for_a_device(self):
        login = self.start("login", self.provider, "--grant", "device_code", "--no-browser", stdin=False)
        code = login.wait_for("enter the code ([A-Z0-9-]+)").group(1)
        self.service.person.consent(login.address(), code=code)
        outcome = login.end()
        self.assertEqual(outcome.status, DONE, outcome.err)
        self.credmgr("refresh", self.provider)
        self.assertEqual(self.credmgr("validate", self.provider).line, "active")
        self.credmgr("logout", self.provider)
        self.assertEqual(self.valid_refresh_tokens(), 0)

    def test_a_confirmation_on_another_device(self):
        login = self.start("login", self.provider, "--grant", "ciba", "--set", "login_hint=ada", stdin=False)
        message = login.wait_for('the device shows "([A-Z-]+)"').group(1)
        question, = json.loads(self.service.person.call("GET", "/api/oidc/ciba_user_list"))
        self.assertEqual((question["binding_message"], question["client_id"]), (message, glewlwyd_server.CLIENT_ID))
        self.service.person.consent(self.service.base + "/api/oidc/ciba_user_check", user_req_id=question["user_req_id"])
        outcome = login.end()
        self.assertEqual(outcome.status, DONE, outcome.err)
        self.assertEqual(self.credmgr("validate", self.provider).line, "active")

    def test_authorization_details(self):
        details = [{"type": "note", "actions": ["read"]}]
        consent = f"/api/oidc/rar/{glewlwyd_server.CLIENT_ID}/note"
        # The page asks for the consent before it stores it.
        for method, target in (("GET", consent), ("PUT", consent + "/1")):
            self.service.person.call(method, target)
        self.log_in("--authorization-details", self.file("details.json", json.dumps(details)))
        account, = json.loads(self.credmgr("status", self.provider, "--json").out)
        self.assertEqual(account["authorization_details"], details)
        token = self.credmgr("token", self.provider).line
        self.assertEqual(jwt.decode(token, options={"verify_signature": False})["authorization_details"][0]["type"], "note")
        # An action that the server does not know.
        other = self.file("other.json", json.dumps([{**details[0], "actions": ["delete"]}]))
        self.log_in("--account", "other", "--authorization-details", other, status=REFUSED)
        self.assertIn("authorization_details", self.outcome.err)

    def test_a_wrong_descriptor_says_what_is_wrong(self):
        for right, wrong, said in (
            ("/api/oidc/token", "/api/oidc/tokens", 'refused the "token" request (resource not found, status 404)'),
            ("issuer: https://127.0.0.1:{port}/api/oidc", "issuer: https://127.0.0.1:{port}",
             f'its issuer is "{self.service.base}/api/oidc" instead of "{self.service.base}"'),
        ):
            with self.subTest(wrong=wrong):
                self.add_glewlwyd(descriptor=self.descriptor.replace(right, wrong))
                self.log_in(status=REFUSED)
                self.assertIn(said, self.outcome.err)
                self.credmgr("token", self.provider, status=LOGIN_NEEDED)
