"""A provider whose token endpoint answers with faults, one at a time."""

from service import Response, Service, html_response, json_response, redirect, text_response, with_query


def token(service):
    return {"access_token": service.secret("at-"), "token_type": "Bearer", "expires_in": 3600}


FAULTS = {
    "html": lambda s: html_response("<html><body>We will be back soon</body></html>"),
    "not-json": lambda s: text_response("{access_token: yes", 200, "application/json"),
    "empty": lambda s: Response(200),
    "error-with-200": lambda s: json_response({"error": "invalid_grant", "error_description": "the code is old"}),
    "refused": lambda s: json_response({"error": "invalid_grant", "error_description": "the code is old"}, 400),
    "redirect": lambda s: redirect(s.base + "/elsewhere"),
    "too-long": lambda s: json_response({**token(s), "padding": "x" * (1024 * 1024 + 1)}),
    "no-token": lambda s: json_response({"token_type": "Bearer", "expires_in": 3600}),
    "token-is-a-number": lambda s: json_response({"access_token": 12, "token_type": "Bearer"}),
    "header-injection": lambda s: json_response({**token(s), "access_token": "at-1\r\nX-Evil: yes"}),
    "server-error": lambda s: html_response("<h1>503 Service Unavailable</h1>", 503),
}


class FaultyServer(Service):
    """Approves immediately. `fault` is a key of FAULTS, or empty for a correct answer."""

    def __init__(self, fault=""):
        super().__init__()
        self.fault = fault
        self.routes.update({
            ("GET", "/authorize"): self.authorize,
            ("POST", "/token"): self.token,
            ("GET", "/elsewhere"): self.elsewhere,
            ("POST", "/elsewhere"): self.elsewhere,
        })

    def authorize(self, request):
        fields = request.query_fields()
        answer = {"code": self.secret("code-"), "state": fields.get("state", "")}
        if self.fault == "wrong-state":
            answer["state"] = "0" * 43
        if self.fault == "no-state":
            del answer["state"]
        if self.fault == "denied":
            answer = {"error": "access_denied", "error_description": "the person said no", "state": fields["state"]}
        return redirect(with_query(fields["redirect_uri"], answer))

    def token(self, request):
        self.counts["token"] += 1
        return FAULTS[self.fault](self) if self.fault in FAULTS else json_response(token(self))

    def elsewhere(self, request):
        self.counts["followed"] += 1
        return json_response(token(self))
