"""A protected MCP server of the `mcp` package, with the authorization server of the same package: its routes, metadata,
registration, PKCE, and check of tokens. This file adds only a store, and a user who always consents.

    mcp_server.py CERTIFICATE KEY

Prints its origin and serves until its standard input ends. $PYTHONPATH may have an earlier release of the package.
"""

import asyncio
import json
import secrets
import socket
import sys
import time

import pydantic._internal._typing_extra
import uvicorn

# The release 1.9 of `mcp` imports this name, and does not use it here.
pydantic._internal._typing_extra.eval_type_backport = None

from mcp.server.auth.provider import (
    AccessToken, AuthorizationCode, OAuthAuthorizationServerProvider, RefreshToken, construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthToken

try:
    from mcp.server.mcpserver import MCPServer
except ImportError:  # a release before 2.0
    from mcp.server.fastmcp import FastMCP as MCPServer

SCOPES = ["files:read", "files:write"]
# Servers of the revision 2025-03-26 publish no metadata of the resource.
DESCRIBES_RESOURCE = "resource_server_url" in AuthSettings.model_fields
CHECKS_RESOURCE = "validate_token_resource" in AuthSettings.model_fields
HTTP = {"json_response": True, "stateless_http": True}


class Store(OAuthAuthorizationServerProvider):
    def __init__(self):
        self.clients, self.codes, self.tokens, self.refreshable, self.seen = {}, {}, {}, {}, []

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info
        self.seen.append({"registered": json.loads(client_info.model_dump_json(exclude={"client_secret"}))})

    async def authorize(self, client, params):
        code = secrets.token_urlsafe(32)
        self.codes[code] = AuthorizationCode(
            code=code, client_id=client.client_id, redirect_uri=params.redirect_uri,
            scopes=params.scopes or (client.scope or "").split(),
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=getattr(params, "resource", None), expires_at=time.time() + 60, code_challenge=params.code_challenge)
        self.seen.append({"authorize": getattr(params, "resource", None), "scopes": params.scopes})
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    def issue(self, client, scopes, resource):
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self.tokens[access] = AccessToken(
            token=access, client_id=client.client_id, scopes=scopes, expires_at=int(time.time()) + 3600, resource=resource)
        self.refreshable[refresh] = RefreshToken(
            token=refresh, client_id=client.client_id, scopes=scopes, resource=resource)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600, scope=" ".join(scopes))

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.issue(client, authorization_code.scopes, getattr(authorization_code, "resource", None))

    async def load_refresh_token(self, client, refresh_token):
        return self.refreshable.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        del self.refreshable[refresh_token.token]
        return self.issue(client, scopes, getattr(refresh_token, "resource", None))

    async def load_access_token(self, token):
        return self.tokens.get(token)

    async def revoke_token(self, token):
        self.tokens.pop(token.token, None)
        self.refreshable.pop(token.token, None)


async def main():
    certificate, key = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", 0))
    origin = f"https://127.0.0.1:{listener.getsockname()[1]}"
    store = Store()
    settings = {
        **({"resource_server_url": origin + "/mcp"} if DESCRIBES_RESOURCE else {}),
        **({"validate_token_resource": True} if CHECKS_RESOURCE else {})}
    is_current = MCPServer.__name__ == "MCPServer"
    server = MCPServer("judge", auth_server_provider=store, **({} if is_current else HTTP), auth=AuthSettings(
        issuer_url=origin, required_scopes=SCOPES[:1], **settings,
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES, default_scopes=SCOPES[:1]),
        revocation_options=RevocationOptions(enabled=True)))

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    app = server.streamable_http_app(**(HTTP if is_current else {}))
    serving = uvicorn.Server(uvicorn.Config(
        app, log_level="error", ssl_certfile=certificate, ssl_keyfile=key, lifespan="on"))
    running = asyncio.create_task(serving.serve(sockets=[listener]))
    print(origin, flush=True)
    # The judge ends its input, and then reads what the server saw.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    serving.should_exit = True
    await running
    print(json.dumps(store.seen), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
