"""git with credmgr as its credential helper, over smart HTTP, with a server that accepts one token."""

import json
import os
import re
import shutil
import subprocess
import unittest

import oauth2_server
from git_server import GitServer
from oauth2_server import OAuth2Server
from browser import Browser
from program import ADA, BINARY, HERE, ProgramTest, brief, text_of

# Another git than the system's, such as one that supports `capability[]=state` (2.46).
GIT = os.environ.get("CREDMGR_GIT", "/usr/bin/git")
VERSION = tuple(map(int, re.findall(r"\d+", subprocess.run(
    [GIT, "--version"], capture_output=True, text=True, check=True).stdout)[:2]))


class GitTest(ProgramTest):
    """Uses a provider whose tokens a git server on loopback accepts."""

    def setUp(self):
        super().setUp()
        self.served = os.path.join(self.folder, "served")
        self.work = os.path.join(self.folder, "work")
        self.repository("team/demo.git")

    def repository(self, path):
        subprocess.run([GIT, "init", "--quiet", "--bare", os.path.join(self.served, path)], check=True,
                       env={**self.environment, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "init.defaultBranch",
                            "GIT_CONFIG_VALUE_0": "main"})

    def ready(self, log_in=True, permits=lambda path, password: True, scheme="Basic", **options):
        self.service = self.serve(OAuth2Server(**options))
        self.git_server = self.enterContext(GitServer(
            self.served, lambda _, password: self.service.accepts(password), permits=permits, scheme=scheme))
        self.provider = self.add("git-host", self.service, oauth2_server.PUBLIC_CLIENT, git_port=self.git_server.port)
        if log_in:
            self.credmgr("login", self.provider, "--account", ADA)
        self.url = f"{self.git_server.base}/team/demo.git"

    def options(self, helper=True):
        options = ["-c", "user.name=Ada", "-c", "user.email=ada@localhost", "-c", "init.defaultBranch=main",
                   "-c", "protocol.file.allow=always"]
        if helper:
            options += ["-c", "credential.helper=", "-c", f"credential.helper=!'{BINARY}' git-credential"]
        return options

    def git(self, *arguments, status=0, helper=True, **options):
        outcome = self.run_program(*self.options(helper), *arguments, binary=GIT, **options)
        self.assertEqual(outcome.status, status, outcome.err)
        return outcome

    def start_git(self, *arguments, **options):
        return self.start(*self.options(), *arguments, binary=GIT, stdin=False, **options)

    def commit(self, text):
        with open(os.path.join(self.work, "file"), "w", encoding="utf-8") as file:
            file.write(text)
        self.git("add", "file", cwd=self.work)
        self.git("commit", "--quiet", "--message", text, cwd=self.work)

    def publish(self, url, text="one"):
        """Pushes a first commit to the server."""
        self.git("clone", "--quiet", url, self.work)
        self.commit(text)
        self.git("push", "--quiet", "origin", "HEAD:main", cwd=self.work)


