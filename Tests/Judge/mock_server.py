"""A provider with scripted answers for each path; it records all requests."""

import base64
import json
import urllib.parse

from service import Response, Service, json_response, redirect, text_response, with_query

# Values that must never reach another server.
CLIENT_SECRET, API_KEY, CODE = "client-secret-7f3a91", "variable-secret-52bc07", "code-of-the-honest-one-18e4"
ACCESS, REFRESH = "access-token-c0ffee11", "refresh-token-decade22"
SECRETS = CLIENT_SECRET, API_KEY, CODE, ACCESS, REFRESH
TOKEN = {"access_token": ACCESS, "refresh_token": REFRESH, "token_type": "Bearer", "expires_in": 3600}


def consents(code=CODE, fragment=False, **more):
    """Returns an authorization page that redirects immediately. `more` adds parameters; `None` omits one."""
    def answer(server, request):
        asked = dict(request.query)
        fields = {"code": code, "state": asked.get("state"), **more}
        fields = {name: server.fill(value) for name, value in fields.items() if value is not None}
        return redirect(asked["redirect_uri"] + "#" + urllib.parse.urlencode(fields) if fragment
                        else with_query(asked["redirect_uri"], fields))
    return answer


def id_token(algorithm="RS256", **claims):
    """Returns an ID token with an unchecked signature: the token endpoint sends it (OpenID Connect Core 1.0, 3.1.3.7).
    """
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()
             for part in ({"alg": algorithm}, claims)]
    return ".".join([*parts, "" if algorithm == "none" else "c2lnbmF0dXJl"])


class MockServer(Service):
    """`answers` override a correct script: JSON, a `Response`, or a function of the server and the request."""

    def __init__(self, answers=None, fill=str, tls=None):
        super().__init__(tls)
        self.fill = fill
        device = {"device_code": "device-code-1", "user_code": "AAAA-BBBB", "verification_uri": "http://$H/activate",
                  "expires_in": 60, "interval": 1}
        self.answers = {"/authorize": consents(), "/token": TOKEN, "/device": device, "/api": {"ok": True},
                        "/activate": text_response("thank you"), "/introspect": {"active": True}, **(answers or {})}
        self.secrets.update(SECRETS)

    def handle(self, request):
        answer = self.answers.get(request.path, text_response("no such page", 404))
        answer = answer(self, request) if callable(answer) else answer
        return answer if isinstance(answer, Response) else json_response(json.loads(self.fill(json.dumps(answer))))

    def got(self, text, path=None):
        """Returns the requests that contain a text anywhere, also encoded."""
        def parts(request):
            basic = (request.headers.get("Authorization") or "").partition("Basic ")[2]
            raw = [request.target, str(request.headers), request.body.decode(errors="replace"),
                   base64.b64decode(basic + "==", validate=False).decode(errors="replace")]
            return "\n".join(raw + [urllib.parse.unquote_plus(part) for part in raw])
        return [request for request, _ in list(self.exchanges)
                if path in (None, request.path) and text in parts(request)]
