"""A server in the style of LinkedIn."""

from provider_server import Provider, bearer
from service import Refusal, Response, consent_page, html_response, json_response, redirect, with_query


class LinkedIn(Provider):
    """Secret in the body, JSON, no PKCE, an https redirect that no program on this machine can serve."""

    redirect_uri = "https://app.example/linkedin-callback"

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

    def authorize(self, request):
        fields = request.query_fields()
        if fields.get("client_id") != self.client_id or fields.get("response_type") != "code":
            return html_response("Bummer, something went wrong.", 400)
        if fields.get("redirect_uri") != self.redirect_uri:
            return html_response("The redirect_uri does not match the registered value", 400)
        if "+" in request.query_string:
            return html_response("spaces are %20 here", 400)
        return consent_page("Sign in to the application?", "/oauth/v2/authorization", request.query)

    def decide(self, request):
        fields = request.form_fields()
        if fields.get("decision") == "approve":
            answer = {"code": self.new_code(fields), "state": fields.get("state", "")}
        else:
            answer = {"error": "user_cancelled_authorize", "error_description": "The user cancelled",
                      "state": fields.get("state", "")}
        return redirect(with_query(fields["redirect_uri"], answer))

    def client_fields(self, request):
        fields = request.form_fields()
        if "Authorization" in request.headers or not request.is_form:
            raise Refusal(json_response({"error": "invalid_request", "error_description": "credentials in the body"},
                                        400))
        if (fields.get("client_id"), fields.get("client_secret")) != (self.client_id, self.client_secret):
            raise Refusal(json_response({"error": "invalid_client",
                                         "error_description": "Client authentication failed"}, 401))
        return fields

    def token(self, request):
        fields = self.client_fields(request)
        if "code_verifier" in fields:
            return json_response({"error": "invalid_request", "error_description": "unknown parameter"}, 400)
        issued = self.codes.pop(fields.get("code"), None)
        if fields.get("grant_type") != "authorization_code" or issued is None:
            return json_response({"error": "invalid_request", "error_description": "Unable to retrieve access token: "
                                  "appid/redirect uri/code verifier does not match authorization code."}, 400)
        if fields.get("redirect_uri") != issued["redirect_uri"]:
            return json_response({"error": "invalid_redirect_uri", "error_description": "does not match"}, 400)
        return json_response({"access_token": self.new_access("AQ"), "expires_in": self.lifetime,
                              "scope": ",".join(issued.get("scope", "").split())})

    def introspect(self, request):
        fields = self.client_fields(request)
        if not self.valid(fields.get("token")):
            return json_response({"active": False, "status": "expired"})
        return json_response({"active": True, "client_id": self.client_id, "status": "active", "scope": "openid,email",
                              "auth_type": "3L", "expires_at": int(self.access[fields["token"]])})

    def revoke(self, request):
        fields = self.client_fields(request)
        self.access.pop(fields.get("token"), None)
        self.counts["revoked"] += 1
        return Response(200)

    def userinfo(self, request):
        if not self.valid(bearer(request, "Bearer")):
            return json_response({"status": 401, "serviceErrorCode": 65600, "code": "INVALID_ACCESS_TOKEN"}, 401)
        self.counts["api"] += 1
        return json_response({"sub": "782bbtaQ", "name": "Ada Lovelace", "email": "ada.lovelace@example.org"})
