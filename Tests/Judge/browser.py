#!/usr/bin/env python3
"""A browser that runs by itself: opens an address, approves the consent page, and follows redirects to the end.

    browser.py URL [NAME=VALUE]…

NAME=VALUE fills in the input of that name, as a user enters a device code. `script/demo` and the tests use it as
$BROWSER. It acts like a user's browser: it keeps cookies, submits a page's first form with the approving button,
follows redirects, and does not send fragments. At the address that a fragment is meant for, it does what the relay
page's script does: posts the fragment as a form. At a redirect that loopback cannot serve (https, an app's scheme) it
stops and prints the address, which a user would copy from the address bar.
"""

import html.parser
import http.client
import http.cookies
import os
import re
import ssl
import sys
import urllib.parse

MAXIMUM_STEPS = 20
# For anything that is immediate on an idle machine: a busy one may be ten times slower.
TIMEOUT = 300


class Form(html.parser.HTMLParser):
    """The first form of a page: its method and action, its inputs, and the approving button."""

    def __init__(self, page):
        super().__init__()
        self.found = self.open = False
        self.method, self.action = "get", ""
        self.inputs, self.buttons = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        values = {name: value or "" for name, value in attributes}
        kind = values.get("type", "").lower()
        if tag == "form" and not self.found:
            self.found = self.open = True
            self.method, self.action = values.get("method", "get").lower(), values.get("action", "")
        elif not self.open:
            return
        elif tag == "button" or (tag == "input" and kind == "submit"):
            self.buttons.append((values.get("name", ""), values.get("value", "")))
        elif tag == "input" and "name" in values and (kind not in ("checkbox", "radio") or "checked" in values):
            self.inputs.append((values["name"], values.get("value", "")))

    def handle_endtag(self, tag):
        if tag == "form":
            self.open = False

    def fields(self, typed, decision):
        """Returns the fields to send: the inputs, some of them changed, and the pressed button."""
        approving = [b for b in self.buttons if b[1].lower() in ("approve", "yes", "allow", "accept")]
        name, value = (approving or [b for b in self.buttons if b[0]] or [("", "")])[0]
        pressed = [(name, decision or value)] if name else []
        return [(name, typed.get(name, value)) for name, value in self.inputs] + pressed


class Browser:
    def __init__(self, decision=None, typed=(), follows_loopback=True, authorities=None):
        """Presses `decision` instead of the approving button, for a user who declines.

        A browser on another machine does not follow to this machine's loopback addresses. `authorities` is the file of
        trusted authorities; the default is $SSL_CERT_FILE.
        """
        self.authorities = authorities
        self.follows_loopback = follows_loopback
        self.decision = decision
        self.typed = dict(typed)
        self.cookies = {}
        self.visited = []

    def open(self, url):
        """Follows from `url` to the end; returns (status, text, final address)."""
        method, body = "GET", None
        submitted = False
        home = urllib.parse.urlsplit(url).netloc
        for _ in range(MAXIMUM_STEPS):
            parts = urllib.parse.urlsplit(url)
            self.visited.append(url)
            if parts.scheme not in ("http", "https") or parts.hostname not in ("127.0.0.1", "::1", "localhost"):
                return 0, "", url
            if not self.follows_loopback and parts.netloc != home:
                return 0, "", url
            status, headers, text = self.exchange(parts, method, body)
            if status in (301, 302, 303, 307, 308) and "location" in headers:
                target = urllib.parse.urljoin(url, headers["location"])
                if parts.fragment and "#" not in target:
                    target += "#" + parts.fragment  # RFC 9110 section 10.2.2
                url = target
                if status in (301, 302, 303):
                    method, body = "GET", None
                continue
            form = Form(text) if headers.get("content-type", "").startswith("text/html") else None
            if not (form and form.found and form.method == "post" and not submitted):
                # A page with a form uses its fragment itself and has no relay script (WeChat's #wechat_redirect).
                return self.relay(parts, text) if parts.fragment and method == "GET" else (status, text, url)
            submitted = True
            url = urllib.parse.urljoin(url, form.action)
            method, body = "POST", urllib.parse.urlencode(form.fields(self.typed, self.decision))
        return 0, "too many redirects", url

    def relay(self, parts, page):
        """Does what the relay page's script does with the fragment, which only a browser knows."""
        own = {"Origin": f"{parts.scheme}://{parts.netloc}", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors",
               "Sec-Fetch-Dest": "empty"}
        if value := re.search(r'<main [^>]*data-relay="([^"]*)"', page):
            own["X-Relay"] = value.group(1)
        status, _, text = self.exchange(parts, "POST", parts.fragment, own)
        return status, text, parts._replace(fragment="").geturl()

    def exchange(self, parts, method, body, fields=None):
        headers = {"Accept": "text/html,*/*", "User-Agent": "Mozilla/5.0 (scripted)",
                   **(fields or {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        if parts.scheme == "https":
            trust = ssl.create_default_context(cafile=self.authorities or os.environ.get("SSL_CERT_FILE"))
            connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=TIMEOUT, context=trust)
        else:
            connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=TIMEOUT)
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
        finally:
            connection.close()
        for line in response.headers.get_all("Set-Cookie") or []:
            for name, morsel in http.cookies.SimpleCookie(line).items():
                self.cookies[name] = morsel.value
        return response.status, {name.lower(): value for name, value in response.headers.items()}, text


def main():
    if len(sys.argv) < 2 or not all("=" in argument for argument in sys.argv[2:]):
        sys.exit("usage: browser.py URL [NAME=VALUE]…")
    typed = [argument.split("=", 1) for argument in sys.argv[2:]]
    try:
        status, text, final = Browser(typed=typed).open(sys.argv[1])
    except OSError as error:
        sys.exit(f"browser.py: {error}")
    if status == 0:
        print(final)
    elif status >= 400:
        sys.exit(f"browser.py: {final.split('?')[0]} answered {status}: {text.strip()[:200]}")


if __name__ == "__main__":
    main()
