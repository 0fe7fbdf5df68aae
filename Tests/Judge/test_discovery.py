"""Providers added by their issuer's address, registered clients, and metadata that credmgr must not trust."""

import json
import os
import re
import tempfile
import threading
import urllib.parse

import yaml
from joserfc.jwk import ECKey

from browser import Browser
from discovery_server import DiscoveryServer, DocumentServer, OpenIDServer, ResourceServer
from program import ADA, LOGIN_NEEDED, REFUSED, TIMEOUT, UNREACHABLE, USAGE, ProgramTest, text_of
from service import Response, Service, json_response, text_response
from tls import Authority


class DiscoveryTest(ProgramTest):
    def descriptor(self, name):
        """Returns the stored descriptor as another YAML parser reads it."""
        path = os.path.join(self.environment["CREDMGR_HOME"], "config/providers", name + ".yaml")
        with open(path, encoding="utf-8") as file:
            return yaml.safe_load(file)

    def assert_nothing_kept(self):
        folder = os.path.join(self.environment["CREDMGR_HOME"], "config/providers")
        self.assertEqual(os.listdir(folder) if os.path.isdir(folder) else [], [])

    def at_terminal(self, answer, *arguments):
        """Answers the program's prompt; returns the exit status and the terminal's output."""
        with tempfile.TemporaryFile() as output:
            person = self.terminal(*arguments, stdout=output, columns=0)
            person.wait_for(r"\[y/N\]")
            person.type(answer + "\n")
            status = person.end()
            self.assertEqual(output.tell(), 0)
            return status, person.seen


