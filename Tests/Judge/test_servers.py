"""The judge judged: its servers against clients that are not credmgr, so that a refusal means what it says."""

import base64
import hashlib
import http.client
import json
import os
import subprocess
import tempfile
import unittest
import urllib.parse

from oauthlib import oauth1

import oauth1_server
import oauth2_server
from browser import Browser
from faulty_server import FaultyServer
from git_server import GitServer
from oauth1_server import OAuth1Server
from oauth2_server import OAuth2Server
from program import TIMEOUT, disguises
from service import Service, html_response

CALLBACK = "http://127.0.0.1:9/callback"


def send(service, method, target, fields=None, headers=None, body=None):
    """One exchange without redirects; a JSON or form answer comes back as a dictionary."""
    headers = dict(headers or {})
    if fields is not None:
        body = urllib.parse.urlencode(fields)
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=TIMEOUT)
    connection.request(method, target.removeprefix(service.base), body, headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    kind = response.headers.get("Content-Type", "")
    if kind.startswith("application/json"):
        return response.status, json.loads(text)
    if kind.startswith("application/x-www-form-urlencoded"):
        return response.status, dict(urllib.parse.parse_qsl(text))
    return response.status, {"text": text, "location": response.headers.get("Location")}


def approve(service, path, query):
    """Says yes on a consent page and returns the redirect, unfollowed."""
    return send(service, "POST", path, query)[1]["location"]


def basic(user, password):
    quoted = ":".join(urllib.parse.quote(part, safe="") for part in (user, password))
    return {"Authorization": "Basic " + base64.b64encode(quoted.encode()).decode()}


class SessionClient(oauth1.Client):
    """Signs the session handle among the oauth parameters."""

    handle = ""

    def get_oauth_params(self, request):
        return [*super().get_oauth_params(request), ("oauth_session_handle", self.handle)]


class OAuth1(unittest.TestCase):
    def client(self, **options):
        return oauth1.Client(oauth1_server.CLIENT_KEY, client_secret=oauth1_server.CLIENT_SECRET, **options)

    def call(self, service, client, path, method="POST", body=None):
        headers = {"Content-Type": "application/x-www-form-urlencoded"} if body is not None else {}
        url, headers, body = client.sign(service.base + path, method, body, headers)
        return send(service, method, url, headers=headers, body=body)

    def walk(self, service, **options):
        status, temporary = self.call(service, self.client(callback_uri=CALLBACK, **options), "/oauth/request_token")
        self.assertEqual(status, 200)
        self.assertEqual(temporary["oauth_callback_confirmed"], "true")
        location = approve(service, "/oauth/authorize", {"oauth_token": temporary["oauth_token"],
                                                         "decision": "approve"})
        answer = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(location).query))
        return self.call(service, self.client(
            resource_owner_key=temporary["oauth_token"], resource_owner_secret=temporary["oauth_token_secret"],
            verifier=answer["oauth_verifier"], **options), "/oauth/access_token")

    def test_each_method_and_transport(self):
        for method in ("HMAC-SHA1", "HMAC-SHA256", "PLAINTEXT"):
            with self.subTest(method), OAuth1Server(methods=[method]) as service:
                status, token = self.walk(service, signature_method=method)
                self.assertEqual(status, 200)
                owner = {"resource_owner_key": token["oauth_token"],
                         "resource_owner_secret": token["oauth_token_secret"]}
                good = self.client(signature_method=method, **owner)
                self.assertEqual(self.call(service, good, "/resource?a=b%20c&a=", "GET")[0], 200)
                owner["resource_owner_secret"] += "x"
                bad = self.client(signature_method=method, **owner)
                self.assertEqual(self.call(service, bad, "/resource", "GET")[0], 401)
        for transport, kind in (("query", "QUERY"), ("body", "BODY")):
            with self.subTest(transport), OAuth1Server(transport=transport) as service:
                self.assertEqual(self.call(service, self.client(callback_uri=CALLBACK), "/oauth/request_token")[0], 400)
                client = self.client(callback_uri=CALLBACK, signature_type=kind)
                body = "" if transport == "body" else None
                self.assertEqual(self.call(service, client, "/oauth/request_token", body=body)[0], 200)

    def test_wrong_secret_nonce_and_session(self):
        with OAuth1Server(lifetime=0) as service:
            stranger = oauth1.Client(oauth1_server.CLIENT_KEY, client_secret="guess", callback_uri=CALLBACK)
            self.assertEqual(self.call(service, stranger, "/oauth/request_token")[0], 401)
            _, token = self.walk(service)
            owner = {"resource_owner_key": token["oauth_token"], "resource_owner_secret": token["oauth_token_secret"]}
            expired = self.call(service, self.client(**owner), "/resource", "GET")
            self.assertEqual(expired, (401, {"oauth_problem": "token_expired"}))
            for handle, expected in (("guess", 401), (token["oauth_session_handle"], 200)):
                client = SessionClient(oauth1_server.CLIENT_KEY, client_secret=oauth1_server.CLIENT_SECRET, **owner)
                client.handle = handle
                status, token = self.call(service, client, "/oauth/access_token")
                self.assertEqual(status, expected)
            self.assertEqual(service.counts["refresh"], 1)
            fresh = self.client(resource_owner_key=token["oauth_token"],
                                resource_owner_secret=token["oauth_token_secret"])
            self.assertEqual(self.call(service, fresh, "/resource", "GET")[0], 200)


