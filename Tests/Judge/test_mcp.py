"""MCP servers of the `mcp` package, with its authorization server, over TLS: from the address to a call of a tool."""

import json
import os
import subprocess
import sys

from program import ADA, HERE, TIMEOUT, ProgramTest
from tls import Authority


class MCPServer:
    """The server in a process of its own. `seen` lists what it saw, after it ended."""

    def __init__(self, authority, *options):
        authority.context()
        folder = os.path.dirname(authority.certificate)
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "mcp_server.py"), os.path.join(folder, "server.pem"),
             os.path.join(folder, "server.key"), *options],
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

    def server(self, *options):
        server = MCPServer(self.authority, *options)
        self.addCleanup(lambda: (server.process.kill(), server.process.wait()) if server.process.poll() is None else None)
        return server

    def call(self, server, name, arguments, **options):
        """Calls a method of the server with the account's token, as an MCP client does."""
        question = {"jsonrpc": "2.0", "id": 1, "method": name, "params": arguments}
        return self.credmgr(
            "request", "sdk", server.address, "--header", "Content-Type: application/json",
            "--header", "Accept: application/json, text/event-stream", "--data", json.dumps(question), **options)

    def from_the_address_to_a_tool(self, server):
        self.credmgr("add-provider", server.address, "--as", "sdk", "--yes")
        self.credmgr("login", "sdk", "--account", ADA, "--timeout", "1m")
        answer = json.loads(self.call(server, "initialize", {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "judge", "version": "1"}}).out)
        self.assertEqual(answer["result"]["serverInfo"]["name"], "judge")
        answer = json.loads(self.call(server, "tools/call", {"name": "add", "arguments": {"a": 2, "b": 3}}).out)
        self.assertEqual(answer["result"]["content"][0]["text"], "5")
        old = self.credmgr("token", "sdk").line
        self.assertNotEqual(self.credmgr("token", "sdk", "--refresh").line, old)
        # The package accepts the refreshed token only if the refresh kept its resource.
        self.call(server, "tools/list", {})
        self.credmgr("logout", "sdk")
        return server.end()

    def test_todays_server(self):
        seen = self.from_the_address_to_a_tool(server := self.server())
        registered, authorized = seen[0]["registered"], seen[1]
        self.assertRegex(registered["redirect_uris"][0], "^http://127.0.0.1:6[0-9]{4}/callback/sdk$")
        self.assertEqual(set(registered["grant_types"]), {"authorization_code", "refresh_token"})
        self.assertEqual((authorized["authorize"], authorized["scopes"]), (server.address, ["files:read"]))

    def test_a_server_without_metadata_of_the_resource(self):
        seen = self.from_the_address_to_a_tool(self.server("--early"))
        self.assertEqual(seen[1]["authorize"], None)