class Discovery(DiscoveryTest):
    def test_from_an_issuer_address_to_the_logout(self):
        service = self.serve(DiscoveryServer())
        service.routes[("GET", "/userinfo")] = lambda request: self.userinfo(service, request)
        outcome = self.credmgr("add-provider", service.issuer, "--as", "found", "--yes")
        self.assertEqual(outcome.out, "")
        self.assertIn(f"{service.base}/token", outcome.err)
        self.assertEqual(service.counts["registered"], 1)
        sent = json.loads(service.requests("/register")[0].body)
        self.assertEqual(sent["redirect_uris"], ["http://127.0.0.1/callback/found"])
        self.assertEqual(sent["token_endpoint_auth_method"], "client_secret_basic")
        kept = self.descriptor("found")
        self.assertEqual(kept["issuer"], service.issuer)
        self.assertEqual(kept["iss"], "required")
        self.assertEqual(kept["endpoints"]["token"], service.base + "/token")
        self.credmgr("check", os.path.join(self.environment["CREDMGR_HOME"], "config/providers/found.yaml"))

        self.credmgr("login", "found", "--scope", "read", "--scope", "offline")
        self.assertIn("ada@example.org", self.credmgr("status", "found").out)
        token = self.credmgr("token", "found").line
        self.assertTrue(service.accepts(token))
        fresh = self.credmgr("token", "found", "--refresh").line
        self.assertNotEqual(fresh, token)
        self.credmgr("validate", "found")
        self.credmgr("logout", "found")
        self.assertFalse(service.accepts(fresh))

    @staticmethod
    def userinfo(service, request):
        token = (request.headers.get("Authorization") or "").removeprefix("Bearer ")
        if not service.accepts(token):
            return json_response({"error": "invalid_token"}, 401)
        return json_response({"sub": "1", "email": "ada@example.org"})

    def test_a_registered_client_logs_in_a_device_and_itself(self):
        service = self.serve(DiscoveryServer())
        service.routes[("GET", "/userinfo")] = lambda request: self.userinfo(service, request)
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes")
        self.credmgr("login", "found", "--grant", "client_credentials", "--scope", "read", "--account", "robot")
        self.assertTrue(service.accepts(self.credmgr("token", "found", "--account", "robot").line))
        running = self.start("login", "found", "--grant", "device_code", "--scope", "read", "--no-browser", "--account", ADA)
        address = running.wait_for(r"(http://\S+/activate\?\S+)").group(1)
        Browser().open(address)
        self.assertEqual(running.end().status, 0)

    def test_the_server_chooses_the_authentication_method(self):
        for method in ("client_secret_post", "none"):
            with self.subTest(method):
                self.new_home()
                service = self.serve(DiscoveryServer(answers_with=method))
                self.credmgr("add-provider", service.issuer, "--as", "found", "--yes")
                self.credmgr("login", "found", "--account", ADA, "--scope", "read")
                self.assertTrue(service.accepts(self.credmgr("token", "found").line))

    def test_a_server_with_only_public_clients(self):
        service = self.serve(DiscoveryServer(methods=["none"]))
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes")
        self.assertEqual(json.loads(service.requests("/register")[0].body)["token_endpoint_auth_method"], "none")
        self.credmgr("login", "found", "--account", ADA, "--scope", "read")

    def test_a_registration_that_needs_a_token(self):
        service = self.serve(DiscoveryServer(initial_access_token="initial-token-of-the-judge"))
        refused = self.credmgr("add-provider", service.issuer, "--as", "found", "--yes", status=REFUSED)
        self.assertIn("registration", refused.err)
        self.assert_nothing_kept()
        # From a file, and from standard input, which one program passes to the other.
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes", "--initial-access-token-file", "-",
                     stdin=service.initial_access_token + "\n")
        text = text_of(os.path.join(self.environment["CREDMGR_HOME"], "config/providers/found.yaml"))
        self.new_home()
        path = self.file("initial", service.initial_access_token + "\n")
        self.credmgr("add-provider", self.file("found.yaml", text), "--initial-access-token-file", path)
        self.new_home()
        self.credmgr("add-provider", "-", "--initial-access-token-file", path, stdin=text)
        self.assertEqual(service.counts["registered"], 4)

    def secret_of_ones_own(self, service):
        """Returns a descriptor with a secret variable, whose client must be registered."""
        return self.file("own.yaml", f"""
provider: own
grant: [client_credentials, authorization_code]
variables: {{ key: {{ secret: true, help: of the API }} }}
endpoints:
  registration: {service.base}/register
  authorization: {service.base}/authorize
  client_credentials: {{ parameters: {{ api_key: "{{key}}" }} }}
  token: {service.base}/token
hosts: [{service.base.removeprefix("http://")}]
""")

    def test_a_secret_on_standard_input_goes_from_one_program_to_the_other(self):
        service = self.serve(DiscoveryServer())
        self.credmgr("add-provider", self.secret_of_ones_own(service), "--set", "key=@-", stdin="key-of-the-judge\n")
        self.assertEqual(service.counts["registered"], 1)
        self.credmgr("login", "own", "--scope", "read", "--account", "robot", "--set", "key=@-", stdin="its-own\n")
        self.credmgr("login", "own", "--scope", "read", "--account", "other")
        sent = [urllib.parse.parse_qs(request.body.decode())["api_key"] for request in service.requests("/token")]
        self.assertEqual(sent, [["its-own"], ["key-of-the-judge"]])

    def test_a_secret_is_asked_for_at_a_terminal_once_and_without_echo(self):
        service = self.serve(DiscoveryServer())
        terminal = self.terminal("add-provider", self.secret_of_ones_own(service))
        terminal.wait_for(r"key \(of the API\): ")
        terminal.type("key-of-the-judge\n")
        self.assertEqual(terminal.end(), 0, terminal.seen)
        self.assertEqual(terminal.seen.count("of the API"), 1, terminal.seen)
        self.assertNotIn("key-of-the-judge", terminal.seen)
        self.credmgr("login", "own", "--scope", "read", "--account", "robot")
        sent = urllib.parse.parse_qs(service.requests("/token")[0].body.decode())
        self.assertEqual(sent["api_key"], ["key-of-the-judge"])

    def test_a_given_client_id_prevents_registration(self):
        service = self.serve(DiscoveryServer())
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes", "--client-id", "judge-public")
        self.assertEqual(service.counts["registered"], 0)
        self.credmgr("login", "found", "--account", ADA, "--scope", "read")

    def test_an_issuer_that_leaves_its_name_out_is_refused(self):
        def lie(metadata):
            metadata["authorization_response_iss_parameter_supported"] = True

        service = self.serve(DiscoveryServer(names_issuer=False, change=lie))
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes")
        outcome = self.credmgr("login", "found", "--account", ADA, "--scope", "read", status=REFUSED)
        self.assertIn(service.issuer, outcome.err)

    def test_places(self):
        for prefix, place in (
            ("", "/.well-known/oauth-authorization-server"),
            ("/realms/x", "/realms/x/.well-known/openid-configuration"),
            ("/realms/x", "/.well-known/oauth-authorization-server/realms/x"),
            ("/realms/x", "/.well-known/openid-configuration/realms/x"),
        ):
            with self.subTest(place):
                self.new_home()
                service = self.serve(DiscoveryServer(prefix=prefix, place=place))
                self.credmgr("add-provider", service.issuer, "--as", "found", "--yes")
                self.assertEqual(self.descriptor("found")["issuer"], service.issuer)
                # The address of the metadata works as well.
                self.new_home()
                self.credmgr("add-provider", service.base + place, "--as", "found", "--yes")

    def test_without_a_terminal_the_descriptor_is_shown_and_not_stored(self):
        service = self.serve(DiscoveryServer())
        outcome = self.credmgr("add-provider", service.issuer, "--as", "found", status=USAGE)
        self.assertIn("--yes", outcome.err)
        self.assertIn("  token: " + json.dumps(service.base + "/token"), outcome.err)
        self.assertEqual(service.counts["registered"], 0)
        self.assert_nothing_kept()

    def test_at_a_terminal_credmgr_asks(self):
        service = self.serve(DiscoveryServer())
        status, shown = self.at_terminal("n", "add-provider", service.issuer, "--as", "found")
        self.assertEqual(status, USAGE, shown)
        self.assert_nothing_kept()
        self.assertEqual(service.counts["registered"], 0)
        status, shown = self.at_terminal("y", "add-provider", service.issuer, "--as", "found")
        self.assertEqual(status, 0, shown)
        self.assertEqual(self.descriptor("found")["issuer"], service.issuer)

    def test_input_typed_before_the_question_is_ignored(self):
        service = self.serve(DiscoveryServer())
        started = threading.Event()

        def type_first(request):
            started.wait(TIMEOUT)
            terminal.type("y\n")
            return service.serve_metadata(request)

        service.routes[("GET", service.place)] = type_first
        terminal = self.terminal("add-provider", service.issuer, "--as", "found")
        started.set()
        terminal.wait_for(r"\[y/N\]")
        terminal.type("n\n")
        self.assertEqual(terminal.end(), USAGE, terminal.seen)
        self.assert_nothing_kept()

    def test_endpoints_elsewhere_are_named(self):
        def elsewhere(metadata):
            metadata["token_endpoint"] = "https://tokens.example/token"

        service = self.serve(DiscoveryServer(change=elsewhere))
        outcome = self.credmgr("add-provider", service.issuer, "--as", "found", status=USAGE)
        self.assertRegex(outcome.err, r"token_endpoint is on a different host.*tokens\.example")

    def test_a_server_that_drops_pkce(self):
        service = self.serve(DiscoveryServer(change=lambda metadata: metadata.update(code_challenge_methods_supported=["S256"])))
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes")
        service.change = lambda metadata: metadata.update(code_challenge_methods_supported=["plain"])
        refused = self.credmgr("add-provider", "found", "--update", "--yes", status=REFUSED)
        self.assertIn('no longer announces PKCE with S256, which protects the login, only "plain"', refused.err)
        # A login still sends the challenge, and the user may insist.
        self.credmgr("login", "found", "--account", ADA, "--scope", "read")
        again = re.search(r'run "credmgr (add-provider [^"]+)" if the provider confirms', refused.err).group(1)
        outcome = self.credmgr(*again.split(), "--yes")
        self.assertIn("warning: the metadata does not announce PKCE with S256", outcome.err)

    def test_a_second_time(self):
        service = self.serve(DiscoveryServer())
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes")
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes", status=USAGE)
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes", "--replace")
        self.assertEqual(service.counts["registered"], 1, "the client is still good")
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes", "--replace",
                     "--set", "redirect_uri=http://127.0.0.1:8417/callback")
        self.assertEqual(service.counts["registered"], 2, "another redirect is another client")


