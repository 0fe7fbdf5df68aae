"""Other programs that use tokens: the lines of the README and of docs/recipes.md, long bodies, and `exec`."""

import base64
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import unittest

import oauth2_server
from oauth2_server import OAuth2Server
from program import ADA, BINARY, TIMEOUT, UNREACHABLE, ProgramTest, text_of
from service import Service, json_response
from tls import Authority

CURL = shutil.which("curl")


class API(Service):
    """Answers everything with a list of one repository, and records requests in `exchanges`."""

    def handle(self, request):
        return json_response([{"full_name": "ada/notes"}])


class Documentation(ProgramTest):
    """Runs the documented commands with real programs; only the host names lead to this machine."""

    def setUp(self):
        super().setUp()
        authority = Authority(self.folder)
        names = ("api.github.com", "git.example.org", "npm.example.org", "pypi.example.org")
        self.api = self.enterContext(API(authority.context(names)))
        self.environment.update({
            "CURL_HOME": self.folder, "SSL_CERT_FILE": authority.certificate, "TMPDIR": self.folder,
            "PIP_CONFIG_FILE": "/dev/null", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_CERT": authority.certificate})
        self.file(".curlrc", f"cacert = {authority.certificate}\nsilent\n" + "".join(
            f"connect-to = {name}:443:127.0.0.1:{self.api.port}\n" for name in names))
        for provider, style in (("github", "token"), ("forge", "Bearer")):
            self.credmgr("add-provider", "-", "--client-id", "client", stdin=(
                f"provider: {provider}\ngrant: authorization_code\nheader_style: {style}\n"
                "extra_headers: { Accept: application/json }\n"
                f"endpoints: {{ authorization: 'https://{provider}.example/a', token: 'https://{provider}.example/t' }}\n"
                "hosts: [api.github.com, git.example.org]\n"))
            self.credmgr("login", provider, "--account", ADA, "--with-token", stdin=f"the-token-of-{provider}\n")

    def bash(self, script, **environment):
        done = self.run_program("-c", script, binary="/bin/bash", environment=environment)
        self.assertEqual(done.status, 0, done.out + done.err)
        return done.out

    def last(self):
        request, _ = self.api.exchanges[-1]
        return request

    @unittest.skipUnless(CURL, "there is no curl here")
    def test_the_line_of_the_readme(self):
        line = re.search(r"(?m)^\$ (curl -H @<\(credmgr header github\) \S+)$", text_of("README.md")).group(1)
        self.assertEqual(line, "curl -H @<(credmgr header github) https://api.github.com/user/repos")
        self.assertIn("ada/notes", self.bash(line))
        self.assertEqual(self.last().headers["Authorization"], "token the-token-of-github")
        self.assertEqual(self.last().headers["Accept"], "application/json")
        self.assertEqual(self.last().path, "/user/repos")

    def recipes(self):
        return {re.search(r"(?m)^# (.*)$", block).group(1): block
                for block in re.findall(r"(?s)```sh\n(.*?)```", text_of("docs/recipes.md"))}

    def test_every_recipe_has_a_test(self):
        self.assertGreater(len(self.recipes()), 4)
        tested = {re.sub(r"\W+", "_", name) for name in self.recipes()}
        there = {name.removeprefix("test_recipe_") for name in dir(self) if name.startswith("test_recipe_")}
        self.assertEqual(tested, there)

    def recipe(self, name, **environment):
        return self.bash(self.recipes()[name], **environment)

    @unittest.skipUnless(CURL, "there is no curl here")
    def test_recipe_curl(self):
        self.assertIn("ada/notes", self.recipe("curl"))
        self.assertEqual({request.headers["Authorization"] for request, _ in self.api.exchanges},
                         {"token the-token-of-github"})
        self.assertEqual(len(self.api.exchanges), 2)

    def test_recipe_pip(self):
        pip = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "pip")
        script = self.recipes()["pip"].replace("pypi.example.org", f"127.0.0.1:{self.api.port}")
        script = script.replace("pip install", f"{pip} install --no-input")
        # The package does not exist: only the request to the index matters.
        self.run_program("-c", script, binary="/bin/bash")
        self.assertEqual(self.last().path, "/simple/notes/")
        self.assertEqual(base64.b64decode(self.last().headers["Authorization"].split()[1]).decode(),
                         "oauth2:the-token-of-forge")

    def test_recipe_npm(self):
        # npm itself expands ${…}: the file must not contain the token, but the environment must.
        out = self.bash(self.recipes()["npm"].replace("npm ci", "sh -c 'cat .npmrc; echo $FORGE_TOKEN'"))
        self.assertIn("_authToken=${FORGE_TOKEN}", out)
        self.assertIn("\nthe-token-of-forge", out)
        self.assertNotIn("the-token", text_of(os.path.join(self.folder, ".npmrc")))

    def test_recipe_a_program_that_reads_a_variable(self):
        # Programs with these names print what they receive.
        for name, variable in (("gh", "GH_TOKEN"), ("make", "DEPLOY_TOKEN")):
            self.file(name, f'#!/bin/sh\necho {name} "$@" "${variable}" "$GITHUB_TOKEN"\n', 0o700)
        self.environment["PATH"] = self.folder + ":" + self.environment["PATH"]
        self.assertEqual(self.recipe("a program that reads a variable").splitlines(), [
            "gh repo list the-token-of-github ", "make deploy the-token-of-forge the-token-of-github"])

    def add_mcp_server(self):
        name = "mcp.example.org-mcp"
        self.credmgr("add-provider", "-", "--client-id", "client", stdin=(
            f"provider: {name}\ngrant: authorization_code\nresource: https://mcp.example.org/mcp\nendpoints: {{ authorization: "
            "'https://id.example.org/a', token: 'https://id.example.org/t' }\nhosts: [mcp.example.org]\n"))
        self.credmgr("login", name, "--account", ADA, "--with-token", stdin="the-token-of-mcp\n")

    @unittest.skipUnless(shutil.which("jq"), "there is no jq here")
    def test_recipe_an_MCP_client(self):
        self.add_mcp_server()
        self.recipe("an MCP client")
        server = json.loads(text_of(os.path.join(self.folder, ".mcp.json")))["mcpServers"]["example"]
        headers = json.loads(self.bash(server["headersHelper"]))
        self.assertEqual(headers, {"Authorization": "Bearer the-token-of-mcp"})
        self.assertIn(server["url"], server["headersHelper"])

    def test_recipe_an_MCP_client_that_reads_a_variable(self):
        self.add_mcp_server()
        self.file("codex", '#!/bin/sh\necho "$MCP_TOKEN"\n', 0o700)
        self.environment["PATH"] = self.folder + ":" + self.environment["PATH"]
        self.assertEqual(self.recipe("an MCP client that reads a variable"), "the-token-of-mcp\n")

    def test_recipe_a_script(self):
        if not CURL:
            self.skipTest("there is no curl here")
        self.recipe("a script")
        self.assertEqual(self.last().headers["Authorization"], "Bearer the-token-of-forge")


class Blob(Service):
    """Receives and sends bodies of any length, and counts them without storing them."""

    def __init__(self, accepts):
        super().__init__()
        self.accepts = accepts
        self.taken = []
        service = self

        def answer(handler):
            left = int(handler.headers.get("Content-Length") or 0)
            digest, count = hashlib.sha256(), left
            while left > 0:
                piece = handler.rfile.read(min(left, 1 << 20))
                digest.update(piece)
                left -= len(piece)
            token = (handler.headers.get("Authorization") or "").removeprefix("Bearer ")
            accepted = service.accepts(token)
            service.taken.append((handler.command, count, digest.hexdigest(), accepted,
                                  handler.headers.get("Content-Type")))
            if not accepted:
                handler.send_response(401)
                handler.send_header("Content-Length", "0")
                handler.end_headers()
                return
            length = int(handler.path.removeprefix("/") or 0)
            handler.send_response(200)
            handler.send_header("Content-Type", "application/x-blob")
            handler.send_header("Content-Length", str(length))
            handler.end_headers()
            # With `cut`, the server sends less than the length it announced.
            while length > 0:
                piece = bytes(min(length, 1 << 20))
                try:
                    handler.wfile.write(piece)
                except ConnectionError:
                    return
                length -= len(piece)
                while service.looked_for and not service.looked_for.wait(0.05):
                    handler.wfile.write(bytes(1))
                    length -= 1
                if service.cut:
                    handler.close_connection = True
                    return

        self.cut = False
        # If set, the server sends single bytes after the first piece until the event happens.
        self.looked_for = None
        self._server.RequestHandlerClass.do_GET = answer
        self._server.RequestHandlerClass.do_PUT = answer
        self._server.RequestHandlerClass.do_POST = answer


class Bodies(ProgramTest):
    LENGTH = 200_000_000
    # How much memory a body may add: libcurl's buffers of some 100 KB, and parts of 64 KB. A complete body in memory
    # would add 200 MB.
    ROOM = 16_000

    def setUp(self):
        super().setUp()
        self.service = self.serve(OAuth2Server())
        self.blob = self.enterContext(Blob(self.service.accepts))
        self.add("oauth2-api", self.service, oauth2_server.PUBLIC_CLIENT, api_port=self.blob.port)
        self.credmgr("login", "oauth2-api", "--account", ADA)
        self.path = os.path.join(self.folder, "body")
        self.digest = hashlib.sha256()
        with open(self.path, "wb") as file:
            for number in range(self.LENGTH // 1_000_000):
                piece = number.to_bytes(4, "big") * 250_000
                self.digest.update(piece)
                file.write(piece)

    def request(self, *arguments, stdin=subprocess.DEVNULL, status=0):
        """Returns the program's maximum memory in kilobytes, and the length of its output."""
        errors = open(os.path.join(self.folder, "errors"), "w+", encoding="utf-8")
        process = subprocess.Popen([BINARY, "request", "oauth2-api", *arguments], stdin=stdin, stdout=subprocess.PIPE,
                                   stderr=errors, env={**self.environment, "TMPDIR": self.folder})
        count = 0
        while piece := process.stdout.read(1 << 20):
            count += len(piece)
        process.stdout.close()
        _, code, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(code)
        errors.seek(0)
        text = errors.read()
        errors.close()
        self.errors.append(text)
        self.assertEqual(process.returncode, status, text)
        return usage.ru_maxrss, count

    def test_long_bodies_are_not_held_in_memory(self):
        url = f"{self.blob.base}/"
        little, _ = self.request(url + "1", "-X", "PUT", "-d", "x")
        up, _ = self.request(url, "-X", "PUT", "-d", "@" + self.path, "-H", "Content-Type: application/x-blob")
        self.assertEqual(self.blob.taken[-1],
                         ("PUT", self.LENGTH, self.digest.hexdigest(), True, "application/x-blob"))
        down, count = self.request(f"{url}{self.LENGTH}")
        self.assertEqual(count, self.LENGTH)
        with open(self.path, "rb") as file:
            redirected, _ = self.request(url, "-X", "PUT", "-d", "@-", stdin=file)
        self.assertEqual(self.blob.taken[-1][1:3], (self.LENGTH, self.digest.hexdigest()))
        cat = subprocess.Popen(["cat", self.path], stdout=subprocess.PIPE)
        piped, _ = self.request(url, "-d", "@-", stdin=cat.stdout)
        cat.stdout.close()
        cat.wait()
        self.assertEqual(self.blob.taken[-1][:3], ("POST", self.LENGTH, self.digest.hexdigest()))
        for what, kilobytes in (("up", up), ("down", down), ("redirected", redirected), ("piped", piped)):
            self.assertLess(kilobytes - little, self.ROOM, what)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("credmgr")], [])

    def test_a_refused_body_is_sent_again(self):
        self.service.kill_access()
        cat = subprocess.Popen(["cat", self.path], stdout=subprocess.PIPE)
        self.request(f"{self.blob.base}/", "-d", "@-", stdin=cat.stdout)
        cat.stdout.close()
        cat.wait()
        self.assertEqual([(count, digest, good) for _, count, digest, good, _ in self.blob.taken],
                         [(self.LENGTH, self.digest.hexdigest(), good) for good in (False, True)])
        self.assertEqual(self.service.counts["granted:refresh_token"], 1)

    def test_an_answer_that_is_cut_off_is_an_error(self):
        self.blob.cut = True
        _, count = self.request(f"{self.blob.base}/5000000", status=UNREACHABLE)
        self.assertLess(count, 5_000_000)


    def test_progress_is_shown_at_a_terminal(self):
        """The progress appears on a terminal's standard error after a second, and disappears at the end."""
        self.blob.looked_for = threading.Event()
        terminal, inner = os.openpty()
        process = subprocess.Popen([BINARY, "request", "oauth2-api", f"{self.blob.base}/4000000"], stderr=inner,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=self.environment)
        os.close(inner)
        shown = b""
        try:
            while piece := os.read(terminal, 1 << 12):
                shown += piece
                if b"received" in shown:
                    self.blob.looked_for.set()
        except OSError:  # the other side closed the connection
            pass
        os.close(terminal)
        self.assertEqual(process.wait(TIMEOUT), 0)
        self.assertRegex(shown.decode(), r"\rcredmgr: received \d\.\d MB of 4\.0 MB \(\d+ %\)\x1b\[K")
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown)
        _, count = self.request(f"{self.blob.base}/4000000")
        self.assertEqual((self.errors[-1], count), ("", 4_000_000), "nobody looks")


