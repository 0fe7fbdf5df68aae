"""A loopback container registry with one image's tag list (distribution, "Docker Registry HTTP API V2").

It takes Basic, or tokens that its token server issues ("Token Authentication Specification").
"""

import base64
import secrets

from service import Refusal, Response, Service, json_response

MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.list.v2+json"


class RegistryServer(Service):
    """Serves clients that `accepts(username, password)` allows."""

    def __init__(self, accepts, tls=None, has_tokens=False, realm=None):
        super().__init__(tls)
        self.accepts = accepts
        self.token = secrets.token_urlsafe(20) if has_tokens else None
        self.realm = realm or self.base + "/token"
        self.routes["GET", "/token"] = self.issue
        self.users = []
        self.routes.update({
            ("GET", "/v2/"): self.guarded(lambda request: json_response({})),
            ("GET", "/v2/team/demo/manifests/latest"): self.guarded(self.manifest),
            ("HEAD", "/v2/team/demo/manifests/latest"): self.guarded(self.manifest),
        })

    def guarded(self, handler):
        def answer(request):
            scheme, _, encoded = (request.headers.get("Authorization") or "").partition(" ")
            if self.token:
                if (scheme.lower(), encoded) == ("bearer", self.token):
                    return handler(request)
                raise Refusal(json_response({"errors": [{"code": "UNAUTHORIZED"}]}, 401, [
                    ("WWW-Authenticate", f'Bearer realm="{self.realm}",service="registry"')]))
            username, _, password = base64.b64decode(encoded or "").decode().partition(":")
            if scheme.lower() != "basic" or not self.accepts(username, password):
                self.counts["refused"] += 1
                raise Refusal(json_response(
                    {"errors": [{"code": "UNAUTHORIZED"}]}, 401, [("WWW-Authenticate", 'Basic realm="registry"')]))
            self.users.append(username)
            return handler(request)
        return answer

    def issue(self, request):
        scheme, _, encoded = (request.headers.get("Authorization") or "").partition(" ")
        username, _, password = base64.b64decode(encoded or "").decode().partition(":")
        if scheme.lower() != "basic" or not self.accepts(username, password):
            raise Refusal(json_response({"errors": [{"code": "DENIED"}]}, 403))
        self.counts["tokens"] += 1
        return json_response({"token": self.token})

    def manifest(self, _):
        self.counts["served"] += 1
        response = json_response({"schemaVersion": 2, "mediaType": MANIFEST_TYPE, "manifests": []})
        kept = [header for header in response.headers if header[0] != "Content-Type"]
        return Response(200, response.body, [("Content-Type", MANIFEST_TYPE), *kept])