class Resource(DiscoveryTest):
    """The address of a protected resource, such as an MCP server."""

    def test_from_the_address_of_a_resource_to_a_request(self):
        service = self.serve(ResourceServer())
        outcome = self.credmgr("add-provider", service.address, "--as", "mcp", "--yes")
        self.assertIn(f"the authorization server is {service.issuer}", outcome.err)
        kept = self.descriptor("mcp")
        self.assertEqual((kept["resource"], kept["scope"], kept["pkce"]), (service.address, ["read"], "S256"))
        registered = json.loads(service.requests("/register")[0].body)
        self.assertEqual(registered["application_type"], "native")
        self.credmgr("login", "mcp", "--account", ADA)
        # Many such servers compare the whole redirect.
        self.assertEqual([dict(request.query)["redirect_uri"] for request in service.requests("/authorize", "GET")],
                         registered["redirect_uris"])
        self.assertEqual(json.loads(self.credmgr("request", "mcp", service.address).out), {"scope": "read"})
        self.assertRegex(self.credmgr("header", "mcp", "--url", service.address).line, "^Authorization: Bearer at-")
        # The refresh names the resource too.
        self.credmgr("token", "mcp", "--refresh")
        sent = [dict(urllib.parse.parse_qsl(request.body.decode())) for request in service.requests("/token")]
        self.assertEqual([fields["resource"] for fields in sent], [service.address] * 2)
        # Another path of the same server is covered, another server is not.
        self.credmgr("request", "mcp", "https://other.example/mcp", status=USAGE)

    def test_metadata_that_changed(self):
        service = self.serve(ResourceServer())
        self.credmgr("add-provider", service.address, "--as", "mcp", "--yes")
        self.credmgr("login", "mcp", "--account", ADA)
        self.assertIn("has not changed", self.credmgr("add-provider", "mcp", "--update").err)
        service.routes[("POST", "/token2")] = service.token
        service.change = lambda metadata: metadata.update(token_endpoint=service.base + "/token2")
        # The old endpoint no longer exists, so a refresh reads the metadata and finds the new one.
        del service.routes[("POST", "/token")]
        self.credmgr("token", "mcp", "--refresh")
        self.assertEqual(self.descriptor("mcp")["endpoints"]["token"], service.base + "/token2")
        self.assertEqual((service.counts["registered"], len(service.requests("/token2"))), (1, 1))
        # Before that, `--update` shows what changed.
        service.routes[("POST", "/token3")] = service.token
        service.change = lambda metadata: metadata.update(token_endpoint=service.base + "/token3")
        refused = self.credmgr("add-provider", "mcp", "--update", status=USAGE)
        self.assertRegex(refused.err, r"-  token: .*/token2\b")
        self.assertRegex(refused.err, r"\+  token: .*/token3\b")
        self.credmgr("add-provider", "mcp", "--update", "--yes")
        self.credmgr("token", "mcp", "--refresh")
        self.assertEqual((service.counts["registered"], len(service.requests("/token3"))), (1, 1))
        # Another server needs consent.
        del service.routes[("POST", "/token3")]
        service.change = lambda metadata: metadata.update(token_endpoint="https://elsewhere.example/token")
        moved = self.credmgr("token", "mcp", "--refresh", status=REFUSED)
        self.assertIn('run "credmgr add-provider mcp --update" to read its metadata again', moved.err.replace("\n         ", " "))
        self.assertEqual(self.descriptor("mcp")["endpoints"]["token"], service.base + "/token3")

    def test_another_issuer(self):
        service = self.serve(ResourceServer())
        self.credmgr("add-provider", service.address, "--as", "mcp", "--yes")
        self.credmgr("login", "mcp", "--account", ADA)
        other = self.serve(ResourceServer())
        metadata = service.resource_metadata() | {"authorization_servers": [other.issuer]}
        service.resource_metadata = lambda: metadata
        self.credmgr("add-provider", "mcp", "--update", "--yes")
        self.assertEqual(other.counts["registered"], 1)
        # Neither the client nor the refresh token of the first issuer is sent to the other one.
        refused = self.credmgr("token", "mcp", "--refresh", status=LOGIN_NEEDED)
        self.assertIn("another issuer made it", refused.err)
        self.credmgr("logout", "mcp")
        self.assertEqual(other.requests("/token") + other.requests("/revoke"), [])

    def test_a_refused_request_names_the_login_that_helps(self):
        service = self.serve(ResourceServer())
        self.credmgr("add-provider", service.address, "--as", "mcp", "--yes")
        self.credmgr("login", "mcp", "--account", ADA)
        for method, demand in (("POST", "--step-up --scope write"), ("PUT", "--step-up --acr gold --max-age 60s")):
            refused = self.run_program("request", "mcp", service.address, "--method", method)
            self.assertEqual(refused.status, REFUSED)
            command = re.search(r'run "credmgr (login mcp .*)"', refused.err.replace("\n         ", " ")).group(1)
            self.assertIn(demand, command)
            self.credmgr(*command.split())
            self.assertEqual(set(json.loads(self.credmgr("request", "mcp", service.address, "--method", method).out)["scope"].split()),
                             {"read", "write"})
        pages = [dict(request.query) for request in service.requests("/authorize", "GET")]
        self.assertEqual((pages[-1]["acr_values"], pages[-1]["max_age"], set(pages[-1]["scope"].split())), ("gold", "60", {"read", "write"}))
        self.assertNotIn("acr_values", pages[0])
        # A server would take such a number for nonsense.
        refused = self.credmgr("login", "mcp", "--max-age", "3651d", status=USAGE)
        self.assertIn("at most 3650d", refused.err)

    def test_metadata_that_is_not_the_resource_s_own(self):
        elsewhere = {
            "another resource": {"resource": "https://evil.example/mcp"},
            "is not https": {"authorization_servers": ["http://evil.example"]},
            "lacks": {"authorization_servers": []},
        }
        for words, change in elsewhere.items():
            with self.subTest(words):
                service = self.serve(ResourceServer())
                metadata = service.resource_metadata() | change
                service.resource_metadata = lambda metadata=metadata: metadata
                outcome = self.credmgr("add-provider", service.address, "--as", "mcp", "--yes", status=REFUSED)
                self.assertIn(words, outcome.err)
                self.assert_nothing_kept()

    def test_several_authorization_servers(self):
        service = self.serve(ResourceServer())
        metadata = service.resource_metadata()
        metadata["authorization_servers"].append("https://id.example")
        service.resource_metadata = lambda: metadata
        outcome = self.credmgr("add-provider", service.address, "--as", "mcp", "--yes", status=USAGE)
        self.assertIn(f'--issuer {service.issuer}"', outcome.err)
        self.credmgr("add-provider", service.address, "--as", "mcp", "--yes", "--issuer", service.issuer)
        self.new_home()
        person = self.terminal("add-provider", service.address, "--as", "mcp", columns=0)
        person.wait_for(r"Which one\?")
        person.type("1\n")
        person.wait_for(r"\[y/N\]")
        person.type("y\n")
        self.assertEqual(person.end(), 0, person.seen)

    def test_a_server_without_pkce(self):
        service = self.serve(ResourceServer(change=lambda metadata: metadata.pop("code_challenge_methods_supported") and None))
        outcome = self.credmgr("add-provider", service.address, "--as", "mcp", "--yes", status=REFUSED)
        self.assertIn("PKCE", outcome.err)
        self.assert_nothing_kept()


