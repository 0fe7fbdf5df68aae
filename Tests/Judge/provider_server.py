"""Servers that imitate five providers in every documented and observed detail. Each is as strict as its provider and
uses the provider's error messages, so a descriptor with a wrong detail gets no token."""

import base64
import hashlib
import json
import secrets as randomness
import time
import urllib.parse

import clock
from service import (
    Refusal, Response, Service, consent_page, form_response, html_response, json_response, redirect, text_response, with_query,
)


def bearer(request, scheme):
    """Returns the token after exactly `scheme`, or None."""
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


class Provider(Service):
    """The common parts: a consent page, codes that work once, expiring tokens, and polling devices."""

    client_id = "client-of-the-judge"
    question = "Authorize the application?"
    refused = {"error": "access_denied", "error_description": "User denied access"}

    def __init__(self, lifetime, interval=1):
        super().__init__()
        self.lifetime = lifetime
        self.interval = interval
        self.client_secret = self.secret("cs-")
        self.codes = {}
        self.access = {}
        self.refreshes = set()
        self.devices = {}

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

    # The consent page.
    def complaint(self, request, fields):
        """Returns the fault of an authorization request, if any."""
        if fields.get("client_id") != self.client_id:
            return "client_id is wrong"
        return "only S256" if "code_challenge" in fields and fields.get("code_challenge_method") != "S256" else ""

    def authorize(self, request):
        if complaint := self.complaint(request, request.query_fields()):
            return html_response(complaint, 400)
        return consent_page(self.question, request.path, request.query)

    def decide(self, request):
        fields = request.form_fields()
        answer = dict(self.refused)
        if fields.get("decision") == "approve":
            answer = {"code": self.secret("code-")}
            self.codes[answer["code"]] = fields
        if "state" in fields:
            answer["state"] = fields["state"]
        return redirect(with_query(fields["redirect_uri"], answer))

    def proves(self, issued, fields):
        """Whether the verifier matches the challenge, if there is one (RFC 7636 section 4.6, S256)."""
        digest = hashlib.sha256(fields.get("code_verifier", "").encode()).digest()
        return issued.get("code_challenge") in (None, base64.urlsafe_b64encode(digest).rstrip(b"=").decode())

    # Devices.
    def new_device(self, user_code, **values):
        device_code = self.secret("", 40)
        self.devices[device_code] = {"user_code": user_code, "approved": False, "at": 0.0, "interval": self.interval, **values}
        return device_code

    def approve(self, user_code):
        for device in self.devices.values():
            device["approved"] |= device["user_code"] == user_code

    def poll(self, request, device_code):
        """Returns the decided device and removes it, or the reason why it must wait."""
        device = self.devices.get(device_code)
        if device is None:
            return None, "unknown"
        since, device["at"] = request.at - device["at"], request.at
        if since < device["interval"] - 0.05:
            return device, "hurried"
        return (self.devices.pop(device_code), "") if device["approved"] else (device, "pending")