class OAuth2(unittest.TestCase):
    verifier = "v" * 43
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()

    def code(self, service, **more):
        query = {"response_type": "code", "client_id": oauth2_server.PUBLIC_CLIENT, "redirect_uri": CALLBACK,
                 "scope": "read", "state": "s", "code_challenge": self.challenge, "code_challenge_method": "S256",
                 "decision": "approve", **more}
        location = approve(service, "/authorize", {k: v for k, v in query.items() if v})
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(location or "").query))

    def exchange(self, service, code, **more):
        return send(service, "POST", "/token", {
            "grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK,
            "client_id": oauth2_server.PUBLIC_CLIENT, "code_verifier": self.verifier, **more})

    def refresh(self, service, token):
        return send(service, "POST", "/token", {"grant_type": "refresh_token", "refresh_token": token,
                                                "client_id": oauth2_server.PUBLIC_CLIENT})

    def test_pkce_is_required_and_checked(self):
        with OAuth2Server() as service:
            without = self.code(service, code_challenge="", code_challenge_method="")
            self.assertEqual(without["error"], "invalid_request")
            self.assertEqual(self.code(service, code_challenge_method="plain")["error"], "invalid_request")
            code = self.code(service)["code"]
            self.assertEqual(self.exchange(service, code, code_verifier="w" * 43)[1]["error"], "invalid_grant")
            self.assertEqual(self.exchange(service, code)[1]["error"], "invalid_grant", "a code works once")
            code = self.code(service)["code"]
            other = self.exchange(service, code, redirect_uri=CALLBACK + "2")
            self.assertEqual(other[1]["error"], "invalid_grant")

    def test_rotation_and_reuse(self):
        with OAuth2Server() as service:
            first = self.exchange(service, self.code(service)["code"])[1]
            second = self.refresh(service, first["refresh_token"])[1]
            self.assertTrue(service.accepts(second["access_token"]))
            self.assertEqual(self.refresh(service, first["refresh_token"])[1]["error"], "invalid_grant")
            self.assertEqual(service.counts["reuse"], 1)
            self.assertFalse(service.accepts(second["access_token"]), "reuse ends the family")
            self.assertEqual(self.refresh(service, second["refresh_token"])[0], 400)

    def test_client_credentials_resource_introspection_and_revocation(self):
        with OAuth2Server() as service:
            client = basic(oauth2_server.CONFIDENTIAL_CLIENT, oauth2_server.CLIENT_SECRET)
            fields = {"grant_type": "client_credentials", "scope": "read"}
            self.assertEqual(send(service, "POST", "/token", fields, basic("judge-confidential", "no"))[0], 401)
            status, token = send(service, "POST", "/token", fields, client)
            self.assertEqual(status, 200)
            access = token["access_token"]
            for header, expected in ((f"Bearer {access}", 200), (f"token {access}", 401), (access, 401)):
                self.assertEqual(send(service, "GET", "/resource", headers={"Authorization": header})[0], expected)
            self.assertTrue(send(service, "POST", "/introspect", {"token": access}, client)[1]["active"])
            self.assertEqual(send(service, "POST", "/revoke", {"token": access}, client)[0], 200)
            self.assertFalse(send(service, "POST", "/introspect", {"token": access}, client)[1]["active"])

    def test_device(self):
        with OAuth2Server(interval=0, slow_downs=1) as service:
            client = {"client_id": oauth2_server.PUBLIC_CLIENT}
            _, device = send(service, "POST", "/device", {**client, "scope": "read"})
            poll = {**client, "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
                    "device_code": device["device_code"]}
            self.assertEqual(send(service, "POST", "/token", poll)[1]["error"], "slow_down")
            self.assertEqual(service.devices[device["device_code"]].interval, 5)
            self.assertEqual(send(service, "POST", "/token", poll)[1]["error"], "slow_down", "five seconds more")
            self.assertEqual(Browser().open(device["verification_uri_complete"])[0], 200)
            next(iter(service.devices.values())).interval = 0
            self.assertEqual(send(service, "POST", "/token", poll)[1]["token_type"], "Bearer")