class OverTLS(DiscoveryTest):
    """A realistic issuer: https with a trusted authority's certificate, and OpenID Connect."""

    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder)
        self.environment["SSL_CERT_FILE"] = self.authority.certificate

    def issuer(self, **options):
        return self.serve(OpenIDServer(tls=self.authority.context(), **options))

    def whole_life(self, **options):
        service = self.issuer(**options)
        status, shown = self.at_terminal("y", "add-provider", service.issuer, "--as", "found")
        self.assertEqual(status, 0, shown)
        # The stored descriptor equals the displayed one.
        before, _, after = shown.replace("\r\n", "\n").partition("[y/N]")
        path = os.path.join(self.environment["CREDMGR_HOME"], "config/providers/found.yaml")
        with open(path, encoding="utf-8") as file:
            for line in file.read().splitlines():
                self.assertIn(f"  {line}\n" if line else "\n", before)
        self.assertNotIn("registered the client", before)
        self.assertIn("registered the client", after)
        kept = self.descriptor("found")
        self.assertEqual((kept["issuer"], kept["iss"]), (service.issuer, "required"))
        self.assertEqual(kept["endpoints"]["token"], service.base + "/token")
        self.assertEqual(kept["scope"], ["openid", "profile", "email"])
        sent = json.loads(service.requests("/register")[0].body)
        self.assertEqual((sent["application_type"], sent["redirect_uris"]), ("native", ["http://127.0.0.1/callback/found"]))

        self.credmgr("login", "found")
        status = json.loads(self.credmgr("status", "found", "--json").out)[0]
        self.assertEqual((status["account"], status["scope"]), (service.email, ["openid", "profile", "email"]))
        token = self.credmgr("token", "found").line
        self.assertTrue(service.accepts(token))
        fresh = self.credmgr("token", "found", "--refresh").line
        self.assertNotEqual(fresh, token)
        answer = json.loads(self.credmgr("request", "found", service.base + "/userinfo").out)
        self.assertEqual(answer["sub"], service.subject)
        id_token = json.loads(self.credmgr("validate", "found", "--json").out)["id_token"]
        self.assertTrue(id_token["verified"])
        self.assertEqual((id_token["claims"]["iss"], id_token["claims"]["sub"]), (service.issuer, service.subject))
        self.assertEqual((service.counts["jwks"], service.requests("/jwks")[0].headers.get("Authorization")), (1, None))
        self.credmgr("logout", "found")
        self.assertFalse(service.accepts(fresh))

    def test_openid_connect_discovery(self):
        self.whole_life()

    def test_rfc_8414_with_a_path(self):
        self.whole_life(prefix="/realms/x", place="/.well-known/oauth-authorization-server/realms/x")

    def test_a_nonce_of_another_login(self):
        service = self.issuer(turns_nonce=lambda nonce: nonce[::-1])
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes")
        outcome = self.credmgr("login", "found", status=REFUSED)
        self.assertIn("nonce", outcome.err)
        self.credmgr("token", "found", status=LOGIN_NEEDED)

    def test_an_id_token_signed_with_another_key(self):
        service = self.issuer()
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes")
        service.published = [ECKey.generate_key("P-256")]
        outcome = self.credmgr("login", "found", status=REFUSED)
        self.assertIn("its signature is wrong", outcome.err)
        self.credmgr("token", "found", status=LOGIN_NEEDED)
        # Nothing uses the new tokens, so they are revoked.
        self.assertGreaterEqual(len(service.requests("/revoke")), 1)

    def test_kubectl_gets_only_a_verified_id_token(self):
        service = self.issuer()
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes")
        service.published = None
        outcome = self.credmgr("login", "found")
        self.assertIn("cannot verify the ID token", outcome.err)
        question = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "spec": {}}
        environment = {"KUBERNETES_EXEC_INFO": json.dumps(question)}
        self.credmgr("kubectl-credential", "found", status=UNREACHABLE, environment=environment)
        service.published = [service.key]
        answer = json.loads(self.credmgr("kubectl-credential", "found", environment=environment).out)
        self.assertEqual(answer["status"]["token"].count("."), 2)
        asked = len(service.exchanges)
        self.credmgr("kubectl-credential", "found", environment=environment)
        self.assertEqual(len(service.exchanges), asked)

    def test_an_untrusted_certificate(self):
        service = self.issuer()
        other = os.path.join(self.folder, "other")
        os.mkdir(other)
        environment = {"SSL_CERT_FILE": Authority(other).certificate}
        outcome = self.credmgr("add-provider", service.issuer, "--yes", status=UNREACHABLE, environment=environment)
        self.assertIn("certificate", outcome.err)
        self.assert_nothing_kept()
        self.assertEqual(service.exchanges, [])
        # A certificate for another name is refused as well.
        elsewhere = service.issuer.replace("127.0.0.1", "127.0.0.2")
        self.credmgr("add-provider", elsewhere, "--yes", status=UNREACHABLE)
        # The other host gets no token, either.
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes")
        self.credmgr("login", "found")
        asked = len(service.exchanges)
        self.credmgr("request", "found", service.base + "/userinfo", status=UNREACHABLE, environment=environment)
        self.assertEqual(len(service.exchanges), asked)

    def test_a_trace_shows_the_metadata_and_no_secret(self):
        service = self.issuer()
        outcome = self.credmgr("add-provider", service.issuer, "--as", "found", "--yes", "--trace")
        self.assertIn(f"> GET {service.base}/.well-known/openid-configuration\n", outcome.err)
        self.assertIn(f"> POST {service.base}/register\n", outcome.err)
        answers = [json.loads(line[2:]) for line in outcome.err.splitlines() if line.startswith("< {")]
        metadata, registered = answers
        self.assertEqual({name for name, value in metadata.items() if "…" in str(value)}, set())
        self.assertEqual(metadata, service.metadata())
        for name in ("client_id", "client_secret", "registration_access_token", "registration_client_uri"):
            self.assertEqual(registered[name], "…")
        self.assertEqual(registered["redirect_uris"], ["http://127.0.0.1/callback/found"])
        self.assertEqual(registered["token_endpoint_auth_method"], "client_secret_basic")


