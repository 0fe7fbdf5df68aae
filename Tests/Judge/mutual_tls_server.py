"""A provider with TLS that binds tokens to the client's certificate (RFC 8705), on Python's ssl and http.server."""

import base64
import hashlib
import http.server
import json
import secrets
import ssl
import threading
import urllib.parse

CLIENT_ID = "judge-with-a-certificate"


def thumbprint(connection):
    """Returns the hash of the client's certificate (RFC 8705, 3.1), or None."""
    certificate = connection.getpeercert(binary_form=True)
    return certificate and base64.urlsafe_b64encode(hashlib.sha256(certificate).digest()).decode().rstrip("=")


class MutualTLSServer:
    """`seen` has the path and the certificate's hash of each request."""

    def __init__(self, authority):
        self.faults, self.secrets, self.tokens, self.seen = [], set(), {}, []
        context = authority.context()
        context.load_verify_locations(authority.certificate)
        # A client without a certificate gets an answer, too.
        context.verify_mode = ssl.CERT_OPTIONAL
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self, status, value):
                body = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
                key = thumbprint(self.connection)
                server.seen.append((self.path, key))
                if not key or form.get("client_id") != CLIENT_ID or "client_secret" in form:
                    return self.answer(401, {"error": "invalid_client"})
                token = "bound-" + secrets.token_urlsafe(24)
                server.tokens[token] = key
                server.secrets.add(token)
                return self.answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600})

            def do_GET(self):
                key = thumbprint(self.connection)
                server.seen.append((self.path, key))
                token = self.headers.get("Authorization", "").removeprefix("Bearer ")
                if key is None or server.tokens.get(token) != key:
                    return self.answer(401, {"error": "invalid_token"})
                return self.answer(200, {"path": self.path})

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.port = self.http.server_address[1]
        self.base = f"https://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()
