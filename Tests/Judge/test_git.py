"""git with credmgr as its credential helper, over smart HTTP, against a server that accepts one token."""

import os
import subprocess
import time
import unittest

import oauth2_server
from git_server import GitServer
from oauth2_server import OAuth2Server
from program import BINARY, ProgramTest

ADA = ProgramTest.accounts[0]


class Git(ProgramTest):
    def setUp(self):
        super().setUp()
        self.served = os.path.join(self.folder, "served")
        self.work = os.path.join(self.folder, "work")
        subprocess.run(["git", "init", "--quiet", "--bare", os.path.join(self.served, "team/demo.git")], check=True,
                       env={**self.environment, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "init.defaultBranch",
                            "GIT_CONFIG_VALUE_0": "main"})

    def ready(self, **options):
        self.service = self.serve(OAuth2Server(**options))
        self.git_server = self.enterContext(
            GitServer(self.served, lambda _, password: self.service.accepts(password)))
        self.provider = self.add("git-host", self.service, oauth2_server.PUBLIC_CLIENT, git_port=self.git_server.port)
        self.credmgr("login", self.provider, "--account", ADA)
        self.url = f"{self.git_server.base}/team/demo.git"

    def git(self, *arguments, status=0, helper=True, cwd=None):
        options = ["-c", "user.name=Ada", "-c", "user.email=ada@localhost", "-c", "init.defaultBranch=main"]
        if helper:
            options += ["-c", "credential.helper=", "-c", f"credential.helper=!'{BINARY}' git-credential"]
        outcome = self.run_program(*options, *arguments, binary="/usr/bin/git", cwd=cwd)
        self.assertEqual(outcome.status, status, outcome.err)
        return outcome

    def commit(self, text):
        with open(os.path.join(self.work, "file"), "w", encoding="utf-8") as file:
            file.write(text)
        self.git("add", "file", cwd=self.work)
        self.git("commit", "--quiet", "--message", text, cwd=self.work)

    def test_clone_push_fetch(self):
        self.ready()
        self.git("clone", "--quiet", self.url, self.work)
        self.commit("one")
        self.git("push", "--quiet", "origin", "HEAD:main", cwd=self.work)
        second = self.work + "2"
        self.git("clone", "--quiet", self.url, second)
        self.commit("two")
        self.git("push", "--quiet", "origin", "HEAD:main", cwd=self.work)
        self.git("fetch", "--quiet", cwd=second)
        self.assertEqual(self.git("log", "-1", "--format=%s", "origin/main", cwd=second).line, "two")

    def test_without_the_helper_nothing_is_served(self):
        self.ready()
        self.git("clone", "--quiet", self.url, self.work, status=128, helper=False)
        self.assertEqual(self.git_server.served, 0)

    def test_an_expired_token_is_refreshed_before_git_sees_it(self):
        self.ready(lifetime=1)
        time.sleep(1.1)
        self.git("clone", "--quiet", self.url, self.work)
        self.assertEqual(self.service.counts["granted:refresh_token"], 1)
        # Each connection is refused once, because git first tries without credentials.
        self.assertLessEqual(self.git_server.refused, 1)

    def test_a_token_that_the_server_refuses_is_replaced(self):
        self.ready()
        dead = self.service.tokens[-1]
        dead.revoked = True
        self.service.tokens.append(type(dead)(**{**vars(dead), "access_token": "gone", "revoked": False}))
        self.run_program("-c", "credential.helper=", "-c", f"credential.helper=!'{BINARY}' git-credential",
                         "clone", "--quiet", self.url, self.work, binary="/usr/bin/git")
        self.git("clone", "--quiet", self.url, self.work + "2")
        self.assertEqual(self.service.counts["granted:refresh_token"], 1)

    def test_another_host_gets_nothing(self):
        self.ready()
        outcome = self.credmgr("git-credential", "get", stdin="protocol=https\nhost=evil.example\n\n")
        self.assertEqual(outcome.out, "")
        for text in ("protocol=https\nhost=127.0.0.1\n\n", "protocol=http\nhost=\n\n",
                     f"protocol=http\nhost=evil.example\r127.0.0.1:{self.git_server.port}\n\n"):
            outcome = self.run_program("git-credential", "get", stdin=text)
            self.assertNotIn("password", outcome.out, text)

    def test_protocol(self):
        self.ready()
        host = f"127.0.0.1:{self.git_server.port}"
        outcome = self.credmgr("git-credential", "get", stdin=f"protocol=http\nhost={host}\npath=team/demo.git\n\n")
        fields = dict(line.split("=", 1) for line in outcome.out.splitlines() if line)
        self.assertEqual(fields["password"], self.service.tokens[-1].access_token)
        self.assertTrue(fields["username"])
        for unknown in ("approve-everything", "list"):
            self.assertEqual(self.run_program("git-credential", unknown, stdin="\n").out, "")
        self.credmgr("git-credential", "store",
                     stdin=f"protocol=http\nhost={host}\nusername=x\npassword={fields['password']}\n\n")
        self.credmgr("git-credential", "erase", stdin=f"protocol=http\nhost={host}\nusername=x\npassword=another\n\n")
        self.assertEqual(self.credmgr("token", self.provider).line, fields["password"],
                         "another password than ours is none of our business")

    def test_git_setup_touches_its_own_entry_only(self):
        self.ready()
        configuration = self.environment["GIT_CONFIG_GLOBAL"]
        before = '# mine\n[user]\n\tname = Ada\n[credential "https://other.example"]\n\thelper = store\n'
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(before)
        self.credmgr("git-setup", "--global")
        self.git("clone", "--quiet", self.url, self.work, helper=False)
        once = self.git("config", "--global", "--list", helper=False).out
        self.credmgr("git-setup", "--global")
        self.assertEqual(self.git("config", "--global", "--list", helper=False).out, once)
        self.credmgr("git-setup", "--global", "--remove")
        with open(configuration, encoding="utf-8") as file:
            self.assertEqual(file.read(), before)


if __name__ == "__main__":
    unittest.main()