class Bystanders(unittest.TestCase):
    def test_browser_stops_where_loopback_ends_and_relays_fragments(self):
        with Service() as receiver, OAuth2Server() as service:
            got = []
            receiver.routes["GET", "/callback"] = lambda r: html_response("<script>relay</script>")
            receiver.routes["POST", "/callback"] = lambda r: got.append(r) or html_response("thank you")
            for target in (f"{receiver.base}/callback", "judge.app:/callback"):
                query = {"response_type": "token", "client_id": oauth2_server.PUBLIC_CLIENT, "redirect_uri": target,
                         "scope": "read", "state": "s"}
                status, _, final = Browser().open(f"{service.base}/authorize?{urllib.parse.urlencode(query)}")
                self.assertTrue(final.startswith(target))
                self.assertEqual("access_token" in final, status == 0)
            self.assertIn("access_token", dict(got[0].form))
            self.assertEqual(got[0].headers["Origin"], receiver.base)

    def test_faults_are_what_they_say(self):
        with FaultyServer("too-long") as service:
            status, answer = send(service, "POST", "/token", {"grant_type": "authorization_code"})
            self.assertGreater(len(json.dumps(answer)), 1024 * 1024)
            self.assertEqual(status, 200)

    def test_the_search_sees_through_disguises(self):
        secret = b"at-0123456789abcdef"
        for around in (b"", b"x", b"xy"):
            for content in (around + secret + b"after", base64.b64encode(around + secret + b"after"),
                            base64.urlsafe_b64encode(around + secret), secret.hex().upper().encode()):
                self.assertTrue(any(form in content for _, form in disguises(secret)), content)
        self.assertFalse(any(form in b"at-0123456789abcdeg" for _, form in disguises(secret)))

    def test_git_server_clones_for_its_token_only(self):
        with tempfile.TemporaryDirectory() as folder:
            quiet = {"env": {"PATH": os.environ["PATH"], "HOME": folder, "GIT_TERMINAL_PROMPT": "0"},
                     "capture_output": True, "check": False}
            subprocess.run(["git", "init", "-q", "--bare", f"{folder}/served/a.git"], **quiet)
            with GitServer(f"{folder}/served", lambda user, password: password == "right") as server:
                for password, expected in (("right", 0), ("wrong", 128)):
                    url = f"http://x:{password}@127.0.0.1:{server.port}/a.git"
                    done = subprocess.run(["git", "clone", "-q", url, f"{folder}/{password}"], **quiet)
                    self.assertEqual(done.returncode, expected, done.stderr)
                self.assertGreater(server.refused, 0)