class Page(Service):
    """Publishes one document, as the user's own web server does."""

    def __init__(self, tls):
        super().__init__(tls)
        self.text = ""
        self.routes[("GET", "/credmgr.json")] = lambda _: text_response(
            self.text, 200 if self.text else 404, content_type="application/json")

    @property
    def address(self):
        return self.base + "/credmgr.json"


class Documents(DiscoveryTest):
    """A client ID that is the URL of a document (draft-ietf-oauth-client-id-metadata-document-01)."""

    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder)
        self.environment["SSL_CERT_FILE"] = self.authority.certificate
        self.page = self.serve(Page(self.authority.context()))
        self.service = self.serve(DocumentServer(self.authority.certificate))

    def test_a_document_instead_of_a_registration(self):
        add = ("add-provider", self.service.issuer, "--as", "found", "--yes")
        outcome = self.credmgr(*add, status=USAGE)
        self.assertIn("requires a client ID: publish a client metadata document, or register a client at", outcome.err)
        hint = re.search(r'hint: run "credmgr ([^"]+)" with a URL of yours', outcome.err).group(1)
        add = hint.replace("https://HOST/credmgr.json", self.page.address).split()
        self.assertEqual(add[-1], "--client-document")
        self.page.text = self.credmgr(*add).out
        self.assert_nothing_kept()
        self.assertEqual(json.loads(self.page.text), {
            "client_id": self.page.address, "client_name": "credmgr", "application_type": "native",
            "redirect_uris": ["http://127.0.0.1/callback/found"],
            "grant_types": ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
            "response_types": ["code"], "token_endpoint_auth_method": "none"})
        outcome = self.credmgr(*add[:-1])
        self.assertNotIn("will not accept", outcome.err)
        self.credmgr("login", "found", "--account", ADA, "--scope", "read", "--scope", "offline")
        self.assertTrue(self.service.accepts(self.credmgr("token", "found").line))
        self.assertTrue(self.service.accepts(self.credmgr("token", "found", "--refresh").line))
        # One document serves several providers, each with its own redirect.
        document = json.loads(self.credmgr(*(word.replace("found", "other") for word in add)).out)
        self.assertEqual(document["redirect_uris"], ["http://127.0.0.1/callback/other", "http://127.0.0.1/callback/found"])

    def test_a_document_that_the_provider_will_not_accept(self):
        add = ("add-provider", self.service.issuer, "--as", "found", "--yes", "--client-id", self.page.address)
        good = json.loads(self.credmgr(*add, "--client-document").out)
        for change, reason in (
                (None, "its URL answers with status 404"), ("text", "it is not a JSON object"),
                ({"client_id": "https://a.example/x"}, 'its "client_id" is not this URL'),
                ({"redirect_uris": []}, 'its "redirect_uris" do not contain http://127.0.0.1/callback/found'),
                ({"token_endpoint_auth_method": "client_secret_post"}, "it requires a client secret")):
            with self.subTest(reason):
                self.page.text = json.dumps(good | change) if isinstance(change, dict) else change or ""
                outcome = self.credmgr(*add, "--replace")
                self.assertIn(f"warning: the provider will not accept the document at {self.page.address}: {reason}\n", outcome.err)
        for identifier, reason in (
                (self.page.address + "#a", "such a URL needs a path"), ("https://a.example/../x", "such a URL needs a path")):
            outcome = self.credmgr(*add[:-1], identifier, "--replace")
            self.assertIn("this is probably not a client ID", outcome.err)
            self.assertIn(reason, outcome.err)
        service = self.serve(DiscoveryServer())
        outcome = self.credmgr("add-provider", service.issuer, "--as", "plain", "--yes", "--client-id", self.page.address)
        self.assertIn("does not say that it reads client metadata", outcome.err)

    def test_the_document_of_an_organisation(self):
        """A descriptor with the organisation's document: its users need no client of their own."""
        self.page.text = self.credmgr(
            "add-provider", self.service.issuer, "--as", "ours", "--yes", "--client-id", self.page.address,
            "--client-document").out
        path = self.file("ours.yaml", f"""
provider: ours
grant: authorization_code
endpoints: {{ authorization: {self.service.base}/authorize, token: {self.service.base}/token }}
client: {{ id: "{self.page.address}", metadata_document: true }}
scope: [read]
hosts: [{self.service.base.removeprefix("http://")}]
""")
        self.credmgr("add-provider", path)
        self.credmgr("login", "ours", "--account", ADA)
        self.assertTrue(self.service.accepts(self.credmgr("token", "ours").line))

    def test_the_simulator_reads_the_document(self):
        said = self.simulated("github")
        resource = said["listening on"] + "/simulator/resource"
        add = ("add-provider", resource, "--as", "mcp", "--yes", "--client-id", self.page.address)
        self.page.text = self.credmgr(*add, "--client-document").out
        self.credmgr(*add)
        self.assertEqual(self.descriptor("mcp")["client"]["metadata_document"], True)
        self.credmgr("login", "mcp", "--account", ADA)
        self.credmgr("token", "mcp", "--refresh")
        self.assertEqual(json.loads(self.credmgr("request", "mcp", resource).out)["account"], "ada")
        # One that needs another authentication names the login that gets it.
        stronger = resource + "?needs_acr=gold&needs_max_age=600"
        refused = self.run_program("request", "mcp", stronger)
        self.assertEqual(refused.status, REFUSED)
        login = re.search(r'run "credmgr (login [^"]+)"', refused.err.replace("\n         ", " ")).group(1)
        self.assertIn("--acr gold --max-age 600s", login)
        self.credmgr(*login.split())
        self.credmgr("request", "mcp", stronger)

    def test_setup_shows_the_document(self):
        person = self.terminal("setup", self.service.issuer, columns=200)

        def answer(question, text):
            person.wait_for(question)
            person.seen = ""
            person.type(text + "\r")

        answer(r"Add it as", "y")
        answer(r"1  the URL of a document that you publish, without a registration\r\n  2  your own client(.|\n)*Which one", "1")
        answer("https URL of the document", "http://a.example/x")
        answer("type an https URL with a path(.|\n)*https URL of the document", self.page.address)
        person.wait_for("Press Enter")
        self.page.text = re.search(r"(?s)publish this document at [^\n]*\n(\{.*?\n\})", person.seen).group(1)
        shown, self.page.text = self.page.text, ""
        answer("Press Enter", "")
        answer("status 404(.|\n)*Use it anyway", "n")
        self.page.text = shown
        answer("Press Enter", "")
        self.assertEqual(person.end(), 0, person.seen)
        provider = json.loads(self.credmgr("list", "--json").out)[0]["provider"]
        self.assertTrue(self.service.accepts(self.credmgr("token", provider).line))


