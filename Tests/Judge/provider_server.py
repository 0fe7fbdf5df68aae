"""What the servers that imitate the five providers share.

They answer as the providers are documented to answer, field by field and oddity by oddity; written from the providers'
public documentation and from clients that speak to them. They are strict about what the provider is strict about, and
refuse in the provider's own words, so that a descriptor that gets a detail wrong does not get a token.
"""

import base64
import hashlib
import urllib.parse

import clock
from service import Service


def bearer(request, scheme):
    """The token after exactly `scheme`, or nothing."""
    found, _, value = (request.headers.get("Authorization") or "").partition(" ")
    return value if found == scheme else ""


def basic(request):
    scheme, _, value = (request.headers.get("Authorization") or "").partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return "", ""
    return urllib.parse.unquote(user), urllib.parse.unquote(password)


def proves(challenge, verifier):
    """RFC 7636 section 4.6, S256."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == challenge


class Provider(Service):
    """What the five have in common: codes that work once, and tokens with an end."""

    client_id = "client-of-the-judge"

    def __init__(self, lifetime):
        super().__init__()
        self.lifetime = lifetime
        self.client_secret = self.secret("cs-")
        self.codes = {}
        self.access = {}
        self.refreshes = set()

    def new_code(self, fields):
        code = self.secret("code-")
        self.codes[code] = dict(fields)
        return code

    def new_access(self, prefix, lifetime=None):
        token = self.secret(prefix, 40)
        self.access[token] = clock.now() + (self.lifetime if lifetime is None else lifetime)
        self.counts["issued"] += 1
        return token

    def new_refresh(self, prefix):
        token = self.secret(prefix, 40)
        self.refreshes.add(token)
        return token

    def valid(self, token):
        return self.access.get(token, 0) > clock.now()
