"""A loopback container registry with one image's tag list and Basic (distribution, "Docker Registry HTTP API V2")."""

import base64

from service import Refusal, Response, Service, json_response

MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.list.v2+json"


class RegistryServer(Service):
    """Serves clients that `accepts(username, password)` allows."""

    def __init__(self, accepts, tls=None):
        super().__init__(tls)
        self.accepts = accepts
        self.users = []
        self.routes.update({
            ("GET", "/v2/"): self.guarded(lambda request: json_response({})),
            ("GET", "/v2/team/demo/manifests/latest"): self.guarded(self.manifest),
            ("HEAD", "/v2/team/demo/manifests/latest"): self.guarded(self.manifest),
        })

    def guarded(self, handler):
        def answer(request):
            scheme, _, encoded = (request.headers.get("Authorization") or "").partition(" ")
            username, _, password = base64.b64decode(encoded or "").decode().partition(":")
            if scheme.lower() != "basic" or not self.accepts(username, password):
                self.counts["refused"] += 1
                raise Refusal(json_response(
                    {"errors": [{"code": "UNAUTHORIZED"}]}, 401, [("WWW-Authenticate", 'Basic realm="registry"')]))
            self.users.append(username)
            return handler(request)
        return answer

    def manifest(self, _):
        self.counts["served"] += 1
        response = json_response({"schemaVersion": 2, "mediaType": MANIFEST_TYPE, "manifests": []})
        kept = [header for header in response.headers if header[0] != "Content-Type"]
        return Response(200, response.body, [("Content-Type", MANIFEST_TYPE), *kept])
