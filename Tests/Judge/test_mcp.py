"""MCP servers of the `mcp` package, with its authorization server, over TLS: from the address to a call of a tool.

Tests/Judge/prepare installs one release for each earlier revision of the protocol.
"""

import json
import os
import subprocess
import sys

from program import ADA, HERE, TIMEOUT, ProgramTest
from tls import Authority


CLIENT = {"name": "judge", "version": "1"}


class MCPServer:
    """The server in a process of its own. `seen` lists what it saw, after it ended."""

    def __init__(self, authority, release=None):
        authority.context()
        folder = os.path.dirname(authority.certificate)
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "mcp_server.py"), os.path.join(folder, "server.pem"),
             os.path.join(folder, "server.key")],
            env={**os.environ, **({"PYTHONPATH": os.path.join(sys.prefix, "mcp-" + release)} if release else {})},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.origin = self.process.stdout.readline().strip()
        self.address = self.origin + "/mcp"

    def end(self):
        out, _ = self.process.communicate(timeout=TIMEOUT)
        return json.loads(out)


class MCP(ProgramTest):
    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder)
        self.environment["SSL_CERT_FILE"] = self.authority.certificate

    def server(self, release=None):
        server = MCPServer(self.authority, release)
        self.addCleanup(lambda: (server.process.kill(), server.process.wait()) if server.process.poll() is None else None)
        return server

    def call(self, server, revision, method, **arguments):
        """Calls a method of the server with the account's token, as an MCP client of this revision does."""
        fields = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if method != "initialize":
            fields["MCP-Protocol-Version"] = revision
        if revision == "2026-07-28":
            fields["Mcp-Method"] = method
            if "name" in arguments:
                fields["Mcp-Name"] = arguments["name"]
            arguments["_meta"] = {"io.modelcontextprotocol/protocolVersion": revision,
                                  "io.modelcontextprotocol/clientCapabilities": {},
                                  "io.modelcontextprotocol/clientInfo": CLIENT}
        headers = [part for field in fields.items() for part in ("--header", ": ".join(field))]
        question = {"jsonrpc": "2.0", "id": 1, "method": method, "params": arguments}
        answer = self.credmgr("request", "sdk", server.address, *headers, "--data", json.dumps(question)).out
        return json.loads(answer)["result"]

    def from_the_address_to_a_tool(self, server, revision, slash=""):
        self.credmgr("add-provider", server.address, "--as", "sdk", "--yes")
        server.address += slash
        self.credmgr("login", "sdk", "--account", ADA, "--timeout", "1m")
        if revision == "2026-07-28":
            self.assertIn(revision, self.call(server, revision, "server/discover")["supportedVersions"])
        else:
            answer = self.call(
                server, revision, "initialize", protocolVersion=revision, capabilities={}, clientInfo=CLIENT)
            self.assertEqual((answer["protocolVersion"], answer["serverInfo"]["name"]), (revision, "judge"))
        answer = self.call(server, revision, "tools/call", name="add", arguments={"a": 2, "b": 3})
        self.assertEqual(answer["content"][0]["text"], "5")
        old = self.credmgr("token", "sdk").line
        self.assertNotEqual(self.credmgr("token", "sdk", "--refresh").line, old)
        # The package accepts the refreshed token only if the refresh kept its resource.
        self.call(server, revision, "tools/list")
        header = self.credmgr("header", "sdk", "--url", server.address).line
        self.assertEqual(header, "Authorization: Bearer " + self.credmgr("token", "sdk").line)
        self.credmgr("logout", "sdk")
        seen = server.end()
        self.assertRegex(seen[0]["registered"]["redirect_uris"][0], "^http://127.0.0.1:6[0-9]{4}/callback/sdk$")
        self.assertEqual(set(seen[0]["registered"]["grant_types"]), {"authorization_code", "refresh_token"})
        return seen[1]

    def test_todays_server(self):
        authorized = self.from_the_address_to_a_tool(server := self.server(), "2026-07-28")
        self.assertEqual((authorized["authorize"], authorized["scopes"]), (server.address, ["files:read"]))

    def test_2025_11_25(self):
        authorized = self.from_the_address_to_a_tool(server := self.server("1.30.0"), "2025-11-25")
        self.assertEqual((authorized["authorize"], authorized["scopes"]), (server.address, ["files:read"]))

    def test_2025_06_18(self):
        authorized = self.from_the_address_to_a_tool(server := self.server("1.22.0"), "2025-06-18")
        self.assertEqual((authorized["authorize"], authorized["scopes"]), (server.address, ["files:read"]))

    def test_2025_03_26(self):
        # The server has no metadata of the resource, and redirects from the address without the slash.
        authorized = self.from_the_address_to_a_tool(self.server("1.9.4"), "2025-03-26", slash="/")
        self.assertEqual(authorized["authorize"], None)