class Removal(DiscoveryTest):
    """remove-provider undoes what add-provider did."""

    def added(self, **options):
        service = self.serve(DiscoveryServer(**options))
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes")
        self.registered = [name for name in service.clients if not name.startswith("judge-")]
        return service

    def assert_gone(self):
        self.assert_nothing_kept()
        self.credmgr("providers", "found", status=USAGE)
        # The provider can be added again.
        self.credmgr("token", "found", status=USAGE)

    def test_the_client_is_deleted_where_it_was_registered(self):
        service = self.added()
        self.credmgr("login", "found", "--account", ADA, "--scope", "read")
        refused = self.credmgr("remove-provider", "found", status=USAGE)
        self.assertIn(ADA, refused.err)
        self.assertEqual(service.counts["deleted"], 0)
        self.credmgr("logout", "found")
        removed = self.credmgr("remove-provider", "found")
        self.assertIn(f"deleted the client at {service.base}/register/{self.registered[0]}", removed.err)
        self.assertEqual((removed.out, service.counts["deleted"]), ("", 1))
        self.assertNotIn(self.registered[0], service.clients)
        self.assert_gone()
        self.assertIn('"remove-provider"', self.credmgr("log", "--json").out)
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes")
        self.credmgr("login", "found", "--account", ADA, "--scope", "read")

    def test_a_provider_that_cannot_delete_clients(self):
        service = self.added(manages=False)
        self.assertIn("is still registered", self.credmgr("remove-provider", "found").err)
        self.assertIn(self.registered[0], service.clients)
        self.assert_gone()

    def test_keep_remote_leaves_the_client(self):
        service = self.added()
        self.assertIn("is still registered", self.credmgr("remove-provider", "found", "--keep-remote").err)
        self.assertEqual(service.counts["deleted"], 0)
        self.assert_gone()

    def test_a_provider_that_refuses_or_is_unreachable(self):
        service = self.added()
        service.management.clear()
        outcome = self.credmgr("remove-provider", "found", status=REFUSED)
        self.assertIn("--keep-remote", outcome.err)
        self.descriptor("found")
        service.stop()
        self.credmgr("remove-provider", "found", status=UNREACHABLE)
        self.descriptor("found")
        self.credmgr("remove-provider", "found", "--keep-remote")
        self.assert_gone()

    def test_an_address_on_another_host_gets_no_token(self):
        other = self.serve(DiscoveryServer())
        service = DiscoveryServer()
        service.registration.generate_client_registration_info = lambda client, request: {
            "registration_access_token": service.secret("rat-", 40),
            "registration_client_uri": f"{other.base}/register/{client.identifier}"}
        self.serve(service)
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes")
        self.assertIn("is still registered", self.credmgr("remove-provider", "found").err)
        self.assertEqual(other.exchanges, [])