class GitHub(Provider):
    """Returns forms unless JSON is requested; errors with status 200; granted scopes with commas."""

    refused = {"error": "access_denied", "error_description": "The user has denied your application access."}

    def __init__(self, lifetime=28800, interval=1):
        super().__init__(lifetime, interval)
        self.routes.update({
            ("GET", "/login/oauth/authorize"): self.authorize,
            ("POST", "/login/oauth/authorize"): self.decide,
            ("POST", "/login/oauth/access_token"): self.token,
            ("POST", "/login/device/code"): self.device_code,
            ("GET", "/login/device"): lambda _: html_response(
                '<form method="post" action="/login/device"><input name="user_code"><button>Continue</button></form>'),
            ("POST", "/login/device"): lambda request: self.approve(request.form_fields().get("user_code"))
            or html_response("Congratulations, you're all set!"),
            ("GET", "/user"): self.api,
            ("DELETE", f"/applications/{self.client_id}/token"): self.delete,
        })

    def answer(self, request, fields):
        return (json_response if "application/json" in (request.headers.get("Accept") or "") else form_response)(fields)

    def error(self, request, code, **more):
        self.counts[code] += 1
        return self.answer(request, {"error": code, "error_description": f"The {code} is documented.",
                                     "error_uri": "https://docs.example/errors", **more})

    def token(self, request):
        fields = request.form_fields()
        grant = fields.get("grant_type", "authorization_code")
        self.counts[f"token:{grant}"] += 1
        is_device = grant == "urn:ietf:params:oauth:grant-type:device_code"
        if fields.get("client_id") != self.client_id or not (is_device or fields.get("client_secret") == self.client_secret):
            return self.error(request, "incorrect_client_credentials")
        if is_device:
            return self.device_token(request, fields)
        if grant == "refresh_token":
            if fields.get("refresh_token") not in self.refreshes:
                return self.error(request, "bad_refresh_token")
            self.refreshes.discard(fields["refresh_token"])
            self.access.clear()  # rotation also ends the old access token
            return self.issue(request, "")
        issued = self.codes.pop(fields.get("code"), None)
        if issued is None or not self.proves(issued, fields):
            return self.error(request, "bad_verification_code")
        if fields.get("redirect_uri", issued["redirect_uri"]) != issued["redirect_uri"]:
            return self.error(request, "redirect_uri_mismatch")
        return self.issue(request, issued.get("scope", ""))

    def issue(self, request, scope):
        return self.answer(request, {
            "access_token": self.new_access("gho_"), "scope": ",".join(scope.split()), "token_type": "bearer",
            "expires_in": self.lifetime, "refresh_token": self.new_refresh("ghr_"), "refresh_token_expires_in": 15897600,
        })

    def device_code(self, request):
        fields = request.form_fields()
        if fields.get("client_id") != self.client_id:
            return self.error(request, "incorrect_client_credentials")
        user_code = randomness.token_hex(2).upper() + "-" + randomness.token_hex(2).upper()
        return self.answer(request, {
            "device_code": self.new_device(user_code, scope=fields.get("scope", "")), "user_code": user_code,
            "verification_uri": f"{self.base}/login/device", "expires_in": 900, "interval": self.interval,
        })

    def device_token(self, request, fields):
        device, problem = self.poll(request, fields.get("device_code"))
        if problem == "hurried":
            device["interval"] += 5
            return self.error(request, "slow_down", interval=device["interval"])
        if problem:
            return self.error(request, "incorrect_device_code" if problem == "unknown" else "authorization_pending")
        return self.issue(request, device["scope"])

    def api(self, request):
        if not request.headers.get("User-Agent"):
            return text_response("Request forbidden by administrative rules.", 403)
        if request.headers.get("Accept") != "application/vnd.github+json":
            return json_response({"message": "Unsupported 'Accept' header"}, 415)
        if not self.valid(bearer(request, "token")):
            return json_response({"message": "Bad credentials"}, 401)
        version = request.headers.get("X-GitHub-Api-Version")
        return json_response({"login": "grace-hopper", "id": 1815, "version": version})

    def application_token(self, request):
        if basic(request) != (self.client_id, self.client_secret):
            raise Refusal(json_response({"message": "Not Found"}, 404))
        try:
            token = json.loads(request.body)["access_token"]
        except (ValueError, KeyError, TypeError):
            raise Refusal(json_response({"message": "Problems parsing JSON"}, 400)) from None
        if not self.valid(token):
            raise Refusal(json_response({"message": "Not Found"}, 404))
        return token

    def delete(self, request):
        del self.access[self.application_token(request)]
        self.counts["deleted"] += 1
        return Response(204)