class Git(GitTest):
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
        self.ready(lifetime=brief())
        self.expire()
        self.git("clone", "--quiet", self.url, self.work)
        self.assertEqual(self.service.counts["granted:refresh_token"], 1)
        # Each connection is refused once, because git first tries without credentials.
        self.assertLessEqual(self.git_server.refused, 1)

    def test_a_token_that_the_server_refuses_is_replaced(self):
        self.ready()
        self.service.kill_access()
        # git before 2.46 gives up after a refusal; its next run gets another token.
        self.git("clone", "--quiet", self.url, self.work, status=0 if VERSION >= (2, 46) else 128)
        self.git("clone", "--quiet", self.url, self.work + "2")
        self.assertEqual(self.service.counts["granted:refresh_token"], 1)

    @unittest.skipIf(VERSION < (2, 46), "this git does not ask twice")
    def test_a_token_revoked_meanwhile_causes_no_failure(self):
        self.ready()
        self.publish(self.url)
        for count in (1, 2):
            self.service.kill_access()
            self.git("fetch", "--quiet", cwd=self.work)
            self.assertEqual(self.service.counts["granted:refresh_token"], count)

    def test_a_server_that_refuses_every_token_causes_no_endless_loop(self):
        self.ready(permits=lambda path, password: False)
        self.git("clone", "--quiet", self.url, self.work, status=128)
        self.assertLessEqual(self.service.counts["granted:refresh_token"], 1)
        self.assertLessEqual(self.git_server.refused, 3)

    @unittest.skipIf(VERSION < (2, 46), "this git knows user names and passwords only")
    def test_a_server_that_takes_bearer_gets_it(self):
        self.ready(scheme="Bearer")
        self.git("clone", "--quiet", self.url, self.work)

    def test_fifty_fetches_after_an_expiry_refresh_once(self):
        self.ready(lifetime=300, refresh_delay=0.2)
        self.publish(self.url)
        copies = []
        for number in range(50):
            copies.append(f"{self.work}-{number}")
            shutil.copytree(self.work, copies[-1])
        refreshed = self.service.counts["granted:refresh_token"]
        self.later(301)
        self.git_server.refused = 0
        running = [self.start_git("fetch", "--quiet", cwd=copy) for copy in copies]
        outcomes = [fetch.end() for fetch in running]
        self.assertEqual([outcome.err for outcome in outcomes if outcome.status], [])
        self.assertEqual(self.service.counts["granted:refresh_token"], refreshed + 1)
        self.assertEqual(self.git_server.refused, 50, "each is refused once, because git first tries without credentials")

    def test_submodules(self):
        self.ready()
        self.publish(self.url)
        self.repository("team/whole.git")
        whole = f"{self.git_server.base}/team/whole.git"
        self.work += "-whole"
        self.publish(whole)
        self.git("submodule", "--quiet", "add", "../demo.git", "part", cwd=self.work)
        self.git("commit", "--quiet", "--message", "two", cwd=self.work)
        self.git("push", "--quiet", "origin", "HEAD:main", cwd=self.work)
        copy = self.work + "2"
        self.git("clone", "--quiet", "--recurse-submodules", whole, copy)
        self.assertTrue(os.path.exists(os.path.join(copy, "part", "file")))

    # Prompting.
    def test_git_logs_in_if_needed(self):
        self.ready(log_in=False)
        self.git("clone", "--quiet", self.url, self.work, environment={"GIT_TERMINAL_PROMPT": "1"})
        self.assertEqual(len(self.service.requests("/authorize", "GET")), 1)
        self.git("fetch", "--quiet", cwd=self.work)
        self.assertEqual(len(self.service.requests("/authorize", "GET")), 1)

    def test_a_login_at_a_terminal_without_a_desktop(self):
        """A helper's streams belong to git, so the user types at the terminal itself."""
        self.ready(log_in=False)
        environment = {**self.environment, "GIT_TERMINAL_PROMPT": "1"}
        del environment["BROWSER"]
        person = self.terminal(
            *self.options(), "clone", "--quiet", self.url, self.work, binary=GIT, environment=environment, columns=0)
        address = person.wait_for(r"(http://\S+/authorize\S+)\r?\n").group(1)
        person.wait_for("paste it here")
        person.type("https://elsewhere.example/?code=1\n")
        person.wait_for("paste the whole address here")
        _, _, final = Browser(follows_loopback=False).open(address)
        person.type(final + "\n")
        self.assertEqual(person.end(), 0, person.seen)
        self.assertEqual(person.seen.count("requires a login"), 1)

    def test_several_git_processes_open_one_browser(self):
        self.ready(log_in=False)
        # All processes start before the consent, because a later one would start its own login.
        begun = os.path.join(self.folder, "begun")
        slow = self.file("slow", f"#!/bin/sh\nuntil [ -e {begun} ]; do sleep 0.1; done\n"
                         f'exec {self.environment["BROWSER"]} "$1"\n', 0o700)
        running = [self.start_git("clone", "--quiet", self.url, f"{self.work}-{number}",
                                  environment={"GIT_TERMINAL_PROMPT": "1", "BROWSER": slow}) for number in range(8)]
        for clone in running:
            clone.wait_for("requires a login")
        self.file(begun, "")
        outcomes = [clone.end() for clone in running]
        self.assertEqual([outcome.err for outcome in outcomes if outcome.status], [])
        self.assertEqual(len(self.service.requests("/authorize", "GET")), 1)

    def test_prompts_can_be_switched_off(self):
        self.ready(log_in=False)
        for arguments, environment in (
            ((), {"GIT_TERMINAL_PROMPT": "0"}),
            (("-c", "credential.interactive=false"), {"GIT_TERMINAL_PROMPT": "1"}),
            (("-c", f"credential.{self.git_server.base}.interactive=never"), {"GIT_TERMINAL_PROMPT": "1"}),
            (("-c", f"credential.{self.url}.interactive=false"), {"GIT_TERMINAL_PROMPT": "1"}),
            ((), {"GIT_TERMINAL_PROMPT": "1", "GIT_ASKPASS": "/bin/true"}),
            (("-c", "core.askPass=true"), {"GIT_TERMINAL_PROMPT": "1"}),
            ((), {"GIT_TERMINAL_PROMPT": "1", "SSH_ASKPASS": "/bin/true"}),
        ):
            with self.subTest(arguments=arguments, environment=environment):
                outcome = self.git(*arguments, "clone", "--quiet", self.url, self.work, status=128,
                                   environment=environment)
                self.assertNotIn("credmgr", outcome.err)
                self.assertEqual(self.service.requests("/authorize"), [])

    def test_a_login_that_is_refused_ends_the_question(self):
        self.ready(log_in=False)
        refusing = self.file("refusing", f"#!/usr/bin/env python3\nimport sys\nsys.path.insert(0, {HERE!r})\n"
                             "import browser\nbrowser.Browser(decision='deny').open(sys.argv[1])\n", 0o700)
        outcome = self.git("clone", "--quiet", self.url, self.work, status=128,
                           environment={"GIT_TERMINAL_PROMPT": "1", "BROWSER": refusing})
        self.assertIn("quit", outcome.err)
        self.assertNotIn("Username", outcome.err)

    # Several accounts.
    def two_owners(self):
        """Adds two accounts on one host, each with its own repositories only, and names them in the configuration."""
        tokens = {}

        def permits(path, password):
            owner = path.split("/")[1]
            return tokens.get(owner) == password

        self.ready(permits=permits, log_in=False)
        for owner in ("team", "acme"):
            self.credmgr("login", self.provider, "--account", owner)
            tokens[owner] = self.service.tokens[-1].access_token
        self.repository("acme/tools.git")
        return f"{self.git_server.base}/acme/tools.git"

    def test_two_owners_on_one_host(self):
        other = self.two_owners()
        self.credmgr("use", self.provider, "acme", "--for", f"{self.git_server.base}/acme")
        for number, options in enumerate(((), ("-c", "credential.useHttpPath=true"))):
            self.git(*options, "clone", "--quiet", self.url, f"{self.work}-team-{number}")
            clone = f"{self.work}-acme-{number}"
            self.git(*options, "clone", "--quiet", other, clone)
            self.git(*options, "fetch", "--quiet", cwd=clone)
        self.assertEqual(self.service.counts["granted:refresh_token"], 0)

    def test_rules_that_are_made_at_the_same_time(self):
        self.two_owners()
        makers = [self.start("use", self.provider, "acme", "--for", f"{self.git_server.base}/o{number}", stdin=False)
                  for number in range(10)]
        for maker in makers:
            self.assertEqual(maker.end().status, 0)
        for number in range(10):
            rule = json.loads(self.credmgr(
                "status", "--for", f"{self.git_server.base}/o{number}/x", "--json").out)[0]
            self.assertEqual((rule["account"], rule["reason"]), ("acme", "rule"))

    def test_an_account_for_a_directory(self):
        other = self.two_owners()
        theirs = os.path.join(self.folder, "acme")
        os.mkdir(theirs)
        self.credmgr("use", self.provider, "acme", "--in", theirs)
        # The command runs outside the clone, but rules for the clone's directory apply.
        self.git("clone", "--quiet", other, os.path.join(theirs, "tools"))
        self.git("fetch", "--quiet", cwd=os.path.join(theirs, "tools"))
        self.git("clone", "--quiet", self.url, self.work)
        self.git("ls-remote", other, cwd=theirs)
        self.assertEqual(self.service.counts["granted:refresh_token"], 0, "no account was tried in vain")

    def test_an_account_by_the_environment_and_by_the_user_name(self):
        other = self.two_owners()
        self.git("clone", "--quiet", other, self.work, environment={"CREDMGR_ACCOUNT": "acme"})
        self.git("clone", "--quiet", other.replace("://", "://acme@"), self.work + "2")

    # Hosts that no provider claims.
    def test_typed_input_is_asked_for_once(self):
        server = self.enterContext(GitServer(self.served, lambda user, password: (user, password) == ("ada", "typed-1")))
        asked = os.path.join(self.folder, "asked")
        askpass = self.file("askpass", f"#!/bin/sh\necho x >> '{asked}'\n"
                            "case $1 in User*) echo ada;; *) echo typed-1;; esac\n", 0o700)
        url = f"{server.base}/team/demo.git"
        self.git("clone", "--quiet", url, self.work, environment={"GIT_ASKPASS": askpass})
        self.git("clone", "--quiet", url, self.work + "2")
        self.assertEqual(text_of(asked), "x\nx\n", "the user name and the password")
        self.assert_nowhere_in(self.homes[-1], {"typed-1", f"127.0.0.1:{server.port}"})

    def test_git_setup_touches_its_own_entry_only(self):
        self.ready()
        configuration = self.environment["GIT_CONFIG_GLOBAL"]
        before = '# mine\n[user]\n\tname = Ada\n[credential "https://other.example"]\n\thelper = store\n'
        self.file(configuration, before)
        self.credmgr("git-setup", "--global")
        self.git("clone", "--quiet", self.url, self.work, helper=False)
        once = self.git("config", "--global", "--list", helper=False).out
        self.credmgr("git-setup", "--global")
        self.assertEqual(self.git("config", "--global", "--list", helper=False).out, once)
        self.credmgr("git-setup", "--global", "--remove")
        self.assertEqual(text_of(configuration), before)