def put(name, value):
    def change(metadata):
        metadata[name] = value
    return change


# Metadata that a hostile or broken server could send, with a word of the error message.
HOSTILE = {
    "another issuer": (put("issuer", "https://login.example"), "issuer"),
    "no issuer": (lambda m: m.pop("issuer") and None, "issuer"),
    "an issuer that is a list": (put("issuer", ["x"]), "issuer"),
    "http elsewhere": (put("token_endpoint", "http://tokens.example/"), "not https"),
    "link-local": (put("token_endpoint", "https://169.254.169.254/latest"), "is not a public address"),
    "a private network": (put("registration_endpoint", "https://10.0.0.1/"), "is not a public address"),
    "the same as IPv6": (put("token_endpoint", "https://[0:0:0:0:0:ffff:10.0.0.1]/"), "is not a public address"),
    "braces in the host": (put("token_endpoint", "https://{x}.example/"), "endpoint URL"),
    "braces in the path": (put("token_endpoint", "https://a.example/{client_secret}"), "endpoint URL"),
    "a line break": (put("token_endpoint", "https://a.example/\r\nprovider: evil"), "endpoint URL"),
    "a user": (put("token_endpoint", "https://a:b@a.example/"), "endpoint URL"),
    "a fragment": (put("token_endpoint", "https://a.example/#x"), "endpoint URL"),
    "a number": (put("token_endpoint", 5), "invalid \""),
    "a script": (put("authorization_endpoint", "javascript:alert(1)"), "not https"),
    "YAML in a scope": (put("scopes_supported", ["read\nhosts: [evil.example]"]), "invalid \""),
    "a terminal's escapes in a scope": (put("scopes_supported", ["\x1b[2J"]), "invalid \""),
    "unknown clients": (put("token_endpoint_auth_methods_supported", ["attest_jwt_client_auth"]), "attest_jwt"),
    "unknown grants": (lambda m: (put("grant_types_supported", ["password"])(m), m.pop("device_authorization_endpoint"))
                       and None, "password"),
    "no token endpoint": (lambda m: m.pop("token_endpoint") and None, "token_endpoint"),
    "state set": (put("authorization_endpoint", "https://a.example/?state=x"), "protects the login"),
    "no JSON": (lambda _: "{", "not a JSON"),
    "a list": (lambda _: "[]", "not a JSON"),
    "deep JSON": (lambda _: "[" * 100_000, "not a JSON"),
    "ten megabytes": (lambda _: Response(200, b" " * (10 << 20), [("Content-Type", "application/json")]), "1 MiB"),
}


