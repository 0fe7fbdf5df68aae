#!/usr/bin/env python3
"""A smart HTTP git server on loopback: `git http-backend` behind Basic, with one token as the only password.

    git_server.py --root FOLDER --token-file FILE

serves every repository below FOLDER for clone, fetch and push. It reads the token file at each request, so the accepted
token can change while the server runs. Prints `listening on http://127.0.0.1:PORT` when ready.
"""

import argparse
import base64
import gzip
import os
import signal
import subprocess
import urllib.parse

from service import Response, Service, text_response


class GitServer(Service):
    """`accepts(user name, password)` decides whether to serve; `permits(path, password)` also checks the repository's
    owner. `scheme` is the scheme that the server requests and accepts."""

    def __init__(self, root, accepts, permits=lambda path, password: True, scheme="Basic"):
        super().__init__()
        self.root = os.path.abspath(root)
        self.accepts = accepts
        self.permits = permits
        self.scheme = scheme
        self.refused = 0
        self.served = 0
        folder = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip()
        self.program = os.path.join(folder, "git-http-backend")

    def _allowed(self, request):
        scheme, _, value = (request.headers.get("Authorization") or "").partition(" ")
        if scheme.lower() != self.scheme.lower():
            return False
        if scheme.lower() == "bearer":
            return self.accepts("", value)
        try:
            user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
        except ValueError:
            return False
        return bool(colon and password) and self.accepts(user, password) and self.permits(request.target, password)

    def handle(self, request):
        if not self._allowed(request):
            self.refused += 1
            challenge = ("WWW-Authenticate", f'{self.scheme} realm="loopback git"')
            return text_response("a token is needed\n", 401, headers=[challenge])
        self.served += 1
        body = gzip.decompress(request.body) if request.headers.get("Content-Encoding") == "gzip" else request.body
        environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": self.root,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PROJECT_ROOT": self.root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "git",  # pushing requires a known user
            "REMOTE_ADDR": "127.0.0.1",
            "REQUEST_METHOD": request.method,
            "PATH_INFO": urllib.parse.unquote(request.path),
            "QUERY_STRING": request.query_string,
            "CONTENT_TYPE": request.headers.get("Content-Type") or "",
            "CONTENT_LENGTH": str(len(body)),
            "GIT_PROTOCOL": request.headers.get("Git-Protocol") or "",
            # The repositories may belong to another user than the server, as in a container.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        done = subprocess.run([self.program], input=body, env=environment, capture_output=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        if done.returncode != 0 and not head:
            return Response(500, done.stderr)
        lines = (line.partition(":") for line in head.decode("latin-1").split("\r\n"))
        fields = [(name, value.strip()) for name, _, value in lines]
        status = next((int(value.split()[0]) for name, value in fields if name.lower() == "status"), 200)
        return Response(status, content, [field for field in fields if field[0] and field[0].lower() != "status"])


def main():
    parser = argparse.ArgumentParser(description="A loopback git server that accepts one token.")
    parser.add_argument("--root", required=True)
    parser.add_argument("--token-file", required=True)
    options = parser.parse_args()

    def accepts(_, password):
        with open(options.token_file, encoding="utf-8") as file:
            return password == file.read().strip() != ""

    with GitServer(options.root, accepts) as server:
        print(f"listening on {server.base}", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
