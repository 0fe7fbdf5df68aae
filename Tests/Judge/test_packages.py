"""Packages of providers that read a key from their environment, and servers of others that verify AWS signatures and
digests. They are optional: "Tests/Judge/prepare --consumers" installs them."""

import hashlib
import importlib.util
import json
import logging
import os
import re
import sys
import threading
import unittest
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from program import REFUSED, ROOT, USAGE, ProgramTest
from service import Service, json_response

OPENAI, ANTHROPIC = "sk-proj-0123456789abcdefghij", "sk-ant-api03-0123456789abcdefghij"
KEY_ID, SECRET, SESSION = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session/token+="


def have(*names):
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, "not installed: " + ", ".join(missing))


class Packages(ProgramTest):
    def ship(self, name, changes):
        """Ships a descriptor with other hosts."""
        with open(os.path.join(ROOT, "providers", name + ".yaml"), encoding="utf-8") as file:
            text = file.read()
        for before, after in changes:
            self.assertIn(before, text)
            text = text.replace(before, after)
        folder = os.path.join(os.path.dirname(os.path.dirname(self.binary)), "share/credmgr/providers")
        with open(os.path.join(folder, name + ".yaml"), "w", encoding="utf-8") as file:
            file.write(text)


class API(Service):
    """Answers a chat request as both providers do, if its key is right."""

    def __init__(self):
        super().__init__()
        self.seen = []
        self.secrets |= {OPENAI, ANTHROPIC}

    def handle(self, request):
        self.seen.append(request.target)
        headers = request.headers
        if headers.get("Authorization") == f"Bearer {OPENAI}":
            return json_response({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello from openai"}}]})
        # Version 2.12 of the package sends the key as a Bearer token, and credmgr as the documentation says.
        keys = (headers.get("x-api-key"), (headers.get("Authorization") or "").removeprefix("Bearer "))
        if ANTHROPIC in keys and headers.get("anthropic-version"):
            return json_response({"id": "1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
                                  "content": [{"type": "text", "text": "hello from anthropic"}],
                                  "usage": {"input_tokens": 1, "output_tokens": 1}})
        return json_response({"error": {"type": "authentication_error", "message": "invalid x-api-key"}}, 401)


CHAT = {
    "openai": """
import openai
answer = openai.OpenAI(max_retries=0).chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
print(answer.choices[0].message.content)
""",
    "anthropic": """
import anthropic
client = anthropic.Anthropic(max_retries=0)
answer = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
print(answer.content[0].text)
""",
}


class Chats(Packages):
    shipped = ("openai", "anthropic")

    def chat(self, provider, base_path):
        api = self.serve(API())
        self.ship(provider, [(f"https://api.{provider}.com", api.base),
                             (f"[api.{provider}.com", f'["{api.base.removeprefix("http://")}"')])
        key = {"openai": OPENAI, "anthropic": ANTHROPIC}[provider]
        self.credmgr("login", provider, "--with-token", stdin=key)
        places = {"OPENAI_BASE_URL": api.base + "/v1", "ANTHROPIC_BASE_URL": api.base}
        said = self.credmgr("exec", provider, "--", sys.executable, "-c", CHAT[provider], environment=places)
        self.assertEqual(said.line, f"hello from {provider}")
        self.assertEqual(api.seen[-1].split("?")[0], base_path)
        # The control: without credmgr, the package has no key.
        alone = self.run_program("-c", CHAT[provider], binary=sys.executable, environment=places)
        self.assertNotEqual(alone.status, 0)

    @have("openai")
    def test_openai(self):
        self.chat("openai", "/v1/chat/completions")

    @have("anthropic")
    def test_anthropic(self):
        self.chat("anthropic", "/v1/messages")


class AWS(Service):
    """Verifies each signature with botocore, and answers as STS does."""

    def __init__(self):
        super().__init__()
        self.seen = []
        self.secrets |= {SECRET}

    def handle(self, request):
        self.seen.append(request)
        if not self.verifies(request):
            return json_response({"Error": {"Code": "SignatureDoesNotMatch"}}, 403)
        return json_response({"GetCallerIdentityResponse": {"GetCallerIdentityResult": {
            "Account": "1", "Arn": "arn:aws:iam::1:user/ada", "UserId": "A"}}})

    @staticmethod
    def verifies(request):
        import botocore.auth  # Not installed everywhere.
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        given = request.headers.get("Authorization") or ""
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=(\w+)/(\d{8})/([\w-]+)/([\w-]+)/aws4_request, "
                             r"SignedHeaders=([\w;-]+), Signature=([0-9a-f]{64})", given)
        if not found or found[1] != KEY_ID or "host" not in found[5].split(";"):
            return False
        if request.headers["X-Amz-Content-Sha256"] != hashlib.sha256(request.body).hexdigest():
            return False
        same = AWSRequest(method=request.method, url=request.url, data=request.body)
        for name in found[5].split(";"):
            same.headers[name] = request.headers[name]
        kind = botocore.auth.S3SigV4Auth if found[4] == "s3" else botocore.auth.SigV4Auth
        signer = kind(Credentials(KEY_ID, SECRET), found[4], found[3])
        same.context["timestamp"] = request.headers["X-Amz-Date"]
        text = signer.string_to_sign(same, signer.canonical_request(same))
        return signer.signature(text, same) == found[6]


@have("botocore")
class Signatures(Packages):
    shipped = ("aws",)

    def setUp(self):
        super().setUp()
        self.service = self.serve(AWS())
        place = self.service.base.removeprefix("http://")
        self.ship("aws", [("https://sts.{region}.amazonaws.com", self.service.base), ('"*.amazonaws.com"', f'"{place}"'),
                          ('region: "{region}",', 'region: "{region}", service: sts,')])

    def test_a_key_that_signs(self):
        typed = f"{KEY_ID}\n{SECRET}\n{SESSION}\n"
        self.credmgr("login", "aws", "--with-token", stdin=f"{KEY_ID}\nwrong-secret\n{SESSION}\n", status=REFUSED)
        self.credmgr("login", "aws", "--with-token", "--account", "short", stdin=f"{KEY_ID}\n{SECRET}\n")
        self.assertNotIn("Security", self.credmgr("header", "aws", "--url", self.service.base + "/y").out)
        self.credmgr("logout", "aws")
        self.credmgr("login", "aws", "--with-token", stdin=typed)
        account, = json.loads(self.credmgr("status", "aws", "--json").out)
        self.assertEqual(account["account"], "arn:aws:iam::1:user/ada")
        for arguments in (
            ("/a%20b/c?b=2&a=1&b=1",), ("/?z=%C3%A4&y=a+b",), ("/x", "-d", "Action=ListUsers&Version=1"),
            ("/", "-X", "PUT", "-H", "Content-Type: application/json", "-H", "X-Amz-Target: A.B", "-d", "{}"),
        ):
            with self.subTest(arguments=arguments):
                self.credmgr("request", "aws", self.service.base + arguments[0], *arguments[1:])
        for request in self.service.seen:
            self.assertNotIn(SECRET, str(request.headers) + request.target + request.body.decode())
        # Its headers work in another program, and only for this address.
        lines = self.credmgr("header", "aws", "--url", self.service.base + "/y?a=1").out.splitlines()
        self.assertEqual([line.split(":")[0] for line in lines], [
            "X-Amz-Date", "X-Amz-Content-Sha256", "X-Amz-Security-Token", "Authorization"])
        self.credmgr("header", "aws", status=USAGE)

    def test_the_environment_of_other_programs(self):
        self.credmgr("login", "aws", "--with-token", "--yes", stdin=f"{KEY_ID}\n{SECRET}\n{SESSION}\n")
        script = """
import botocore.session
session = botocore.session.get_session()
found = session.get_credentials().get_frozen_credentials()
print(found.access_key, found.secret_key, found.token)
"""
        said = self.credmgr("exec", "aws", "--", sys.executable, "-c", script)
        self.assertEqual(said.line, f"{KEY_ID} {SECRET} {SESSION}")
        self.assertEqual(self.credmgr("exec", "aws", "--", "printenv", "AWS_REGION").line, "us-east-1")
        self.credmgr("request", "aws", self.service.base + "/with-session")
        self.assertEqual(self.service.seen[-1].headers["X-Amz-Security-Token"], SESSION)


@have("boto3", "moto", "flask")
class Moto(Packages):
    """moto plays AWS and verifies each signature (IAM authentication), and boto3 uses the key from the environment."""

    shipped = ("aws", "wasabi")
    POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    SETTING_UP = 3  # Requests without a verified signature.

    def setUp(self):
        super().setUp()
        import boto3  # Not installed everywhere.
        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        self.addCleanup(server.stop)
        host, port = server.get_host_and_port()
        self.base = f"http://{host}:{port}"
        self.post("/moto-api/reset", b"")
        self.post("/moto-api/reset-auth", str(self.SETTING_UP).encode())
        iam = boto3.client("iam", endpoint_url=self.base, region_name="us-east-1", aws_access_key_id="x",
                           aws_secret_access_key="x")
        iam.create_user(UserName="ada")
        iam.put_user_policy(UserName="ada", PolicyName="all", PolicyDocument=json.dumps(self.POLICY))
        key = iam.create_access_key(UserName="ada")["AccessKey"]
        self.identifier, self.secret = key["AccessKeyId"], key["SecretAccessKey"]

    def post(self, path, body):
        with urllib.request.urlopen(urllib.request.Request(
                self.base + path, body, {"Content-Type": "text/plain"})) as answer:
            self.assertEqual(answer.status, 200)

    def ship_aws(self):
        # moto answers only in XML, as the documentation of AWS shows.
        self.ship("aws", [("https://sts.{region}.amazonaws.com", self.base), ('"*.amazonaws.com"', f'"{self.base[7:]}"'),
                          ('region: "{region}",', 'region: "{region}", service: sts,'),
                          ("    headers: { Accept: application/json }\n", ""),
                          ("    response:\n", "    response:\n      format: xml\n"),
                          ("Error.Code", "ErrorResponse.Errors.Error.Code"),
                          ("Error.Message", "ErrorResponse.Errors.Error.Message")])

    def test_moto_verifies_our_signatures(self):
        self.ship_aws()
        # The control: another secret is refused, so moto does verify.
        said = self.credmgr("login", "aws", "--with-token", stdin=f"{self.identifier}\n{self.secret[:-1]}x\n",
                            status=REFUSED)
        self.assertIn("The request signature we calculated does not match", said.err)
        self.credmgr("login", "aws", "--with-token", stdin=f"{self.identifier}\n{self.secret}\n")
        account, = json.loads(self.credmgr("status", "aws", "--json").out)
        self.assertRegex(account["account"], r"^arn:aws:iam::\d{12}:user/ada$")
        for arguments in (
            ("/?Version=2011-06-15&Action=GetCallerIdentity",), ("/", "-d", "Action=GetCallerIdentity&Version=2011-06-15"),
            ("/?Action=GetCallerIdentity&z=%C3%A4&a=b%20c&a=%2B&Version=2011-06-15",),
        ):
            with self.subTest(arguments=arguments):
                said = self.credmgr("request", "aws", self.base + arguments[0], *arguments[1:])
                self.assertIn("user/ada", said.out)
        script = """
import boto3, sys
print(boto3.client("sts", endpoint_url=sys.argv[1]).get_caller_identity()["Arn"])
"""
        said = self.credmgr("exec", "aws", "--", sys.executable, "-c", script, self.base)
        self.assertEqual(said.line, account["account"])

    def test_answers_of_s3_in_xml(self):
        self.ship("wasabi", [("https://s3.{region}.wasabisys.com", self.base),
                             ('"s3.{region}.wasabisys.com"', f'"{self.base[7:]}"')])
        said = self.credmgr("login", "wasabi", "--with-token", stdin=f"{self.identifier}\nwrong\n", status=REFUSED)
        self.assertIn("The request signature we calculated does not match", said.err)
        self.credmgr("login", "wasabi", "--with-token", stdin=f"{self.identifier}\n{self.secret}\n")
        account, = json.loads(self.credmgr("status", "wasabi", "--json").out)
        self.assertEqual(account["account"], "webfile")
        self.credmgr("request", "wasabi", self.base + "/notes", "-X", "PUT")
        self.credmgr("request", "wasabi", self.base + "/notes/a%20b/c.txt", "-X", "PUT", "-d", "hello",
                     "-H", "Content-Type: text/plain")
        self.assertEqual(self.credmgr("request", "wasabi", self.base + "/notes/a%20b/c.txt").out, "hello")
        listed = self.credmgr("request", "wasabi", self.base + "/notes?prefix=a%20b%2F&list-type=2").out
        self.assertIn("<Key>a b/c.txt</Key>", listed)


@have("botocore")
class SigningNames(Packages):
    """botocore's own data name the service for the signature of each host of AWS."""

    shipped = ("aws",)

    @staticmethod
    def names(region):
        """Returns the names in signatures by host, also for hosts with the prefix of an operation."""
        from botocore.endpoint_provider import EndpointProvider
        from botocore.exceptions import BotoCoreError
        from botocore.session import Session

        loader = Session().get_component("data_loader")
        partitions, names = loader.load_data("partitions"), {}
        for service in loader.list_available_services("service-2"):
            model = loader.load_service_model(service, "service-2")
            metadata = model["metadata"]
            if metadata["signatureVersion"] not in ("v4", "s3v4", "s3"):
                continue
            rules = EndpointProvider(loader.load_service_model(service, "endpoint-rule-set-1"), partitions)
            prefixes = {operation.get("endpoint", {}).get("hostPrefix", "") for operation in model["operations"].values()}
            for dual_stack in (False, True):
                try:
                    found = rules.resolve_endpoint(Region=region, UseFIPS=False, UseDualStack=dual_stack)
                except BotoCoreError:
                    continue
                scheme = next((scheme for scheme in found.properties.get("authSchemes", []) if scheme["name"] == "sigv4"), {})
                name = scheme.get("signingName", metadata.get("signingName", metadata["endpointPrefix"]))
                for prefix in prefixes:
                    if "{" not in prefix:
                        names.setdefault(prefix + found.url.split("/")[2], set()).add(name)
        return names

    def test_botocore_signs_for_the_same_services(self):
        self.credmgr("login", "aws", "--with-token", "--yes", stdin=f"{KEY_ID}\n{SECRET}\n")
        # Hosts for IPv6 mostly differ only in the domain.
        hosts = {host.split(".eu-west-1")[0]: (host, names) for host, names in self.names("eu-west-1").items()
                 if host.endswith((".amazonaws.com", ".api.aws"))}
        self.assertGreater(len(hosts), 300)
        with ThreadPoolExecutor(4) as pool:
            said = pool.map(lambda host: self.credmgr("header", "aws", "--url", f"https://{host}/").out,
                            [host for host, _ in hosts.values()])
        wrong = {}
        for (host, names), out in zip(hosts.values(), said):
            name = re.search(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/aws4_request", out)[1]
            if name not in names:
                wrong[host] = (name, *names)
        self.assertEqual(wrong, {})


@have("httpbin")
class Digest(Packages):
    """httpbin sends challenges of RFC 7616 and verifies the answers."""

    DESCRIPTOR = """provider: digest
grant: basic
endpoints: {{ identity: "{base}/digest-auth/auth/ada/s3cret-word/{algorithm}" }}
header_style: Digest
account: user
hosts: ["{place}"]
"""

    def setUp(self):
        super().setUp()
        import httpbin
        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        server = make_server("127.0.0.1", 0, httpbin.app, threaded=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        self.base = f"http://127.0.0.1:{server.server_port}"

    def test_httpbin_verifies_our_digests(self):
        for algorithm in ("MD5", "SHA-256"):
            with self.subTest(algorithm=algorithm):
                text = self.DESCRIPTOR.format(base=self.base, place=self.base[7:], algorithm=algorithm)
                self.credmgr("add-provider", "-", "--as", "digest-" + algorithm.lower(), stdin=text)
                name = "digest-" + algorithm.lower()
                self.credmgr("login", name, "--with-token", stdin="ada\nwrong-word\n", status=REFUSED)
                self.credmgr("login", name, "--with-token", stdin="ada\ns3cret-word\n")
                account, = json.loads(self.credmgr("status", name, "--json").out)
                self.assertEqual(account["account"], "ada")
                target = f"/digest-auth/auth/ada/s3cret-word/{algorithm}"
                self.assertIn('"authenticated":true', self.credmgr("request", name, self.base + target).out
                              .replace(" ", ""))
        # A server that offers only what credmgr does not answer.
        self.credmgr("request", "digest-md5", self.base + "/digest-auth/auth-int/ada/s3cret-word", status=REFUSED)
