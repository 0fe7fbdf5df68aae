#!/usr/bin/env python3
"""A smart HTTP git server on loopback: `git http-backend` behind Basic, with one token as the only password.

    git_server.py --root FOLDER --token-file FILE [--port N] [--realm TEXT]

serves every repository below FOLDER for clone, fetch and push. The token file is read at each request, so the
accepted token can change while the server runs. Prints `listening on http://127.0.0.1:PORT` when it is ready.
"""

import argparse
import base64
import gzip
import hmac
import http.server
import os
import subprocess
import sys
import threading
import urllib.parse


def backend():
    folder = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip()
    return os.path.join(folder, "git-http-backend")


class GitServer:
    """`accepts` is a function of (user name, password) that says whether to serve; `permits` is one of (path, password)
    for servers that look at whose repository it is. `scheme` is the one that the server asks for and takes."""

    def __init__(self, root, accepts, port=0, realm="loopback git", permits=None, scheme="Basic"):
        self.root = os.path.abspath(root)
        self.accepts = accepts
        self.permits = permits
        self.scheme = scheme
        self.realm = realm
        self.refused = 0
        self.served = 0
        self.users = set()
        self.program = backend()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                server._answer(self)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.base = f"http://127.0.0.1:{self.port}"

    def serve_forever(self):
        self._server.serve_forever(poll_interval=0.05)

    def __enter__(self):
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _allowed(self, handler):
        scheme, _, value = (handler.headers.get("Authorization") or "").partition(" ")
        if scheme.lower() != self.scheme.lower():
            return False
        if scheme.lower() == "bearer":
            return self.accepts("", value)
        try:
            user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
        except (ValueError, UnicodeDecodeError):
            return False
        if not (colon and password and self.accepts(user, password)):
            return False
        if self.permits and not self.permits(handler.path, password):
            return False
        self.users.add(user)
        return True

    def _answer(self, handler):
        body = self._body(handler)
        if not self._allowed(handler):
            self.refused += 1
            text = b"a token is needed\n"
            handler.send_response(401)
            handler.send_header("WWW-Authenticate", f'{self.scheme} realm="{self.realm}"')
            handler.send_header("Content-Type", "text/plain")
            handler.send_header("Content-Length", str(len(text)))
            handler.end_headers()
            handler.wfile.write(text)
            return
        self.served += 1
        self._run(handler, body)

    def _body(self, handler):
        if (handler.headers.get("Transfer-Encoding") or "").lower() == "chunked":
            body = b""
            while size := int(handler.rfile.readline().split(b";")[0], 16):
                body += handler.rfile.read(size)
                handler.rfile.readline()
            handler.rfile.readline()
        else:
            body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        return gzip.decompress(body) if handler.headers.get("Content-Encoding") == "gzip" else body

    def _run(self, handler, body):
        url = urllib.parse.urlsplit(handler.path)
        environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": self.root,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PROJECT_ROOT": self.root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "git",  # push is served to whoever is known
            "REMOTE_ADDR": handler.client_address[0],
            "REQUEST_METHOD": handler.command,
            "PATH_INFO": urllib.parse.unquote(url.path),
            "QUERY_STRING": url.query,
            "CONTENT_TYPE": handler.headers.get("Content-Type") or "",
            "CONTENT_LENGTH": str(len(body)),
            "GIT_PROTOCOL": handler.headers.get("Git-Protocol") or "",
            # The repositories may belong to somebody else than who runs the server, as in a container.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        done = subprocess.run([self.program], input=body, env=environment, capture_output=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        status, headers = 200, []
        for line in head.decode("latin-1").split("\r\n"):
            name, _, value = line.partition(":")
            if name.lower() == "status":
                status = int(value.split()[0])
            elif name:
                headers.append((name, value.strip()))
        if done.returncode != 0 and not head:
            status, content = 500, done.stderr
        handler.send_response(status)
        for name, value in headers:
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


def token_in(path):
    """Accepts the password that stands in the file at `path` now; the user name may be any."""

    def accepts(_user, password):
        try:
            with open(path, encoding="utf-8") as file:
                expected = file.read().strip()
        except OSError:
            return False
        return bool(expected) and hmac.compare_digest(expected.encode(), password.encode())

    return accepts


def main():
    parser = argparse.ArgumentParser(description="A loopback git server that accepts one token.")
    parser.add_argument("--root", required=True)
    parser.add_argument("--token-file", required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--realm", default="loopback git")
    options = parser.parse_args()
    server = GitServer(options.root, token_in(options.token_file), options.port, options.realm)
    print(f"listening on {server.base}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
