"""A server in the style of GitHub: the web flow, the device flow, the API and the token's administration."""

import json
import secrets as randomness

from provider_server import Provider, basic, bearer, proves
from service import (
    Refusal, Response, consent_page, form_response, html_response, json_response, redirect, text_response, with_query,
)


class GitHub(Provider):
    """Form-encoded answers unless JSON is asked for; errors with status 200; granted scopes with commas."""

    def __init__(self, lifetime=28800, rotate=True, interval=1):
        super().__init__(lifetime)
        self.rotate = rotate
        self.interval = interval
        self.devices = {}
        self.routes.update({
            ("GET", "/login/oauth/authorize"): self.authorize,
            ("POST", "/login/oauth/authorize"): self.decide,
            ("POST", "/login/oauth/access_token"): self.token,
            ("POST", "/login/device/code"): self.device_code,
            ("GET", "/login/device"): self.device_page,
            ("POST", "/login/device"): self.device_decide,
            ("GET", "/user"): self.api,
            ("GET", "/user/repos"): self.api,
            ("POST", f"/applications/{self.client_id}/token"): self.check,
            ("DELETE", f"/applications/{self.client_id}/token"): self.delete,
        })

    def answer(self, request, fields):
        if "application/json" in (request.headers.get("Accept") or ""):
            return json_response(fields)
        return form_response(fields)

    def error(self, request, code, **more):
        self.counts[code] += 1
        return self.answer(request, {"error": code, "error_description": f"The {code} is documented.",
                                     "error_uri": "https://docs.example/errors", **more})

    def authorize(self, request):
        fields = request.query_fields()
        if fields.get("client_id") != self.client_id:
            return html_response("404", 404)
        if "code_challenge" in fields and fields.get("code_challenge_method") != "S256":
            return html_response("only S256", 400)
        return consent_page("Authorize the application?", "/login/oauth/authorize", request.query)

    def decide(self, request):
        fields = request.form_fields()
        if fields.get("decision") != "approve":
            answer = {"error": "access_denied", "error_description": "The user has denied your application access."}
        else:
            answer = {"code": self.new_code(fields)}
        if "state" in fields:
            answer["state"] = fields["state"]
        return redirect(with_query(fields["redirect_uri"], answer))

    def token(self, request):
        fields = request.form_fields()
        if fields.get("client_id") != self.client_id:
            return self.error(request, "incorrect_client_credentials")
        grant = fields.get("grant_type", "authorization_code")
        self.counts[f"token:{grant}"] += 1
        if grant == "urn:ietf:params:oauth:grant-type:device_code":
            return self.poll(request, fields)
        if fields.get("client_secret") != self.client_secret:
            return self.error(request, "incorrect_client_credentials")
        if grant == "refresh_token":
            return self.refresh(request, fields)
        issued = self.codes.pop(fields.get("code"), None)
        if issued is None:
            return self.error(request, "bad_verification_code")
        if fields.get("redirect_uri", issued["redirect_uri"]) != issued["redirect_uri"]:
            return self.error(request, "redirect_uri_mismatch")
        if "code_challenge" in issued and not proves(issued["code_challenge"], fields.get("code_verifier", "")):
            return self.error(request, "bad_verification_code")
        return self.issue(request, issued.get("scope", ""))

    def issue(self, request, scope):
        fields = {
            "access_token": self.new_access("gho_"),
            "scope": ",".join(scope.split()),
            "token_type": "bearer",
        }
        if self.rotate:
            fields.update(expires_in=self.lifetime, refresh_token=self.new_refresh("ghr_"),
                          refresh_token_expires_in=15897600)
        return self.answer(request, fields)

    def refresh(self, request, fields):
        if fields.get("refresh_token") not in self.refreshes:
            return self.error(request, "bad_refresh_token")
        self.refreshes.discard(fields["refresh_token"])
        self.access.clear()  # rotation ends the old access token too
        return self.issue(request, "")

    def device_code(self, request):
        fields = request.form_fields()
        if fields.get("client_id") != self.client_id:
            return self.error(request, "incorrect_client_credentials")
        code = self.secret("", 40)
        user_code = randomness.token_hex(2).upper() + "-" + randomness.token_hex(2).upper()
        self.devices[code] = {"user_code": user_code, "approved": False, "scope": fields.get("scope", ""),
                              "interval": self.interval, "at": 0.0, "hurried": False}
        return self.answer(request, {
            "device_code": code, "user_code": user_code, "verification_uri": f"{self.base}/login/device",
            "expires_in": 900, "interval": self.interval,
        })

    def device_page(self, request):
        return html_response('<form method="post" action="/login/device"><input name="user_code">'
                             "<button>Continue</button></form>")

    def device_decide(self, request):
        user_code = request.form_fields().get("user_code")
        for device in self.devices.values():
            device["approved"] |= device["user_code"] == user_code
        return html_response("Congratulations, you're all set!")

    def poll(self, request, fields):
        device = self.devices.get(fields.get("device_code"))
        if device is None:
            return self.error(request, "incorrect_device_code")
        since, device["at"] = request.at - device["at"], request.at
        if since < device["interval"] - 0.05:
            device["interval"] += 5
            return self.error(request, "slow_down", interval=device["interval"])
        if not device["approved"]:
            return self.error(request, "authorization_pending")
        del self.devices[fields["device_code"]]
        return self.issue(request, device["scope"])

    def api(self, request):
        if not request.headers.get("User-Agent"):
            return text_response("Request forbidden by administrative rules.", 403)
        if request.headers.get("Accept") != "application/vnd.github+json":
            return json_response({"message": "Unsupported 'Accept' header"}, 415)
        if not self.valid(bearer(request, "token")):
            self.counts["api_refused"] += 1
            return json_response({"message": "Bad credentials"}, 401)
        self.counts["api"] += 1
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

    def check(self, request):
        token = self.application_token(request)
        return json_response({"id": 1, "token": token, "user": {"login": "grace-hopper"}, "scopes": ["repo"]})

    def delete(self, request):
        del self.access[self.application_token(request)]
        self.counts["deleted"] += 1
        return Response(204)