class Exec(ProgramTest):
    """The command replaces credmgr: it has its process, its signals and its status."""

    def setUp(self):
        super().setUp()
        self.credmgr("add-provider", "-", "--client-id", "client", stdin=(
            "provider: notes\ngrant: authorization_code\n"
            "endpoints: { authorization: 'https://notes.example/a', token: 'https://notes.example/t' }\n"))
        self.credmgr("login", "notes", "--account", ADA, "--with-token", stdin="the-token\n")

    def test_the_same_process(self):
        process = subprocess.Popen([BINARY, "exec", "notes", "--", "sh", "-c", "echo $$; echo $NOTES_TOKEN; read line"],
                                   env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(int(process.stdout.readline()), process.pid)
        self.assertEqual(process.stdout.readline(), "the-token\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIMEOUT), -signal.SIGTERM)
        process.stdin.close()
        process.stdout.close()

    def test_the_environment_changes_only_by_the_token(self):
        environment = {**self.environment, "ODD": "a=b\nc", "EMPTY": ""}
        def seen(*prefix):
            out = subprocess.run([*prefix, "env", "-0"], env=environment, capture_output=True, check=True).stdout
            return sorted(out.split(b"\0"))
        self.assertEqual(seen(BINARY, "exec", "notes", "--"), sorted([*seen(), b"NOTES_TOKEN=the-token"]))

    def test_the_token_is_in_no_argument(self):
        process = subprocess.Popen([BINARY, "exec", "notes", "--", "sh", "-c", "echo; read line"],
                                   env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdout.readline()
        with open(f"/proc/{process.pid}/cmdline", "rb") as file:
            self.assertNotIn(b"the-token", file.read())
        process.communicate(b"\n")

    def test_files_and_limits(self):
        script = "ls -l /proc/self/fd | wc -l; ulimit -c; umask; pwd"
        def seen(*prefix):
            return subprocess.run([*prefix, "sh", "-c", script], env=self.environment, cwd=self.folder,
                                  capture_output=True, check=True).stdout
        self.assertEqual(seen(BINARY, "exec", "notes", "--"), seen())

    def test_statuses(self):
        for command, status in ((["true"], 0), (["false"], 1), (["sh", "-c", "exit 77"], 77), (["no-such-command"], 127),
                                (["/dev/null"], 126)):
            def run(*prefix):
                return subprocess.run([*prefix, *command], env=self.environment, capture_output=True).returncode
            self.assertEqual((run(BINARY, "exec", "notes", "--"), run("env")), (status, status), command)
