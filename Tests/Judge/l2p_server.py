"""A server in the style of L2P, the teaching platform of RWTH Aachen."""

import secrets as randomness

from provider_server import Provider
from service import consent_page, html_response, json_response


class L2P(Provider):
    """The device-like flow of L2P: outcomes are sentences in `status`, always with HTTP 200."""

    def __init__(self, lifetime=1800, interval=1):
        super().__init__(lifetime)
        self.interval = interval
        self.devices = {}
        self.invalidated = False
        root = "/oauth2waitress/oauth2.svc"
        self.routes.update({
            ("POST", f"{root}/code"): self.code,
            ("POST", f"{root}/token"): self.token,
            ("POST", f"{root}/tokeninfo"): self.tokeninfo,
            ("GET", "/manage/"): self.manage,
            ("POST", "/manage/"): self.approve,
            ("GET", "/api.svc/v1/viewUserRole"): self.api,
        })

    def status(self, text):
        self.counts[text] += 1
        return json_response({"status": text, "access_token": None, "expires_in": None})

    def code(self, request):
        fields = request.form_fields()
        if fields.get("client_id") != self.client_id or not fields.get("scope"):
            return self.status("error: client invalid.")
        device_code, user_code = self.secret("", 40), randomness.token_hex(5).upper()
        self.devices[device_code] = {"user_code": user_code, "approved": False, "at": 0.0}
        return json_response({"status": "ok", "device_code": device_code, "user_code": user_code,
                              "verification_url": f"{self.base}/manage/", "expires_in": 1800,
                              "interval": self.interval})

    def manage(self, request):
        fields = request.query_fields()
        if fields.get("q") != "verify" or not any(d["user_code"] == fields.get("d") for d in self.devices.values()):
            return html_response("unknown code", 404)
        return consent_page("Authorize the app?", "/manage/", [("d", fields["d"])])

    def approve(self, request):
        fields = request.form_fields()
        for device in self.devices.values():
            device["approved"] |= device["user_code"] == fields.get("d") and fields.get("decision") == "approve"
        return html_response("Done.")

    def token(self, request):
        fields = request.form_fields()
        if fields.get("client_id") != self.client_id:
            return self.status("error: client invalid.")
        grant = fields.get("grant_type")
        self.counts[f"token:{grant}"] += 1
        if grant == "device":
            return self.poll(request, fields)
        if fields.get("refresh_token") not in self.refreshes:
            return json_response({"error": "authorization invalid."})
        if grant == "refresh_token":
            return json_response({"status": "ok", "access_token": self.new_access("", 1800), "token_type": "bearer",
                                  "expires_in": 1800})
        if grant == "invalidate":
            self.refreshes.clear()
            self.access.clear()
            self.invalidated = True
            return json_response({})
        return self.status("error: grant type invalid.")

    def poll(self, request, fields):
        device = self.devices.get(fields.get("code"))
        if device is None:
            return self.status("error: device code invalid.")
        since, device["at"] = request.at - device["at"], request.at
        if since < self.interval - 0.05:
            return self.status("error: slow down")
        if not device["approved"]:
            return self.status("error: authorization pending.")
        del self.devices[fields["code"]]
        return json_response({"status": "ok", "access_token": self.new_access(""), "token_type": "bearer",
                              "expires_in": self.lifetime, "refresh_token": self.new_refresh("")})

    def tokeninfo(self, request):
        fields = request.form_fields()
        if fields.get("client_id") != self.client_id or not self.valid(fields.get("access_token")):
            return json_response({"status": "error: access token invalid.", "state": "invalid"})
        return json_response({"status": "ok", "audience": "judge", "scope": "l2p.rwth campus.rwth",
                              "expires_in": 1700, "state": "valid"})

    def api(self, request):
        if "Authorization" in request.headers or not self.valid(request.query_fields().get("accessToken")):
            return json_response({"Status": False, "errorDescription": "Access denied"}, 401)
        self.counts["api"] += 1
        return json_response({"Status": True, "role": "student"})