class LinkedIn(Provider):
    """Requires the secret in the body, JSON, no PKCE, and an https redirect that no local program can serve."""

    redirect_uri = "https://app.example/linkedin-callback"
    refused = {"error": "user_cancelled_authorize", "error_description": "The user cancelled"}

    def __init__(self, lifetime=5184000):
        super().__init__(lifetime)
        self.routes.update({
            ("GET", "/oauth/v2/authorization"): self.authorize,
            ("POST", "/oauth/v2/authorization"): self.decide,
            ("POST", "/oauth/v2/accessToken"): self.token,
            ("POST", "/oauth/v2/introspectToken"): self.introspect,
            ("POST", "/oauth/v2/revoke"): self.revoke,
            ("GET", "/v2/userinfo"): self.userinfo,
        })

    def complaint(self, request, fields):
        if fields.get("client_id") != self.client_id or fields.get("response_type") != "code":
            return "Bummer, something went wrong."
        if fields.get("redirect_uri") != self.redirect_uri:
            return "The redirect_uri does not match the registered value"
        return "spaces are %20 here" if "+" in request.query_string else ""

    def error(self, code, description, status=400):
        return json_response({"error": code, "error_description": description}, status)

    def client_fields(self, request):
        fields = request.form_fields()
        if "Authorization" in request.headers or not request.is_form:
            raise Refusal(self.error("invalid_request", "credentials in the body"))
        if (fields.get("client_id"), fields.get("client_secret")) != (self.client_id, self.client_secret):
            raise Refusal(self.error("invalid_client", "Client authentication failed", 401))
        return fields

    def token(self, request):
        fields = self.client_fields(request)
        if "code_verifier" in fields:
            return self.error("invalid_request", "unknown parameter")
        issued = self.codes.pop(fields.get("code"), None)
        if fields.get("grant_type") != "authorization_code" or issued is None:
            return self.error("invalid_request", "Unable to retrieve access token: "
                              "appid/redirect uri/code verifier does not match authorization code.")
        if fields.get("redirect_uri") != issued["redirect_uri"]:
            return self.error("invalid_redirect_uri", "does not match")
        return json_response({"access_token": self.new_access("AQ"), "expires_in": self.lifetime,
                              "scope": ",".join(issued.get("scope", "").split())})

    def introspect(self, request):
        fields = self.client_fields(request)
        if not self.valid(fields.get("token")):
            return json_response({"active": False, "status": "expired"})
        return json_response({"active": True, "client_id": self.client_id, "status": "active", "scope": "openid,email",
                              "auth_type": "3L", "expires_at": int(self.access[fields["token"]])})

    def revoke(self, request):
        self.access.pop(self.client_fields(request).get("token"), None)
        return Response(200)

    def userinfo(self, request):
        if not self.valid(bearer(request, "Bearer")):
            return json_response({"status": 401, "serviceErrorCode": 65600, "code": "INVALID_ACCESS_TOKEN"}, 401)
        return json_response({"sub": "782bbtaQ", "name": "Ada Lovelace", "email": "ada.lovelace@example.org"})


