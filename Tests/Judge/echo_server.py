"""A provider that repeats everything it receives and sends, wherever a program might show it."""

import base64
import json
import urllib.parse

from oauth2_server import OAuth2Server
from service import json_response

# Members of an answer and names of headers that are harmless.
MEMBERS = ("error_uri", "interval", "status", "prompt", "access_type", "response_mode", "verification_url", "ok")
FIELDS = ("Server", "Retry-After", "Vary", "Cache-Control", "X-GitHub-Api-Version", "WWW-Authenticate", "X-Request")


class EchoServer(OAuth2Server):
    """With `refuses`, every endpoint declines and repeats the whole request as its reason."""

    def __init__(self, **options):
        super().__init__(**options)
        self.refuses = False
        self.verifiers = set()

    def sent(self, request):
        """Returns what arrived, in clear text and in all forms in which it could be written."""
        values = [value for name, value in request.query + request.form
                  if name not in ("grant_type", "response_type", "scope", "client_id", "redirect_uri", "state",
                                  "code_challenge", "code_challenge_method", "token_type_hint", "decision")]
        self.verifiers |= {value for name, value in request.form if name == "code_verifier"}
        scheme, _, credentials = (request.headers.get("Authorization") or "").partition(" ")
        if credentials:
            values.append(credentials)
        if scheme == "Basic":
            values.append(urllib.parse.unquote(base64.b64decode(credentials).decode().partition(":")[2]))
        forms = []
        for value in values:
            raw = value.encode()
            forms += [value, urllib.parse.quote(value, safe=""), raw.hex(), base64.b64encode(raw).decode(),
                      base64.urlsafe_b64encode(b"ab" + raw).decode(), f"Bearer {value}", value + "́"]
        return forms

    def handle(self, request):
        forms = self.sent(request)
        echoing = request.path in ("/token", "/revoke", "/introspect", "/identity", "/resource", "/device")
        if not echoing:
            return super().handle(request)
        text = " ".join(forms)
        if self.refuses:
            self.counts[f"refused:{request.path}"] += 1
            response = json_response({"error": "invalid_grant", "error_description": text}, 400)
        else:
            response = super().handle(request)
        try:
            answer = json.loads(response.body)
        except ValueError:
            answer = {}
        given = " ".join(str(answer.get(name, "")) for name in ("access_token", "refresh_token"))
        if answer:
            answer.update({name: f"{text} {given}" for name in MEMBERS})
            answer["error_description" if "error" in answer else "scopes"] = text
        plain = (text + " " + given).encode("ascii", "ignore").decode()
        answered = json_response(answer, response.status) if answer else response
        answered.headers += [(name, plain[:4000]) for name in FIELDS]
        return answered
