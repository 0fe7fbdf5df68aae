"""Tests the judge: its servers with clients other than credmgr, so that a refusal is meaningful."""

import base64
import hashlib
import http.client
import json
import os
import subprocess
import tempfile
import unittest
import urllib.parse

import oauth2_server
from browser import Browser
from faulty_server import FaultyServer
from git_server import GitServer
from oauth2_server import OAuth2Server
from program import TIMEOUT, disguises
from service import Service, html_response

CALLBACK = "http://127.0.0.1:9/callback"


def post(service, path, fields):
    """Sends one request without following redirects; returns a JSON answer as a dictionary."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=TIMEOUT)
    connection.request("POST", path, urllib.parse.urlencode(fields), {"Content-Type": "application/x-www-form-urlencoded"})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    is_json = response.headers.get("Content-Type", "").startswith("application/json")
    return response.status, json.loads(text) if is_json else {"text": text, "location": response.headers.get("Location")}


class OAuth2(unittest.TestCase):
    verifier = "v" * 43
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()

    def code(self, service, **more):
        query = {"response_type": "code", "client_id": oauth2_server.PUBLIC_CLIENT, "redirect_uri": CALLBACK,
                 "scope": "read", "state": "s", "code_challenge": self.challenge, "code_challenge_method": "S256",
                 "decision": "approve", **more}
        _, answer = post(service, "/authorize", {name: value for name, value in query.items() if value})
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(answer.get("location") or "").query))

    def exchange(self, service, code, **more):
        return post(service, "/token", {
            "grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK,
            "client_id": oauth2_server.PUBLIC_CLIENT, "code_verifier": self.verifier, **more})

    def refresh(self, service, token):
        return post(service, "/token", {"grant_type": "refresh_token", "refresh_token": token,
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

    def test_faults_match_their_names(self):
        with FaultyServer("too-long") as service:
            status, answer = post(service, "/token", {"grant_type": "authorization_code"})
            self.assertGreater(len(json.dumps(answer)), 1024 * 1024)
            self.assertEqual(status, 200)

    def test_the_search_finds_encoded_secrets(self):
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
