"""OAuth 1.0a with oauthlib's server: oauthlib verifies every signature."""

import json
import os

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

import authlib_oauth1_server
import clock
import oauth1_server
from authlib_oauth1_server import AuthlibOAuth1Server
from browser import Browser
from oauth1_server import OAuth1Server
from program import ADA, LOGIN_NEEDED, REFUSED, USAGE, ProgramTest, brief


def rsa_key():
    """Returns a public and a private key as PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                serialization.NoEncryption())
    return public.decode(), private.decode()


class OAuth1(ProgramTest):
    descriptor = "oauth1-style"

    def logged_in(self, service, secret=oauth1_server.CLIENT_SECRET, **values):
        self.serve(service)
        provider = self.add(self.descriptor, service, oauth1_server.CLIENT_KEY, secret, **values)
        self.credmgr("login", provider, "--account", ADA)
        return provider

    def expect_signed(self, service, provider, *more):
        """Sends signed requests: with a query that must be sorted and encoded, and with a form body."""
        before = service.counts["resource"]
        url = service.base + "/api/items?b5=%3D%253D&a3=a&c%40=&a2=r%20b&a3=2+q&z=%C3%BC"
        answer = json.loads(self.credmgr("request", provider, url, *more).out)
        self.assertEqual(answer["screen_name"], "ada")
        self.credmgr("request", provider, service.base + "/api/items?x=1", "-X", "POST", "-d", "c2&a3=2+q&note=%C3%BC")
        self.assertEqual(service.counts["resource"], before + 2)
        self.assertEqual(service.counts["resource_refused"], 0)

    def test_each_signature_method(self):
        for method in ("HMAC-SHA1", "HMAC-SHA256", "PLAINTEXT"):
            with self.subTest(method):
                self.new_home()
                service = OAuth1Server(methods=[method])
                provider = self.logged_in(service, signature_method=method)
                self.expect_signed(service, provider)

    def test_each_method_of_rsa(self):
        public, private = rsa_key()
        for method in ("RSA-SHA1", "RSA-SHA256", "RSA-SHA512"):
            with self.subTest(method):
                self.new_home()
                service = OAuth1Server(methods=[method], rsa_public_key=public)
                provider = self.logged_in(service, private.strip(), signature_method=method)
                service.secrets.add(private.splitlines()[3])
                self.expect_signed(service, provider)

    def test_each_transport(self):
        for transport in ("query", "body"):
            with self.subTest(transport):
                self.new_home()
                service = OAuth1Server(transport=transport)
                provider = self.logged_in(service, transport=transport)
                self.expect_signed(service, provider)

    def add_shipped(self, service, key, secret, paths, *more):
        """Adds the shipped descriptor as `shipped`, with the three addresses of a provider's documentation."""
        arguments = ["add-provider", "oauth1", "--as", "shipped", "--client-id", key, "--client-secret-file",
                     self.file("secret", secret), "--set", f"api_host=127.0.0.1:{service.port}", "--replace", *more]
        for name, path in zip(("temporary_credentials_url", "authorization_url", "token_url"), paths):
            arguments += ["--set", f"{name}={service.base}{path}"]
        self.credmgr(*arguments)

    def test_the_shipped_descriptor(self):
        service = self.serve(OAuth1Server(lifetime=brief()))
        self.add_shipped(service, oauth1_server.CLIENT_KEY, oauth1_server.CLIENT_SECRET,
                         ("/oauth/request_token", "/oauth/authorize", "/oauth/access_token"))
        self.credmgr("login", "shipped", "--account", ADA)
        self.expire()
        self.expect_signed(service, "shipped")
        self.assertEqual(service.counts["refresh"], 1)

    def test_a_token_that_the_user_brings(self):
        service = self.serve(OAuth1Server())
        token, secret = "tokenOfAForm0123456789ab", "secret-of-a-form"
        service.validator.access_tokens[token] = {"secret": secret, "expires": clock.now() + 3600, "session": None}
        provider = self.add(self.descriptor, service, oauth1_server.CLIENT_KEY, oauth1_server.CLIENT_SECRET)
        login = ("login", provider, "--account", ADA, "--with-token")
        refused = self.credmgr(*login, stdin=token + "\n", status=USAGE)
        self.assertIn("must have 2 lines", refused.err)
        self.assertNotIn(token, refused.err)
        self.credmgr(*login, stdin=f"{token}\n{secret}\n")
        self.expect_signed(service, provider)

    def test_a_server_of_authlib(self):
        public, private = rsa_key()
        service = self.serve(AuthlibOAuth1Server(public))
        paths = ("/initiate", "/authorize", "/token")
        for method in ("HMAC-SHA1", "RSA-SHA1", "PLAINTEXT"):
            with self.subTest(method):
                secret = private.strip() if method.startswith("RSA") else authlib_oauth1_server.CLIENT_SECRET
                self.add_shipped(service, authlib_oauth1_server.CLIENT_KEY, secret, paths,
                                 "--set", f"signature_method={method}")
                self.credmgr("login", "shipped", "--account", ADA)
                self.credmgr("request", "shipped", service.base + "/photos?size=large&size=r%20b")
                self.credmgr("request", "shipped", service.base + "/photos", "-d", "title=a+b&note=%C3%BC")
        self.assertEqual(service.counts["photos"], 6)
        # The provider declines without the token.
        self.environment["BROWSER"] = "true"
        login = self.start("login", "shipped", "--account", ADA)
        Browser(decision="deny").open(login.address())
        refused = login.end()
        self.assertEqual(refused.status, REFUSED, refused.err)
        self.assertIn("access_denied", refused.err)
        # The provider also gives a reason.
        self.add_shipped(service, authlib_oauth1_server.CLIENT_KEY, "not-the-secret", paths,
                         "--set", "signature_method=HMAC-SHA1")
        self.assertIn("invalid_signature", self.credmgr("login", "shipped", status=REFUSED).err)

    def test_a_header_signs_one_request(self):
        service = OAuth1Server()
        provider = self.logged_in(service)
        url = service.base + "/resource?q=1"
        lines = self.credmgr("header", provider, "--url", url, "--method", "GET").line.splitlines()
        arguments = [argument for line in lines for argument in ("-H", line)]
        for expected in ("200", "401"):  # a repeated nonce is a replay
            done = self.run_program("--silent", "--output", "/dev/null", "--write-out", "%{http_code}", *arguments,
                                    url, binary="/usr/bin/curl") if os.access("/usr/bin/curl", os.X_OK) else None
            if done is None:
                self.skipTest("there is no curl")
            self.assertEqual(done.out, expected)

    def test_expired_session_is_extended(self):
        service = OAuth1Server(lifetime=brief())
        provider = self.logged_in(service)
        self.expire()
        self.expect_signed(service, provider)
        self.assertEqual(service.counts["refresh"], 1)

    def test_wrong_consumer_secret_is_refused(self):
        service = self.serve(OAuth1Server())
        provider = self.add(self.descriptor, service, oauth1_server.CLIENT_KEY, "not-the-secret")
        self.credmgr("login", provider, status=REFUSED)
        self.credmgr("token", provider, status=LOGIN_NEEDED)

    def test_a_callback_for_another_request_token_changes_nothing(self):
        service = self.serve(OAuth1Server())
        provider = self.add(self.descriptor, service, oauth1_server.CLIENT_KEY, oauth1_server.CLIENT_SECRET)
        login = self.start("login", provider, "--account", ADA, "--no-browser", stdin=False)
        address = login.address()
        callback = next(iter(service.validator.request_tokens.values()))["callback"]
        joint = "&" if "?" in callback else "?"
        status, _, _ = Browser().open(f"{callback}{joint}oauth_token=another&oauth_verifier=guess")
        self.assertGreaterEqual(status, 400)
        Browser().open(address)
        outcome = login.end()
        self.assertEqual(outcome.status, 0, outcome.err)
