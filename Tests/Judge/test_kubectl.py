"""kubectl with credmgr as its exec credential plugin, over TLS, with a server that answers like a cluster."""

import json
import os
import re
import shutil
import time
import unittest

import oauth2_server
from oauth2_server import OAuth2Server
from program import ADA, BINARY, LOGIN_NEEDED, USAGE, ProgramTest, brief
from service import Service, json_response
from tls import Authority
KUBECTL = shutil.which("kubectl")
V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"


class Cluster(Service):
    """Answers with its version and one pod."""

    def __init__(self, accepts, tls):
        super().__init__(tls)
        self.accepts = accepts

    def handle(self, request):
        scheme, _, token = (request.headers.get("Authorization") or "").partition(" ")
        if scheme != "Bearer" or not self.accepts(token):
            self.counts["refused"] += 1
            return json_response({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized",
                                  "message": "Unauthorized", "code": 401}, 401)
        self.counts["served"] += 1
        return json_response({"major": "1", "minor": "30", "gitVersion": "v1.30.0"})


class Kubectl(ProgramTest):
    def ready(self, version=V1, cluster_info=True, **options):
        self.service = self.serve(OAuth2Server(**options))
        authority = Authority(self.folder)
        self.cluster = self.serve(Cluster(self.service.accepts, authority.context()))
        self.add("oauth2-public", self.service, oauth2_server.PUBLIC_CLIENT)
        self.credmgr("login", "oauth2-public", "--account", ADA)
        user = {"apiVersion": version, "command": BINARY, "args": ["kubectl-credential", "oauth2-public"],
                "interactiveMode": "Never", "provideClusterInfo": cluster_info}
        # JSON is also YAML.
        self.environment["KUBECONFIG"] = self.file("kubeconfig", json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "judge",
            "clusters": [{"name": "judge", "cluster": {
                "server": self.cluster.base, "certificate-authority": authority.certificate}}],
            "users": [{"name": "ada", "user": {"exec": user}}],
            "contexts": [{"name": "judge", "context": {"cluster": "judge", "user": "ada"}}]}))

    def kubectl(self, *arguments, status=0):
        outcome = self.run_program("--cache-dir", os.path.join(self.folder, "cache"), *arguments, binary=KUBECTL)
        self.assertEqual(outcome.status, status, outcome.out + outcome.err)
        return outcome

    def version(self, status=0):
        return self.kubectl("get", "--raw", "/version", status=status)


@unittest.skipUnless(KUBECTL, "there is no kubectl here")
class RealClient(Kubectl):
    def supports_v1(self):
        """Whether kubectl supports v1, which it does since 1.22; Debian 12's is older."""
        text = self.run_program("version", "--client", "--output=json", binary=KUBECTL).out
        return int(re.match(r"\d+", json.loads(text)["clientVersion"]["minor"]).group()) >= 22

    def test_v1(self):
        if not self.supports_v1():
            self.skipTest("this kubectl is older than 1.22")
        self.ready(V1)
        self.assertEqual(json.loads(self.version().out)["major"], "1")
        self.assertEqual(self.cluster.counts["refused"], 0)

    def test_v1beta1(self):
        self.ready(V1BETA1, cluster_info=False)
        self.version()
        self.assertEqual(self.cluster.counts["refused"], 0)

    def test_an_expired_token_is_refreshed_before_kubectl_sees_it(self):
        self.ready(V1BETA1, lifetime=brief())
        self.expire()
        self.version()
        self.assertEqual((self.cluster.counts["refused"], self.service.counts["granted:refresh_token"]), (0, 1))

    def test_a_token_that_the_cluster_refuses(self):
        # kubectl gets another token but does not try again with it; the next kubectl uses a valid one.
        self.ready(V1BETA1)
        for count in (1, 2):
            self.service.kill_access()
            # A kubectl that first requests the cluster's version uses the new token for the rest.
            outcome = self.run_program(
                "--cache-dir", os.path.join(self.folder, "cache"), "get", "--raw", "/version", binary=KUBECTL)
            if outcome.status != 0:
                self.assertIn("Unauthorized", outcome.err + outcome.out)
            self.version()
            self.assertEqual(self.service.counts["granted:refresh_token"], count)

    def test_a_cluster_that_refuses_every_token(self):
        self.ready(V1BETA1)
        self.cluster.accepts = lambda token: False
        self.version(status=1)
        self.kubectl("get", "pods", status=1)
        # Once for each kubectl, however often it asks.
        self.assertLessEqual(self.service.counts["granted:refresh_token"], 2)

    def test_no_refresh_without_a_refusal(self):
        self.ready(V1BETA1)
        for _ in range(3):
            self.version()
        self.assertEqual(self.service.counts["granted:refresh_token"], 0)

    def test_not_logged_in(self):
        self.ready(V1BETA1)
        self.credmgr("logout", "oauth2-public", "--keep-remote")
        self.assertIn('run "credmgr login oauth2-public"', self.version(status=1).err)


class Protocol(Kubectl):
    def ask(self, version=V1, status=0, **spec):
        question = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False, **spec}}
        return self.credmgr("kubectl-credential", "oauth2-public", status=status,
                            environment={"KUBERNETES_EXEC_INFO": json.dumps(question)})

    def test_the_answer(self):
        self.ready(lifetime=3600)
        for version in (V1, V1BETA1):
            answer = json.loads(self.ask(version).out)
            self.assertEqual((answer["apiVersion"], answer["kind"]), (version, "ExecCredential"))
            self.assertEqual(set(answer["status"]), {"token", "expirationTimestamp"})
            self.assertEqual(answer["status"]["token"], self.service.tokens[-1].access_token)
            end = time.mktime(time.strptime(answer["status"]["expirationTimestamp"], "%Y-%m-%dT%H:%M:%SZ"))
            left = end - time.mktime(time.gmtime())
            self.assertTrue(3000 < left < 3600, "before the token ends, by the margin")

    def test_other_versions(self):
        self.ready()
        self.ask("client.authentication.k8s.io/v1alpha1", status=USAGE)

    def test_the_cluster(self):
        self.ready()
        self.ask(cluster={"server": self.cluster.base, "certificate-authority-data": "YQ=="})
        self.assertIn(f"kubectl for {self.cluster.base}", self.credmgr("log").out)
        self.ask(cluster={"server": "http://cluster.example"}, status=USAGE)

    def test_a_cluster_that_is_not_listed(self):
        self.ready()
        # Each of these, unlike the cluster on this machine, gets no token.
        for server in ("https://evil.example:6443", "http://u@10.0.0.1:8080", "10.0.0.1:8080", "http://127.1:80",
                       "http://010.0.0.1", "http://10.0.0.1:8080/\u00fc", "http://[fe80::1%25eth0]:80", "https://u@127.0.0.1"):
            outcome = self.ask(cluster={"server": server}, status=USAGE)
            self.assertEqual(outcome.out, "")
            self.ask(cluster={"server": self.cluster.base})
        self.assertIn("refused", self.credmgr("log").out)
        self.assertIn("kubectl for https://evil.example:6443", self.credmgr("log").out)

    def test_no_prompt(self):
        self.ready()
        self.credmgr("logout", "oauth2-public", "--keep-remote")
        self.ask(interactive=True, status=LOGIN_NEEDED)
