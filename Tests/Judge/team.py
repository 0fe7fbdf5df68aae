"""Several machines that share a vault on a real PostgreSQL server. A machine is a home directory of its own."""

import json
import os
import shutil
import subprocess
import unittest
from dataclasses import dataclass

import oauth2_server
import postgres
from oauth2_server import OAuth2Server
from postgres import PASSWORD, PostgreSQL
from program import ADA, DONE, TIMEOUT, ProgramTest, brief, is_test_build
from test_races import state

# Names that no file of the server may contain.
BOT, TEAM, ADMIN, MACHINE = "bot-account-4711", "team-of-the-judge", "grace-the-administrator", "runner-seventeen"
PROVIDER = "oauth2-public"
TOKEN = ("token", PROVIDER, "--account", BOT)


@dataclass
class Machine:
    """The home of one machine, and its environment."""

    test: ProgramTest
    home: str
    variables: dict

    @property
    def environment(self):
        return {"CREDMGR_HOME": self.home, **self.variables}

    def run(self, *arguments, status=DONE, **options):
        """Runs credmgr to its end. `None` as a status allows any."""
        run = self.test.run_program if status is None else self.test.credmgr
        return run(*arguments, environment=self.environment, **({} if status is None else {"status": status}), **options)

    def vault(self, *arguments, **options):
        """Runs an operation on the shared vault."""
        return self.run("vault", *arguments, "--vault", TEAM, **options)

    def token(self, *arguments, **options):
        return self.run(*TOKEN, *arguments, **options)

    def start(self, *arguments, **variables):
        """Starts credmgr; `end` waits for it."""
        return subprocess.Popen(
            [self.test.binary, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**self.test.environment, **self.environment, **variables}, cwd=self.test.folder)

    def copy(self):
        """Returns another machine with a copy of everything here."""
        other = Machine(self.test, f"{self.home}-copy", dict(self.variables))
        shutil.copytree(self.home, other.home)
        self.test.homes.append(other.home)
        return other

    def patient(self, seconds):
        """Makes this machine believe that it has seen the present lease for longer: its file contains its length, the boot,
        the holder and the time, each number with 8 bytes, and each list after its length."""
        changed = 0
        for folder, _, names in os.walk(os.path.join(self.home, "vault", "shared")):
            for name in names:
                if not name.endswith(".lease"):
                    continue
                with open(os.path.join(folder, name), "r+b") as file:
                    place = 8
                    for _ in range(2):
                        file.seek(place)
                        place += 8 + int.from_bytes(file.read(8), "big")
                    file.seek(place)
                    since = max(int.from_bytes(file.read(8), "big") - seconds * 1000, 0)
                    file.seek(place)
                    file.write(since.to_bytes(8, "big"))
                changed += 1
        self.test.assertTrue(changed, "this machine has seen no lease")


def end(process):
    out, err = process.communicate(timeout=TIMEOUT)
    return process.returncode, out.strip(), err


@unittest.skipUnless(postgres.available(), "PostgreSQL and pgbouncer are not installed")
class TeamTest(ProgramTest):
    """A database for each test, on one server for all."""

    accounts = ADA, BOT, TEAM, ADMIN, MACHINE
    with_tls = False
    databases = 0

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.authority = cls.enterClassContext(postgres.authority()) if cls.with_tls else None
        cls.server = cls.enterClassContext(PostgreSQL(tls=cls.authority))

    def setUp(self):
        super().setUp()
        self.homes.clear()
        self.environment.pop("CREDMGR_HOME")
        self.environment["PGPASSWORD"] = PASSWORD
        self.new_database()

    def new_database(self):
        TeamTest.databases += 1
        self.database = f"vaults{self.databases}"
        self.server.create(self.database)

    def url(self):
        return self.server.socket_url(self.database)

    def sql(self, text):
        return self.server.sql(text, self.database)

    # Machines.
    def machine(self, **variables):
        self.homes.append(os.path.join(self.folder, f"machine-{len(self.homes)}"))
        return Machine(self, self.homes[-1], variables)

    def founded(self, url=None, lifetime=None, **options):
        """Returns a provider that detects reuse, and a machine with a vault in which an account is logged in."""
        service = self.serve(OAuth2Server(lifetime=brief() if lifetime is None else lifetime, **options))
        first = self.machine()
        first.run("vault", "create", TEAM, "--at", url or self.url(), "--member", ADMIN)
        self.environment["CREDMGR_HOME"] = first.home
        self.add(PROVIDER, service, oauth2_server.PUBLIC_CLIENT)
        self.environment.pop("CREDMGR_HOME")
        first.run("login", PROVIDER, "--account", BOT, "--vault", TEAM)
        return service, first

    def invitation(self, first, name=MACHINE, *more):
        text = first.vault("invite", name, *more).line
        self.services[0].secrets.add(text)
        return text

    def invited(self, first, *arguments):
        """Returns another machine that joined."""
        other = self.machine()
        other.run("vault", "join", "-", "--yes", stdin=self.invitation(first, *arguments) + "\n")
        return other

    def require_fault_points(self):
        if not is_test_build():
            self.skipTest("this program was built for use, and has no fault points")

    @staticmethod
    def shown(machine):
        account = json.loads(machine.run("status", "--json").out)[0]
        return account["next"], account["interrupted"]

    def kill(self, machine, point):
        """Kills a refresh at a point. The token of the account stays valid."""
        holder = machine.start(*TOKEN, "--refresh", CREDMGR_FAULT=f"{point}=stop")
        self.wait_until(lambda: state(holder.pid) == "T")
        holder.kill()
        end(holder)

    def assert_one_token(self, results, service):
        """Checks that all processes printed the same valid token, and that the provider saw one exchange."""
        self.errors += [err for _, _, err in results]
        self.assertEqual({status for status, _, _ in results}, {DONE}, results)
        tokens = {out for _, out, _ in results}
        self.assertEqual(len(tokens), 1, results)
        self.assertTrue(service.accepts(tokens.pop()))
        self.assertEqual((service.counts["token:refresh_token"], service.counts["reuse"]), (1, 0))
