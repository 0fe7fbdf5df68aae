"""Servers in the style of OCLC: the user-agent flow of the WSKey's first years, and the endpoints of today."""

import time
import urllib.parse

import clock
from provider_server import Provider, basic, proves
from service import consent_page, html_response, json_response, redirect, text_response, with_query


class OCLCUserAgent(Provider):
    """The user-agent flow: everything comes in the fragment, with the person's identity beside the token."""

    authenticating = "128807"
    context = "91475"

    def __init__(self, lifetime=1199):
        super().__init__(lifetime)
        self.routes.update({
            ("GET", "/oauth2/authorizeCode"): self.authorize,
            ("POST", "/oauth2/authorizeCode"): self.decide,
            ("POST", "/oauth2/accessToken"): self.token,
            ("GET", "/ncip/circ"): self.api,
            ("POST", "/ncip/circ"): self.api,
        })

    def authorize(self, request):
        fields = request.query_fields()
        wanted = {"client_id": self.client_id, "response_type": "token",
                  "authenticatingInstitutionId": self.authenticating, "contextInstitutionId": self.context}
        for name, value in wanted.items():
            if fields.get(name) != value:
                return html_response(f"{name} is wrong or missing", 400)
        if not fields.get("redirect_uri") or not fields.get("scope"):
            return html_response("redirect_uri and scope are required", 400)
        return consent_page("Allow access to your library account?", "/oauth2/authorizeCode", request.query)

    def identity(self):
        return {"principalID": "8eaa9f92-3951-431c-975a-d7df26b8d131", "principalIDNS": "urn:oclc:wms:da"}

    def stamp(self, seconds):
        return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(clock.now() + seconds))

    def token_fields(self):
        return {
            "access_token": self.new_access("tk_"), **self.identity(), "context_institution_id": self.context,
            "token_type": "bearer", "expires_in": str(self.lifetime), "expires_at": self.stamp(self.lifetime),
        }

    def decide(self, request):
        fields = request.form_fields()
        target = fields["redirect_uri"]
        scheme, colon, rest = target.partition(":")
        target = scheme.lower() + colon + rest  # as browsers and phones hand a scheme over
        if fields.get("decision") != "approve":
            answer = {"error": "access_denied", "error_description": "User denied access"}
        else:
            answer = self.token_fields()
            if "refresh_token" in fields["scope"].split():
                answer.update(refresh_token=self.new_refresh("rt_"), refresh_token_expires_in="604799",
                              refresh_token_expires_at=self.stamp(604799))
        if "state" in fields:
            answer["state"] = fields["state"]
        quote = urllib.parse.quote if "access_token" in answer else urllib.parse.quote_plus
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
        value = request.headers.get("Authorization") or ""
        head, *parameters = [part.strip() for part in value.split(",")]
        scheme, _, token = head.partition(" ")
        named = {name: text.strip('"') for name, _, text in (part.partition("=") for part in parameters)}
        if scheme != "Bearer" or not self.valid(token) or named != self.identity():
            self.counts["api_refused"] += 1
            return json_response({"code": 401, "message": "Unauthorized"}, 401)
        if request.method == "POST" and not (request.headers.get("Content-Type") or "").startswith("application/xml"):
            return json_response({"code": 415, "message": "XML is wanted"}, 415)
        self.counts["api"] += 1
        return text_response(request.body.decode() or "<circ/>", 200, "application/xml")


class OCLCToday(Provider):
    """Parameters in the query of an empty POST, Basic, `expires_in` as text, `scopes`, institution in the scope."""

    context = "128807"

    def __init__(self, lifetime=3599):
        super().__init__(lifetime)
        self.routes.update({
            ("GET", "/auth"): self.authorize,
            ("POST", "/auth"): self.decide,
            ("GET", f"/auth/{self.context}"): self.authorize,
            ("POST", f"/auth/{self.context}"): self.decide,
            ("POST", "/token"): self.token,
            ("GET", "/bibs"): self.api,
        })

    def authorize(self, request):
        fields = request.query_fields()
        if fields.get("client_id") != self.client_id or fields.get("response_type") != "code":
            return html_response("client_id or response_type is wrong", 400)
        if "code_challenge" in fields and fields.get("code_challenge_method") != "S256":
            return html_response("only S256", 400)
        return consent_page("Allow access to your library account?", request.path, request.query)

    def decide(self, request):
        fields = request.form_fields()
        if fields.get("decision") != "approve":
            return redirect(with_query(fields["redirect_uri"], {"error": "access_denied", "state": fields["state"]}))
        return redirect(with_query(fields["redirect_uri"],
                                   {"code": self.new_code(fields), "state": fields.get("state", "")}))

    def refuse(self, status, message):
        self.counts["refused"] += 1
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
                "principalID": "", "principalIDNS": "", "scopes": fields["scope"],
                "contextInstitutionId": self.context,
                "expires_at": time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(clock.now() + self.lifetime)),
            })
        if grant == "authorization_code":
            issued = self.codes.pop(fields.get("code"), None)
            if issued is None or issued["redirect_uri"] != fields.get("redirect_uri"):
                return self.refuse(401, "authorization code is invalid")
            if "code_challenge" in issued and not proves(issued["code_challenge"], fields.get("code_verifier", "")):
                return self.refuse(401, "code verifier is wrong")
            return json_response({
                "access_token": self.new_access("tk_"), "token_type": "bearer", "expires_in": str(self.lifetime),
                "refresh_token": self.new_refresh("rt_"), "context_institution_id": self.context,
                "principalID": "8eaa9f92", "principalIDNS": "urn:oclc:wms:da", "scopes": issued.get("scope", ""),
            })
        if grant == "refresh_token":
            if fields.get("refresh_token") not in self.refreshes:
                return self.refuse(401, "refresh token is invalid")
            return json_response({"access_token": self.new_access("tk_", 3599), "token_type": "bearer",
                                  "expires_in": "3599"})
        return self.refuse(400, "unknown grant_type")

    def api(self, request):
        token = (request.headers.get("Authorization") or "").split(",")[0]
        if not token.startswith("Bearer ") or not self.valid(token[7:]):
            return self.refuse(401, "token is invalid")
        return json_response({"oclcNumber": "1"})