class Hostile(DiscoveryTest):
    def test_refusals_have_a_message_and_change_nothing(self):
        for name, (change, word) in HOSTILE.items():
            with self.subTest(name):
                self.new_home()
                service = self.serve(DiscoveryServer(change=change))
                outcome = self.run_program("add-provider", service.issuer, "--as", "found", "--yes")
                self.assertIn(outcome.status, (USAGE, REFUSED), outcome.err)
                self.assertEqual(outcome.out, "")
                self.assertIn(word, outcome.err)
                self.assertNotRegex(outcome.err, r"[\x00-\x09\x0b-\x1f\x7f]", "nothing that a terminal would act on")
                self.assert_nothing_kept()
                self.assertEqual(service.counts["registered"], 0)

    def test_unusual_values_survive_quoting(self):
        odd = {"revocation_endpoint": "https://a.example/r?x={access_token}&y=[1]", "scopes_supported":
               ["read", "null", "true", "a:b", "- x", "#x", "{x}", "&a", "*a", "!x", "%x", "@x", "'", "yes", "~", "1e3"]}
        service = self.serve(DiscoveryServer(change=lambda m: m.update(odd)))
        self.credmgr("add-provider", service.issuer, "--as", "found", "--yes")
        kept = self.descriptor("found")
        self.assertEqual(kept["endpoints"]["revocation"], "https://a.example/r?x={{access_token}}&y=[1]")
        self.assertEqual(kept["scope"], [])
        shown = self.credmgr("providers", "found", "--json").out
        self.assertIn("{{access_token}}", shown)

    def test_no_server(self):
        service = self.serve(DiscoveryServer(place="/elsewhere"))
        outcome = self.credmgr("add-provider", service.issuer, "--yes", status=REFUSED)
        self.assertIn("(status 404)", outcome.err)
        service.stop()
        self.credmgr("add-provider", service.issuer, "--yes", status=UNREACHABLE)
        self.credmgr("add-provider", "http://login.example", "--yes", status=USAGE)
        self.credmgr("add-provider", "https://login.example?x", "--yes", status=USAGE)

    def test_redirects_are_not_followed(self):
        other = self.serve(DiscoveryServer())
        target = other.base + "/.well-known/openid-configuration"
        service = self.serve(DiscoveryServer(change=lambda _: Response(302, b"", [("Location", target)])))
        outcome = self.credmgr("add-provider", service.issuer, "--yes", status=REFUSED)
        self.assertIn(target, outcome.err)
        self.assertEqual(other.requests("/.well-known/openid-configuration"), [])

    def test_a_server_in_trouble(self):
        service = self.serve(DiscoveryServer(change=lambda _: text_response("later", 503)))
        self.credmgr("add-provider", service.issuer, "--yes", status=UNREACHABLE)
