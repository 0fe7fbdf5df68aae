"""A small HTTP server on loopback. It records its requests (`exchanges`), counts events (`counts`), and names every
secret that it issued (`secrets`), so that a test can search for them."""

import collections
import html
import http.server
import json
import secrets as randomness
import socket
import ssl
import sys
import threading
import time
import urllib.parse
from dataclasses import dataclass, field

MAXIMUM_BODY = 4 * 1024 * 1024


class Refusal(Exception):
    """A handler raises this to answer immediately."""

    def __init__(self, response):
        super().__init__(response.status)
        self.response = response


@dataclass
class Response:
    status: int = 200
    body: bytes = b""
    headers: list = field(default_factory=list)

    def header(self, name):
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


@dataclass
class Request:
    method: str
    target: str  # as in the request line
    headers: object
    body: bytes
    base: str  # scheme and authority of the service
    at: float  # monotonic seconds

    @property
    def path(self):
        return urllib.parse.urlsplit(self.target).path

    @property
    def query_string(self):
        return urllib.parse.urlsplit(self.target).query

    @property
    def url(self):
        return self.base + self.target

    @property
    def query(self):
        return urllib.parse.parse_qsl(self.query_string, keep_blank_values=True)

    @property
    def is_form(self):
        content_type = self.headers.get("Content-Type") or ""
        return content_type.split(";")[0].strip().lower() == "application/x-www-form-urlencoded"

    @property
    def form(self):
        if not self.is_form:
            return []
        return urllib.parse.parse_qsl(self.body.decode("utf-8"), keep_blank_values=True)

    def form_fields(self):
        """Returns the form body as a dictionary; refuses a repeated name (RFC 6749 section 3.2)."""
        return unrepeated(self.form)

    def query_fields(self):
        """Returns the query as a dictionary; refuses a repeated name (RFC 6749 section 3.1)."""
        return unrepeated(self.query)


def unrepeated(pairs):
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Refusal(oauth_error("invalid_request", "a parameter is repeated"))
    return fields


def json_response(value, status=200, headers=()):
    body = json.dumps(value).encode()
    return Response(status, body, [("Content-Type", "application/json"), ("Cache-Control", "no-store"), *headers])


def form_response(fields, status=200):
    body = urllib.parse.urlencode(fields).encode()
    return Response(status, body, [("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")])


def text_response(text, status=200, content_type="text/plain; charset=utf-8", headers=()):
    return Response(status, text.encode(), [("Content-Type", content_type), *headers])


def html_response(text, status=200):
    return text_response(text, status, "text/html; charset=utf-8")


def redirect(location):
    return Response(302, b"", [("Location", location)])


def oauth_error(code, description="", status=400):
    return json_response({"error": code, "error_description": description}, status)


def consent_page(question, action, fields):
    """Returns a page with one form like a provider's: hidden inputs and two buttons."""
    hidden = "".join(
        f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">\n' for name, value in fields
    )
    return html_response(
        f"<!doctype html><html><head><title>Consent</title></head><body><p>{html.escape(question)}</p>\n"
        f'<form method="post" action="{html.escape(action)}">\n{hidden}'
        '<button type="submit" name="decision" value="deny">No</button>\n'
        '<button type="submit" name="decision" value="approve">Yes</button>\n'
        "</form></body></html>"
    )


def with_query(url, fields):
    """Adds `fields` to the query of `url`."""
    return url + ("&" if "?" in url else "?") + urllib.parse.urlencode(fields)


class Service:
    """Runs from `with` to the end of the block. A subclass fills `routes` with (method, path) -> handler."""

    def __init__(self, tls=None):
        self.routes = {}
        self.counts = collections.Counter()
        self.exchanges = []
        self.secrets = set()
        self.faults = []
        self.lock = threading.RLock()
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                service._answer(self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = answer

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = self._broken
        self.port = self._server.server_address[1]
        self.base = f"http://127.0.0.1:{self.port}"
        if tls is not None:
            # The connection's own thread does the handshake, because a failing one must not block the others.
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False)
            self.base = f"https://127.0.0.1:{self.port}"

    def __enter__(self):
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self._place.close()

    def stop(self):
        """Stops answering. No other server gets the port until the end of the block."""
        if self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._thread = None
            self._place = socket.socket()
            self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._place.bind(("127.0.0.1", self.port))

    def _broken(self, *_):
        """Ignores a client that dies in the middle of a request."""
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, ssl.SSLError)):
            self.faults.append(error)

    def secret(self, prefix="", length=30):
        """Returns a new random value that may appear only in the vault and in the answers that contain it."""
        value = prefix + randomness.token_hex(length // 2)
        self.secrets.add(value)
        return value

    def requests(self, path, method=None):
        """Returns the requests for `path`, oldest first."""
        with self.lock:
            return [
                request
                for request, _ in self.exchanges
                if request.path == path and method in (None, request.method)
            ]

    def _answer(self, handler):
        if int(handler.headers.get("Content-Length") or 0) > MAXIMUM_BODY:
            handler.send_error(413)
            return
        body = self._body(handler)
        request = Request(handler.command, handler.path, handler.headers, body, self.base, time.monotonic())
        try:
            response = self.handle(request)
        except Refusal as refusal:
            response = refusal.response
        except Exception as error:  # a broken judge must fail the test, and must not look like a provider's refusal
            self.faults.append(error)
            response = text_response("the judge's server failed", 500)
        with self.lock:
            self.exchanges.append((request, response))
        handler.send_response(response.status)
        for name, value in response.headers:
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(response.body)))
        handler.end_headers()
        if handler.command != "HEAD":
            try:
                handler.wfile.write(response.body)
            except (BrokenPipeError, ConnectionResetError):
                return  # a client may stop reading a body that is too long
        self.counts[f"answered:{request.path}"] += 1

    @staticmethod
    def _body(handler):
        if (handler.headers.get("Transfer-Encoding") or "").lower() != "chunked":
            return handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        body = b""
        while size := int(handler.rfile.readline().split(b";")[0], 16):
            body += handler.rfile.read(size)
            handler.rfile.readline()
        handler.rfile.readline()
        return body

    def handle(self, request):
        route = self.routes.get((request.method, request.path))
        if route is None:
            known = any(path == request.path for _, path in self.routes)
            return text_response("no such page", 405 if known else 404)
        return route(request)
