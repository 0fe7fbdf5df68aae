"""Many git processes that start one after the other and need the same login; `script/siege` repeats this in rounds.

The daily tests, `test_logging_in_again.Together` and `test_git`, stop the processes at the critical points. This one
leaves their order to the machine.
"""

import os
import time
import unittest

import oauth2_server
from git_server import GitServer
from oauth2_server import OAuth2Server
from test_git import GIT, VERSION, GitTest

ROUNDS = int(os.environ.get("CREDMGR_ROUNDS", 0))
PROCESSES = int(os.environ.get("CREDMGR_PROCESSES", 64))
SPREAD = 2  # The seconds over which they start.
LOGIN = 1  # The seconds that a login takes.


@unittest.skipUnless(ROUNDS, "only script/siege runs the rounds")
class Staggered(GitTest):
    def round(self, name):
        """Returns the numbers of opened windows, granted logins, and failed processes."""
        self.new_home()
        with OAuth2Server() as service, GitServer(self.served, lambda _, password: service.accepts(password)) as git:
            provider = self.add(name, service, oauth2_server.PUBLIC_CLIENT, git_port=git.port)
            opened = os.path.join(self.folder, "opened")
            browser = self.file("slow", f"#!/bin/sh\necho >>{opened}\nsleep {LOGIN}\n"
                                f'exec {self.environment["BROWSER"]} "$1"\n', 0o700)
            running = []
            for _ in range(PROCESSES):
                running.append(self.start_git("ls-remote", f"{git.base}/team/demo.git",
                                              environment={"GIT_TERMINAL_PROMPT": "1", "BROWSER": browser}))
                time.sleep(SPREAD / PROCESSES)
            failed = [f"{outcome.status}: {outcome.err}" for outcome in (each.end() for each in running) if outcome.status]
            with open(opened, encoding="utf-8") as file:
                windows = len(file.readlines())
            os.remove(opened)
            counts = windows, service.counts["granted:authorization_code"], len(failed)
            # The provider gets no other requests, because late processes use the first one's token.
            self.assertEqual((counts, len(service.requests("/token"))), ((1, 1, 0), 1), "\n".join(failed))
            self.credmgr("logout", provider, "--all")
            return counts

    def test_without_an_identity(self):
        self.rounds("git-host")

    def test_with_an_identity(self):
        self.rounds("git-host-named")

    def rounds(self, name):
        results = [self.round(name) for _ in range(ROUNDS)]
        windows, logins, failures = map(sum, zip(*results))
        print(f"staggered {name}, git {'.'.join(map(str, VERSION))}: {ROUNDS} rounds of {PROCESSES} processes, "
              f"{windows} windows, {logins} logins, {failures} failures ({GIT})", flush=True)