class L2P(Provider):
    """Implements RWTH Aachen's own device flow: results are sentences in `status`, always with HTTP 200."""

    problems = {"unknown": "error: device code invalid.", "hurried": "error: slow down",
                "pending": "error: authorization pending."}

    def __init__(self, lifetime=1800, interval=1):
        super().__init__(lifetime, interval)
        self.invalidated = False
        root = "/oauth2waitress/oauth2.svc"
        self.routes.update({
            ("POST", f"{root}/code"): self.code,
            ("POST", f"{root}/token"): self.token,
            ("POST", f"{root}/tokeninfo"): self.tokeninfo,
            ("GET", "/manage/"): self.manage,
            ("POST", "/manage/"): self.decide,
            ("GET", "/api.svc/v1/viewUserRole"): self.api,
        })

    def status(self, text):
        self.counts[text] += 1
        return json_response({"status": text, "access_token": None, "expires_in": None})

    def code(self, request):
        fields = request.form_fields()
        if fields.get("client_id") != self.client_id or not fields.get("scope"):
            return self.status("error: client invalid.")
        user_code = randomness.token_hex(5).upper()
        return json_response({"status": "ok", "device_code": self.new_device(user_code), "user_code": user_code,
                              "verification_url": f"{self.base}/manage/", "expires_in": 1800, "interval": self.interval})

    def manage(self, request):
        fields = request.query_fields()
        if fields.get("q") != "verify" or not any(d["user_code"] == fields.get("d") for d in self.devices.values()):
            return html_response("unknown code", 404)
        return consent_page("Authorize the app?", "/manage/", [("d", fields["d"])])

    def decide(self, request):
        fields = request.form_fields()
        if fields.get("decision") == "approve":
            self.approve(fields.get("d"))
        return html_response("Done.")

    def token(self, request):
        fields = request.form_fields()
        if fields.get("client_id") != self.client_id:
            return self.status("error: client invalid.")
        grant = fields.get("grant_type")
        self.counts[f"token:{grant}"] += 1
        answer = {"status": "ok", "token_type": "bearer"}
        if grant == "device":
            _, problem = self.poll(request, fields.get("code"))
            if problem:
                return self.status(self.problems[problem])
            return json_response(answer | {"access_token": self.new_access(""), "expires_in": self.lifetime,
                                           "refresh_token": self.new_refresh("")})
        if fields.get("refresh_token") not in self.refreshes:
            return json_response({"error": "authorization invalid."})
        if grant == "refresh_token":
            return json_response(answer | {"access_token": self.new_access("", 1800), "expires_in": 1800})
        if grant == "invalidate":
            self.refreshes.clear()
            self.access.clear()
            self.invalidated = True
            return json_response({})
        return self.status("error: grant type invalid.")

    def tokeninfo(self, request):
        fields = request.form_fields()
        if fields.get("client_id") != self.client_id or not self.valid(fields.get("access_token")):
            return json_response({"status": "error: access token invalid.", "state": "invalid"})
        return json_response({"status": "ok", "audience": "judge", "scope": "l2p.rwth campus.rwth",
                              "expires_in": 1700, "state": "valid"})

    def api(self, request):
        if "Authorization" in request.headers or not self.valid(request.query_fields().get("accessToken")):
            return json_response({"Status": False, "errorDescription": "Access denied"}, 401)
        return json_response({"Status": True, "role": "student"})


