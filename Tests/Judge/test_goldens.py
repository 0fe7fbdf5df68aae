"""Checks the Swift tests' recorded requests with other implementations: oauthlib makes the signatures again (RFC 5849,
3.4), hashlib the challenges (RFC 7636, 4.2), and PyJWT reads the assertions."""

import base64
import glob
import hashlib
import hmac
import json
import os
import re
import unittest
import urllib.parse

import jwt
from oauthlib.oauth1.rfc5849 import signature, utils

from program import ROOT, text_of

GOLDENS = os.path.join(ROOT, "Tests/OAuthTests/Goldens")

# The values used for the goldens.
CLIENT_SECRET = "s:e c"
# The identifier of these clients, which the provider publishes, is also their secret.
PUBLIC = {"snowflake-oauth.txt"}
TOKEN_SECRETS = {"oauth1: temporary_credentials": "", "oauth1: token": "temporary-secret"}
DIGESTS = {"HMAC-SHA1": "sha1", "HMAC-SHA256": "sha256", "HMAC-SHA512": "sha512"}


class Request:
    def __init__(self, text):
        first, *rest = text.rstrip("\n").split("\n")
        self.title, self.method, self.url = re.fullmatch(r"(.*) ([A-Z]+) (https?://.*)", first).groups()
        self.headers = dict(line.split(": ", 1) for line in rest if re.match(r"[\w-]+: ", line))
        self.body = "\n".join(rest[len(self.headers):])
        # A body is a form unless a line says otherwise.
        self.is_form = bool(self.body) and "Content-Type" not in self.headers
        self.query = urllib.parse.parse_qsl(urllib.parse.urlsplit(self.url).query, keep_blank_values=True)
        self.form = urllib.parse.parse_qsl(self.body, keep_blank_values=True) if self.is_form else []
        self.json = json.loads(self.body) if self.headers.get("Content-Type") == "application/json" else {}


def goldens():
    for path in sorted(glob.glob(os.path.join(GOLDENS, "*.txt"))):
        text = text_of(path)
        yield os.path.basename(path), [
            Request(part) for part in re.split(r"\n\n|\n(?=[a-z0-9_: ]+ [A-Z]+ https?://)", text)
            if re.match(r".* [A-Z]+ https?://", part)]


class Goldens(unittest.TestCase):
    def test_every_signature_of_oauth1(self):
        count = 0
        for name, requests in goldens():
            for request in requests:
                value = request.headers.get("Authorization", "")
                fields = {"Authorization": value} if value.startswith("OAuth ") and "=" in value else {}
                sent = signature.collect_parameters(
                    uri_query=urllib.parse.urlsplit(request.url).query, body=request.form, headers=fields,
                    exclude_oauth_signature=False)
                found = dict(sent).get("oauth_signature")
                if found is None:
                    continue
                count += 1
                with self.subTest(golden=name, request=request.title):
                    signed = [pair for pair in sent if pair[0] != "oauth_signature"]
                    secret = "" if name == "launchpad.txt" else CLIENT_SECRET
                    token_secret = TOKEN_SECRETS.get(request.title, "token-secret")
                    key = utils.escape(secret) + "&" + utils.escape(token_secret)
                    method = dict(sent)["oauth_signature_method"]
                    if method == "PLAINTEXT":
                        self.assertEqual(found, key)
                        continue
                    text = signature.signature_base_string(
                        request.method, signature.base_string_uri(request.url), signature.normalize_parameters(signed))
                    made = hmac.new(key.encode(), text.encode(), DIGESTS[method]).digest()
                    self.assertEqual(found, base64.b64encode(made).decode())
        self.assertGreater(count, 30)

    def test_every_proof_key(self):
        count = 0
        for name, requests in goldens():
            pages = [dict(request.query) for request in requests if request.title.endswith(": authorization")]
            sent = [dict(request.query + request.form, **request.json) for request in requests if request.title.endswith(": token")]
            for page, token in zip(pages, sent):
                if "code_challenge" not in page:
                    continue
                count += 1
                with self.subTest(golden=name):
                    verifier = token["code_verifier"]
                    self.assertRegex(verifier, r"^[A-Za-z0-9._~-]{43,128}$")
                    digest = hashlib.sha256(verifier.encode()).digest()
                    plain = base64.urlsafe_b64encode(digest).decode().rstrip("=")
                    self.assertEqual(page["code_challenge"], digest.hex() if name == "tiktok.txt" else plain)
                    self.assertEqual(page["code_challenge_method"], "S256")
        self.assertGreater(count, 20)

    def test_every_state_is_of_256_bits(self):
        for name, requests in goldens():
            for request in requests:
                state = dict(request.query).get("state")
                if state is not None:
                    with self.subTest(golden=name):
                        self.assertEqual(len(base64.urlsafe_b64decode(state + "=")), 32)

    def test_every_basic_header_and_assertion(self):
        for name, requests in goldens():
            for request in requests:
                with self.subTest(golden=name, request=request.title):
                    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
                    # A user's own key, or name and password, go to the API as they are.
                    if scheme == "Basic" and request.title not in ("api", "identity"):
                        user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
                        # RFC 6749, 2.3.1: both are form-encoded first.
                        self.assertEqual(urllib.parse.unquote_plus(user), "client-id")
                        self.assertEqual(urllib.parse.unquote_plus(password), "client-id" if name in PUBLIC else CLIENT_SECRET)
                    for parameter, text in request.form:
                        if text.endswith(".SIGNATURE"):
                            unsigned = text.removesuffix("SIGNATURE") + "AA"
                            claims = jwt.decode(unsigned, options={"verify_signature": False})
                            # The provider decides how long the JWT of a service account may live.
                            if parameter == "client_assertion":
                                self.assertEqual(claims["exp"] - claims["iat"], 300, parameter)
                            else:
                                self.assertLessEqual(claims["exp"] - claims["iat"], 3600, parameter)