def stamp(seconds):
    """Formats a time as OCLC does, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(clock.now() + seconds))


class OCLCUserAgent(Provider):
    """Implements the WSKey's original flow: the fragment contains everything, including the user's identity."""

    question = "Allow access to your library account?"
    authenticating = "128807"
    context = "91475"
    identity = {"principalID": "8eaa9f92-3951-431c-975a-d7df26b8d131", "principalIDNS": "urn:oclc:wms:da"}

    def __init__(self, lifetime=1199):
        super().__init__(lifetime)
        self.routes.update({
            ("GET", "/oauth2/authorizeCode"): self.authorize,
            ("POST", "/oauth2/authorizeCode"): self.decide,
            ("POST", "/oauth2/accessToken"): self.token,
            ("GET", "/ncip/circ"): self.api,
            ("POST", "/ncip/circ"): self.api,
        })

    def complaint(self, request, fields):
        wanted = {"client_id": self.client_id, "response_type": "token",
                  "authenticatingInstitutionId": self.authenticating, "contextInstitutionId": self.context}
        for name, value in wanted.items():
            if fields.get(name) != value:
                return f"{name} is wrong or missing"
        return "" if fields.get("redirect_uri") and fields.get("scope") else "redirect_uri and scope are required"

    def token_fields(self):
        return {
            "access_token": self.new_access("tk_"), **self.identity, "context_institution_id": self.context,
            "token_type": "bearer", "expires_in": str(self.lifetime), "expires_at": stamp(self.lifetime),
        }

    def decide(self, request):
        fields = request.form_fields()
        scheme, colon, rest = fields["redirect_uri"].partition(":")
        target = scheme.lower() + colon + rest  # as browsers and phones pass a scheme on
        answer, quote = dict(self.refused), urllib.parse.quote_plus
        if fields.get("decision") == "approve":
            answer, quote = self.token_fields(), urllib.parse.quote
            if "refresh_token" in fields["scope"].split():
                answer.update(refresh_token=self.new_refresh("rt_"), refresh_token_expires_in="604799",
                              refresh_token_expires_at=stamp(604799))
        if "state" in fields:
            answer["state"] = fields["state"]
        return redirect(target + "#" + "&".join(f"{k}={quote(v, safe='')}" for k, v in answer.items()))

    def token(self, request):
        fields = dict(request.query + request.form)
        if fields.get("grant_type") != "refresh_token" or fields.get("client_id") != self.client_id:
            return json_response({"code": 400, "message": "Bad request", "detail": "client_id is required"}, 400)
        if fields.get("refresh_token") not in self.refreshes:
            return json_response({"code": 401, "message": "Unauthorized", "detail": "refresh token is invalid"}, 401)
        self.counts["refresh"] += 1
        self.lifetime = 1199
        return json_response(self.token_fields())

    def api(self, request):
        head, *parameters = [part.strip() for part in (request.headers.get("Authorization") or "").split(",")]
        scheme, _, token = head.partition(" ")
        named = {name: text.strip('"') for name, _, text in (part.partition("=") for part in parameters)}
        if scheme != "Bearer" or not self.valid(token) or named != self.identity:
            return json_response({"code": 401, "message": "Unauthorized"}, 401)
        if request.method == "POST" and not (request.headers.get("Content-Type") or "").startswith("application/xml"):
            return json_response({"code": 415, "message": "XML is wanted"}, 415)
        return text_response(request.body.decode() or "<circ/>", 200, "application/xml")


class OCLCToday(Provider):
    """Requires Basic and parameters in the query of an empty POST; returns `expires_in` as text, and `scopes`."""

    question = "Allow access to your library account?"
    context = "128807"

    def __init__(self, lifetime=3599):
        super().__init__(lifetime)
        for path in ("/auth", f"/auth/{self.context}"):
            self.routes.update({("GET", path): self.authorize, ("POST", path): self.decide})
        self.routes.update({("POST", "/token"): self.token, ("GET", "/bibs"): self.api})

    def complaint(self, request, fields):
        return super().complaint(request, fields) or ("" if fields.get("response_type") == "code" else "response_type")

    def refuse(self, status, message):
        return json_response({"code": status, "message": message, "details": "see the documentation"}, status)

    def token(self, request):
        if request.body:
            return self.refuse(400, "the body must be empty")
        if basic(request) != (self.client_id, self.client_secret):
            return self.refuse(401, "WSKey or secret is wrong")
        fields = request.query_fields()
        grant = fields.get("grant_type")
        self.counts[f"token:{grant}"] += 1
        if grant == "client_credentials":
            if f"context:{self.context}" not in fields.get("scope", "").split():
                return self.refuse(400, "no context in the scope")
            return json_response({
                "access_token": self.new_access("tk_"), "token_type": "bearer", "expires_in": str(self.lifetime),
                "principalID": "", "principalIDNS": "", "scopes": fields["scope"], "contextInstitutionId": self.context,
                "expires_at": stamp(self.lifetime),
            })
        if grant == "authorization_code":
            issued = self.codes.pop(fields.get("code"), None)
            if issued is None or issued["redirect_uri"] != fields.get("redirect_uri"):
                return self.refuse(401, "authorization code is invalid")
            if not self.proves(issued, fields):
                return self.refuse(401, "code verifier is wrong")
            return json_response({
                "access_token": self.new_access("tk_"), "token_type": "bearer", "expires_in": str(self.lifetime),
                "refresh_token": self.new_refresh("rt_"), "context_institution_id": self.context,
                "principalID": "8eaa9f92", "principalIDNS": "urn:oclc:wms:da", "scopes": issued.get("scope", ""),
            })
        if grant != "refresh_token":
            return self.refuse(400, "unknown grant_type")
        if fields.get("refresh_token") not in self.refreshes:
            return self.refuse(401, "refresh token is invalid")
        return json_response({"access_token": self.new_access("tk_", 3599), "token_type": "bearer", "expires_in": "3599"})

    def api(self, request):
        token = (request.headers.get("Authorization") or "").split(",")[0]
        if not token.startswith("Bearer ") or not self.valid(token[7:]):
            return self.refuse(401, "token is invalid")
        return json_response({"oclcNumber": "1"})
