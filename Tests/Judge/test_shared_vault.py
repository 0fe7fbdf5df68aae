"""A vault that several machines share: what its database learns, going back in time, one exchange for all, failover,
dead holders, removed members, a missing server, a pooler, TLS, and bad input. docs/shared-vault.md makes the promises.

`script/siege` repeats the races and the failovers: $CREDMGR_ROUNDS rounds, $CREDMGR_HOMES machines, $CREDMGR_PROCESSES
processes each.
"""

import contextlib
import glob
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

import postgres
from oauth2_server import PUBLIC_CLIENT, OAuth2Server
from postgres import PASSWORD, Pooler, PostgreSQL, Proxy
from program import (
    ADA, DONE, GRACE, LOCKED, LOGIN_NEEDED, REFUSED, ROOT, TIMEOUT, UNEXPECTED, UNREACHABLE, USAGE, disguises, is_test_build,
    text_of,
)
from team import ADMIN, BOT, MACHINE, PROVIDER, TEAM, TOKEN, Machine, TeamTest, end
from test_races import state

ROUNDS = int(os.environ.get("CREDMGR_ROUNDS", 1))
HOMES = int(os.environ.get("CREDMGR_HOMES", 3))
PROCESSES = int(os.environ.get("CREDMGR_PROCESSES", 3))
# Each process has two pipes.
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
LEASE_TIME = 90  # seconds; docs/shared-vault.md


class SharedVault(TeamTest):
    with_tls = True

    # The database and its administrator.
    def test_the_database_contains_no_secret_and_no_name(self):
        service, first = self.founded()
        self.invited(first)
        self.expire()
        first.token()
        first.vault("rotate", "--yes")
        first.vault("remove-member", MACHINE, "--yes")
        content = self.server.files() + self.server.dump(self.database).encode()
        self.assertIn(self.database.encode(), content)
        for secret in service.secrets | {BOT, TEAM, ADMIN, MACHINE, PROVIDER}:
            for kind, form in disguises(secret.encode()):
                self.assertNotIn(form, content, f"the server's files contain {secret}, {kind}")

    def test_altered_exchanged_removed_and_replayed_rows(self):
        _, first = self.founded(lifetime=3600)
        second = self.invited(first)
        self.invitation(first, "carol")
        first.vault("verify")
        before = self.server.dump(self.database)
        flip = "set_byte(sealed, length(sealed) / 2, get_byte(sealed, length(sealed) / 2) # 1)"
        rows = "(select array_agg(lookup order by length(sealed)) from credmgr.record)"
        credential = f"lookup = {rows}[array_length({rows}, 1)]"
        for change in (
            f"update credmgr.record set sealed = {flip} where {credential}",
            f"update credmgr.record set revision = revision + 1 where {credential}",
            f"update credmgr.record r set sealed = o.sealed, revision = o.revision from credmgr.record o "
            f"where r.lookup = {rows}[1] and o.lookup = {rows}[2]",
            f"delete from credmgr.record where {credential}",
            f"update credmgr.roster set sealed = {flip} where sequence = 1",
            "delete from credmgr.roster",
            "delete from credmgr.event where id = (select min(id) from credmgr.event)",
            "update credmgr.event set number = number + 1 where id = (select max(id) from credmgr.event)",
            "insert into credmgr.wrap select vault, 'x', 1, 'x' from credmgr.roster limit 1",
            "update credmgr.vault set sequence = sequence - 1",
            "update credmgr.vault set epoch = epoch + 1",
            "update credmgr.record set kind = '\\x00112233445566778899aabbccddeeff' where kind <> ''",
            f"update credmgr.record set grouping = '\\x00' where {credential}",
            "alter table credmgr.record alter kind drop not null; update credmgr.record set kind = null",
            "delete from credmgr.invitation where state = 1",
            "update credmgr.invitation set id = '\\x0011' where state = 1",
            "update credmgr.invitation set state = 1, sealed = 'x' where state = -1",
        ):
            with self.subTest(change):
                self.sql(change)
                for machine in (first, second)[:ROUNDS]:
                    outcome = machine.vault("verify", status=None)
                    self.assertEqual(outcome.status, LOCKED)
                    # The remedy is not the same command.
                    self.assertNotIn("credmgr vault verify", outcome.err)
                self.server.restore(self.database, before)
        first.vault("verify")

    def test_a_new_member_finds_the_rows_that_the_server_hides(self):
        service, first = self.founded(lifetime=3600)
        for column in ("kind", "grouping"):
            self.sql(f"update credmgr.record set {column} = '\\x00112233445566778899aabbccddeeff' where {column} <> ''")
            other = self.invited(first, f"{MACHINE}-{column}")
            self.assertTrue(service.accepts(other.token().line))
            self.assertEqual(other.vault("verify", status=None).status, LOCKED)

    def test_a_damaged_account_names_the_login_that_replaces_it(self):
        _, first = self.founded(lifetime=3600)
        self.sql("update credmgr.record set sealed = set_byte(sealed, 99, get_byte(sealed, 99) # 1) where kind <> ''")
        login = f"credmgr login {PROVIDER} --account {BOT} --vault {TEAM}"
        for command in (("token", PROVIDER, "--refresh"), ("vault", "sync"), ("vault", "verify", "--vault", TEAM)):
            outcome = first.run(*command, status=None)
            self.assertEqual(outcome.status, LOCKED)
            self.assertIn(f"--vault {TEAM}", outcome.err)
            self.assertNotIn("backup", outcome.err)
        first.run("add-provider", PROVIDER, "--client-id", PUBLIC_CLIENT, "--replace", "--vault", TEAM, "--yes")
        self.assertIn(login, first.vault("sync", status=LOCKED).err)
        first.run(*login.split()[1:])
        first.vault("verify")
        first.vault("sync")

    def test_a_provider_is_not_changed_while_the_server_hides_an_account(self):
        _, first = self.founded(lifetime=3600)
        second = self.invited(first)
        lookups = "select encode(lookup, 'hex') from credmgr.record where kind <> ''"
        known = self.sql(lookups).split()
        second.run("login", PROVIDER, "--account", "hidden", "--vault", TEAM)
        (row,) = set(self.sql(lookups).split()) - set(known)
        before = self.server.dump(self.database)
        change = ("add-provider", PROVIDER, "--client-id", PUBLIC_CLIENT, "--replace", "--vault", TEAM, "--yes")
        for hide in (
            "update credmgr.record set sealed = set_byte(sealed, 99, get_byte(sealed, 99) # 1) where ",
            "delete from credmgr.record where ",
        ):
            self.sql(hide + f"lookup = '\\x{row}'")
            for command in (change, ("remove-provider", PROVIDER, "--vault", TEAM)):
                said = first.run(*command, status=LOCKED).err
                self.assertIn("hidden", said)
                self.assertIn(f"--vault {TEAM}", said)
            self.server.restore(self.database, before)
        first.run(*change)

    def test_an_account_that_nobody_can_read_is_removed(self):
        service, first = self.founded(lifetime=3600)
        second = self.invited(first)
        lookups = "select encode(lookup, 'hex') from credmgr.record where kind <> ''"
        change = ("add-provider", PROVIDER, "--client-id", PUBLIC_CLIENT, "--replace", "--vault", TEAM, "--yes")
        for hidden, hide in (
            ("altered", "update credmgr.record set sealed = set_byte(sealed, 99, get_byte(sealed, 99) # 1) where "),
            ("removed", "delete from credmgr.record where "),
        ):
            known = self.sql(lookups).split()
            second.run("login", PROVIDER, "--account", hidden, "--vault", TEAM)
            (row,) = set(self.sql(lookups).split()) - set(known)
            self.sql(hide + f"lookup = '\\x{row}'")
            # The provider may be gone, so that no login can replace the account.
            removal = "logout", PROVIDER, "--account", hidden, "--vault", TEAM, "--keep-remote"
            self.assertIn(f"if the provider no longer answers, run \"credmgr {' '.join(removal)}\"", first.run(*change, status=LOCKED).err)
            sent = dict(service.counts)
            second.run(*removal)
            self.assertEqual(dict(service.counts), sent)
            first.run(*change)
            for machine in (first, second):
                machine.vault("sync", "--yes")
                machine.vault("verify")
                self.assertNotIn(hidden, machine.run("status").out)

    def test_each_damaged_record_has_a_remedy_in_its_vault(self):
        _, first = self.founded(lifetime=3600)
        invitation = self.invitation(first)
        before = self.server.dump(self.database)
        rows = self.sql("select encode(lookup, 'hex') from credmgr.record where kind <> ''").split()
        self.assertGreater(len(rows), 2)
        working = 0
        for row in rows:
            with self.subTest(row):
                self.sql("update credmgr.record set sealed = set_byte(sealed, 99, get_byte(sealed, 99) # 1) "
                         f"where lookup = '\\x{row}'")
                outcome = first.vault("sync", status=None)
                self.assertNotIn("backup", outcome.err)
                if outcome.status:
                    self.assertIn(f"--vault {TEAM}", outcome.err)
                other = self.machine()
                other.run("vault", "join", "-", "--yes", stdin=invitation + "\n", status=None)
                working += other.token(status=None).status == DONE
                self.server.restore(self.database, before)
        # A new member does not need the default.
        self.assertEqual(working, 1)

    def test_an_old_backup_is_noticed_by_members_that_have_seen_more(self):
        service, first = self.founded()
        second = self.invited(first)
        backup = self.server.dump(self.database)
        self.expire()
        token = first.token().line
        self.server.restore(self.database, backup)
        # The valid token needs no server. Everything else finds the older state.
        self.assertEqual(first.token().line, token)
        self.assertEqual(first.vault("verify", status=None).status, LOCKED)
        said = first.token("--refresh", status=LOCKED).err
        self.assertIn(f"credmgr login {PROVIDER} --account {BOT} --vault {TEAM}", said)
        self.assertIn(BOT, first.vault("sync", status=LOCKED).err)
        self.assertEqual(service.counts["reuse"], 0)
        # The second machine has seen nothing newer.
        second.vault("verify")

    def test_two_histories(self):
        service, first = self.founded()
        second = self.invited(first)
        start = self.server.dump(self.database)
        first.vault("rotate", "--yes")
        firsts = self.server.dump(self.database)
        self.server.restore(self.database, start)
        self.assertEqual(first.vault("verify", status=None).status, LOCKED)
        self.expire()
        second.token()
        self.server.restore(self.database, firsts)
        first.vault("verify")
        self.assertEqual(second.vault("verify", status=None).status, LOCKED)
        second.token("--refresh", status=LOCKED)
        self.assertEqual(service.counts["token:refresh_token"], 1)

    # One exchange.
    def test_machines_that_ask_at_the_same_moment(self):
        service, first = self.founded()
        machines = [first] + [self.invited(first, f"{MACHINE}-{number}") for number in range(HOMES - 1)]
        for number in range(ROUNDS):
            began = time.monotonic()
            # An account of its own: a refreshed token must outlive a round, which takes a minute with many machines.
            account = f"{BOT}-{number}"
            first.run("login", PROVIDER, "--account", account, "--vault", TEAM)
            for machine in machines:
                machine.vault("sync", "--yes")
            self.expire()
            service.counts.clear()
            service.hurry.clear()
            # In each tenth round, the provider answers when all have started, but before credmgr gives up the request.
            service.refresh_delay = 0.2 if number % 10 else 20
            asked = "token", PROVIDER, "--account", account
            running = [machine.start(*asked) for machine in machines for _ in range(PROCESSES)]
            service.hurry.set()
            self.assert_one_token([end(process) for process in running], service)
            if ROUNDS > 1:
                print(f"round {number + 1}: {len(running)} processes, 1 exchange, {time.monotonic() - began:.0f} s",
                      file=sys.stderr, flush=True)

    def test_a_refresh_takes_five_statements_and_a_cached_token_none(self):
        _, first = self.founded()
        second = self.invited(first)
        first.vault("members")  # so that the refresh need not learn of the new member
        self.expire()
        for machine, most in ((first, 5), (second, 2), (second, 0)):
            before = len(self.server.statements(self.database))
            machine.token()
            sent = self.server.statements(self.database)[before:]
            self.assertLessEqual(len(sent), most, "\n".join(sent))
            self.assertTrue(sent or not most)

    def test_a_cached_token_makes_the_system_calls_of_an_account_here(self):
        _, first = self.founded(lifetime=3600)
        second = self.invited(first)
        second.run("login", PROVIDER, "--account", ADA)
        trace = os.path.join(self.folder, "trace")

        def calls(account):
            traced = "-f", "-qq", "-o", trace, self.binary, "token", PROVIDER, "--account", account
            outcome = self.run_program(*traced, binary="/usr/bin/strace", environment=second.environment)
            self.assertEqual(outcome.status, DONE, outcome.err)
            return [re.sub(r"^\d+ +", "", line).partition("(")[0] for line in text_of(trace).splitlines()]

        shared, own = calls(BOT), calls(ADA)
        # One program, and no connection.
        self.assertEqual(shared.count("execve"), 1)
        self.assertFalse({"socket", "connect", "fork", "vfork"} & set(shared), shared)
        self.assertEqual(set(shared), set(own))
        self.assertLess(abs(len(shared) - len(own)), 10)

    def test_the_server_stops(self):
        _, first = self.founded()
        token = first.token().line
        self.server.stop()
        try:
            self.assertEqual(first.token().line, token)
            self.expire()
            self.assertIn(TEAM, first.token(status=UNREACHABLE).err)
            # The account does not become the machine's own.
            first.run("login", PROVIDER, "--account", BOT, status=UNREACHABLE)
            self.assertIn("no other", first.copy().vault("leave", "--yes").err)
        finally:
            self.server.start()
        first.token()
        self.assertEqual(json.loads(first.run("status", "--json").out)[0]["vault"], TEAM)

    # Holders that die, or lose the network.
    def test_a_dead_holder_delays_others_for_the_lease_time(self):
        service, first = self.founded(refresh_delay=TIMEOUT)
        second = self.invited(first)
        self.expire()
        holder = first.start(*TOKEN)
        self.wait_until(lambda: service.counts["token:refresh_token"] == 1)
        holder.kill()
        end(holder)
        for waited in (0, LEASE_TIME - 5):
            if waited:
                second.patient(waited)
            second.token("--timeout", "1s", status=UNEXPECTED)
        self.assertEqual(service.counts["token:refresh_token"], 1)
        second.patient(5)
        service.hurry.set()
        # The provider had not answered the first request, so one of the two is refused.
        self.assertIn(second.token(status=None).status, (DONE, LOGIN_NEEDED))
        self.assertEqual(service.counts["token:refresh_token"], 2)

    def test_a_token_of_a_server_to_which_the_provider_moved_meanwhile(self):
        service, first = self.founded(refresh_delay=TIMEOUT)
        other = self.serve(OAuth2Server())
        second, third = self.invited(first), self.invited(first, "third")
        running = [first.start(*TOKEN, "--refresh")]
        self.wait_until(lambda: service.counts["token:refresh_token"] == 1)
        running.append(second.start(*TOKEN, "--refresh"))
        self.wait_until(lambda: glob.glob(f"{second.home}/vault/shared/**/*.lease", recursive=True))
        third.run("add-provider", PROVIDER, "--set", f"port={other.port}", "--replace", "--vault", TEAM, "--yes")
        third.run("login", PROVIDER, "--account", BOT, "--vault", TEAM, "--replace")
        service.hurry.set()
        for machine, process in zip((first, second), running):
            status, out, err = end(process)
            self.assertEqual((status, out), (USAGE, ""))
            self.assertIn("another provider", err)
            machine.run("request", PROVIDER, f"http://127.0.0.1:{service.port}/resource", "--account", BOT, status=None)
        presented = [request.headers.get("Authorization", "").split()[-1:] for request in service.requests("/resource")]
        self.assertFalse([token for token in presented if token and other.accepts(token[0])])
        # A copy that is not used is not kept either.
        second.vault("sync")
        self.assertEqual(json.loads(second.run("status", "--json").out), [])
        second.vault("sync", "--yes")
        self.assertTrue(other.accepts(second.token().line))

    def test_the_machine_of_a_dead_holder_commits_its_answer(self):
        self.require_fault_points()
        service, first = self.founded()
        second = self.invited(first)
        self.expire()
        holder = first.start(*TOKEN, CREDMGR_FAULT="refresh.kept=stop")
        self.wait_until(lambda: state(holder.pid) == "T")
        holder.kill()
        end(holder)
        self.assert_one_token([end(machine.start(*TOKEN)) for machine in (first, second)], service)

    def test_an_answer_that_waits_is_committed_although_the_token_is_valid(self):
        self.require_fault_points()
        service, first = self.founded(lifetime=3600)
        second = self.invited(first)
        for count, use in enumerate((TOKEN, ("vault", "sync"), ("vault", "verify", "--vault", TEAM)), 1):
            with self.subTest(use):
                old = first.token().line
                self.kill(first, "refresh.kept")
                self.assertEqual(self.shown(first), ("refresh", True))
                self.assertIn("credmgr vault sync", first.run("doctor", status=None).out)
                self.server.stop()
                try:
                    self.assertEqual(first.token().line, old)
                finally:
                    self.server.start()
                first.run(*use)
                token = first.token().line
                self.assertNotEqual(token, old)
                self.assertEqual(self.shown(first), ("valid", False))
                self.assertEqual(self.sql("select count(*) from credmgr.record where holder is not null"), "0")
                # The refresh token of the answer is in the vault.
                self.assertTrue(service.accepts(second.token("--refresh").line))
                self.assertEqual(service.counts["token:refresh_token"], 2 * count)
                first.token("--refresh")
                service.counts["token:refresh_token"] -= 1
        self.assertEqual(service.counts["reuse"], 0)

    def test_an_answer_outlives_the_copy_of_its_account(self):
        self.require_fault_points()
        service, first = self.founded(lifetime=3600)
        second = self.invited(first)
        old = first.token().line
        self.kill(first, "refresh.kept")
        first.run("logout", PROVIDER, "--account", BOT)
        for options in ([], ["--json"]):
            self.assertIn("waits on this machine", first.run("status", *options).err)
        self.assertNotEqual(first.run("token", PROVIDER, "--account", BOT).line, old)
        self.assertTrue(service.accepts(second.token("--refresh").line))
        self.kill(second, "refresh.kept")
        second.vault("leave", "--yes")
        self.assertTrue(service.accepts(first.token("--refresh").line))
        self.assertEqual(service.counts["reuse"], 0)

    def test_leaving_does_not_lose_an_answer_that_waits(self):
        self.require_fault_points()
        service, first = self.founded(lifetime=3600)
        second = self.invited(first)
        self.kill(second, "refresh.kept")
        self.sql(f"alter database {self.database} set default_transaction_read_only = on")
        refusal = second.vault("leave", "--yes", status=LOCKED).err
        self.assertIn("vault sync", refusal)
        self.server.stop()
        try:
            second.vault("leave", "--yes", status=UNREACHABLE)
        finally:
            self.server.start()
        self.server.sql(f"alter database {self.database} reset default_transaction_read_only")
        second.vault("leave", "--yes")
        self.assertTrue(service.accepts(first.token("--refresh").line))
        self.kill(first, "refresh.kept")
        self.server.stop()
        try:
            self.assertIn("vault sync", first.run("logout", PROVIDER, "--account", BOT).err)
            sync = f"credmgr vault sync --vault {TEAM}"
            self.assertIn(sync, first.run("status").err)
            self.assertIn(sync, first.run("doctor", status=None).out)
            self.assertIn("token that waited on this machine is lost", first.vault("leave", "--yes").err)
        finally:
            self.server.start()
        self.assertEqual(service.counts["reuse"], 0)

    def test_an_answer_is_committed_before_another_exchange(self):
        self.require_fault_points()
        service, first = self.founded(lifetime=3600)
        self.kill(first, "refresh.kept")
        # The token of the answer is not valid for so long either.
        self.assertTrue(service.accepts(first.token("--min-validity", "2h").line))
        self.assertEqual(self.shown(first), ("valid", False))
        self.assertEqual((service.counts["token:refresh_token"], service.counts["reuse"]), (2, 0))

    def test_a_login_ends_the_lease_of_an_answer_that_waits(self):
        self.require_fault_points()
        service, first = self.founded(lifetime=3600)
        second = self.invited(first)
        self.kill(first, "refresh.kept")
        first.run("login", PROVIDER, "--account", BOT)
        self.assertTrue(service.accepts(second.token("--refresh", "--timeout", "20s").line))
        self.assertTrue(service.accepts(first.token("--refresh").line))
        self.assertEqual(service.counts["reuse"], 0)

    def stopped(self, machine, point, *arguments):
        """Returns a process that stopped at a point."""
        process = machine.start(*arguments, CREDMGR_FAULT=f"{point}=stop")
        self.wait_until(lambda: state(process.pid) == "T")
        return process

    def test_an_interrupted_login_does_not_replace_a_newer_token(self):
        self.require_fault_points()
        service, first = self.founded(lifetime=3600)
        second = self.invited(first)
        for point in ("share.compared", "share.stored"):
            login = self.stopped(first, point, "login", PROVIDER, "--account", BOT)
            login.kill()
            end(login)
            for machine in (second, first, second):
                self.assertTrue(service.accepts(machine.token("--refresh").line))
        self.assertEqual(service.counts["reuse"], 0)
        first.vault("verify")

    def test_a_provider_that_changes_during_a_share(self):
        self.require_fault_points()
        service, first = self.founded(lifetime=3600)
        other = self.serve(OAuth2Server(lifetime=3600))
        second = self.invited(first)
        second.run("login", PROVIDER, "--account", ADA)
        sharing = self.stopped(second, "share.compared", "share", PROVIDER, ADA, "--vault", TEAM)
        first.run("add-provider", PROVIDER, "--set", f"port={other.port}", "--replace", "--vault", TEAM, "--yes")
        os.kill(sharing.pid, signal.SIGCONT)
        status, _, said = end(sharing)
        self.assertEqual(status, USAGE)
        self.assertIn("another provider", said)
        first.vault("sync")
        self.assertNotIn(ADA, first.run("status", "--json").out)
        self.assertTrue(service.accepts(second.run("token", PROVIDER, "--account", ADA, "--refresh").line))
        self.assertEqual(other.counts["token:refresh_token"], 0)
        # Two shares at the same moment only wait for each other.
        first.run("add-provider", PROVIDER, "--set", f"port={service.port}", "--replace", "--vault", TEAM, "--yes")
        second.run("login", PROVIDER, "--account", GRACE)
        sharing = self.stopped(second, "share.compared", "share", PROVIDER, ADA, "--vault", TEAM)
        second.run("share", PROVIDER, GRACE, "--vault", TEAM)
        os.kill(sharing.pid, signal.SIGCONT)
        self.assertEqual(end(sharing)[0], DONE)
        self.assertEqual(len(json.loads(first.vault("sync", "--json").out)["accounts"]), 3)
        first.vault("verify")

    def test_a_silent_server_delays_a_valid_token_once(self):
        self.require_fault_points()
        with Proxy(self.server.port) as network:
            _, first = self.founded(self.server.url(self.database, network.port), lifetime=3600)
            old = first.token().line
            self.kill(first, "refresh.kept")
            network.become("silent")
            began = time.monotonic()
            results = [end(process) for process in [first.start(*TOKEN) for _ in range(3)]]
            self.assertEqual([out for _, out, _ in results], [old] * 3)
            waited = time.monotonic() - began
            self.assertLess(waited, 19)  # not three times the time limit of a statement
            began = time.monotonic()
            self.assertIn("does not answer", first.token().err)
            self.assertLess(time.monotonic() - began, 5)
            network.become("open")
            first.vault("sync")
            self.assertEqual(self.shown(first), ("valid", False))

    def test_an_answer_is_committed_as_soon_as_a_silent_server_is_back(self):
        self.require_fault_points()
        with Proxy(self.server.port) as network:
            service, first = self.founded(self.server.url(self.database, network.port), lifetime=3600)

            def be_silent():
                self.kill(first, "refresh.kept")
                network.become("silent")
                self.assertIn("does not answer", first.token().err)
                network.become("open")

            be_silent()
            self.later(11)
            first.token()
            self.assertEqual(self.shown(first), ("valid", False))
            be_silent()
            self.server.stop()
            try:
                first.vault("sync", status=UNREACHABLE)
            finally:
                self.server.start()
            first.token()
            self.assertEqual(self.shown(first), ("valid", False))
            self.assertEqual(service.counts["reuse"], 0)

    def test_an_exchange_that_was_killed_is_shown(self):
        self.require_fault_points()
        _, first = self.founded(lifetime=3600)
        old = first.token().line
        self.kill(first, "refresh.noted")
        self.assertEqual(self.shown(first), ("refresh", True))
        self.assertEqual(first.token().line, old)
        before = len(self.server.statements(self.database))
        self.assertEqual(first.token().line, old)
        self.assertEqual(self.shown(first), ("valid", True))
        self.assertEqual(len(self.server.statements(self.database)), before)
        self.assertIn("interrupted", first.run("doctor", status=None).out)
        first.token("--refresh")
        self.assertEqual(self.shown(first), ("valid", False))

    def test_a_holder_that_returns_late_does_not_ask(self):
        self.require_fault_points()
        service, first = self.founded()
        second = self.invited(first)
        self.expire()
        holder = first.start(*TOKEN, CREDMGR_FAULT="refresh.noted=stop")
        self.wait_until(lambda: state(holder.pid) == "T")
        second.token("--timeout", "1s", status=UNEXPECTED)
        second.patient(LEASE_TIME)
        token = second.token().line
        holder.send_signal(signal.SIGCONT)
        status, out, err = end(holder)
        # This machine was stopped for a moment only, so it still asks, and its late answer changes nothing.
        self.assertTrue(status != DONE or out == token, (status, err))
        self.assertIn(token, second.token().line)

    def test_a_standby_that_is_away_is_named(self):
        with PostgreSQL() as self.server, self.server.standby() as standby:
            self.new_database()
            _, first = self.founded()
            self.assertNotIn("none is connected", first.vault("status").err)
            standby.kill()
            self.wait_until(lambda: self.server.sql("select count(*) from pg_stat_replication") == "0")
            outcome = first.run("vault", "status", "--vault", TEAM, status=None)
            self.assertIn("none is connected", outcome.err)
            self.assertIn("none is connected", first.run("doctor", status=None).out)
        self.server = type(self).server

    def test_a_partition_in_the_middle_of_an_exchange(self):
        """The holder's network goes silent while the provider works. Nobody else asks, and the answer arrives later."""
        for cuts in (False, True):
            with self.subTest(cuts=cuts), Proxy(self.server.port) as network:
                self.new_database()
                service, first = self.founded(self.server.url(self.database, network.port), refresh_delay=TIMEOUT)
                second = self.invited(first)
                self.expire()
                holder = first.start(*TOKEN)
                self.wait_until(lambda: service.counts["token:refresh_token"] == 1)
                network.become("silent")
                service.hurry.set()
                self.wait_until(lambda: service.counts["granted:refresh_token"] == 1)
                # The second machine reaches the server, on which the first one still holds the lease.
                self.assertEqual(self.sql("select count(*) from credmgr.record where holder is not null"), "1")
                waiting = second.start(*TOKEN)
                if cuts:
                    network.cut()
                network.become("open")
                self.assert_one_token([end(holder), end(waiting)], service)
                self.services.remove(service)
                service.__exit__()

    # Members.
    def test_a_removed_member_reads_nothing_that_is_written_later(self):
        service, first = self.founded()
        bob = self.invited(first)
        copy = bob.copy()
        listed = first.vault("remove-member", MACHINE, "--yes").out
        self.assertIn(f"credmgr logout {PROVIDER} --account {BOT} --vault {TEAM}", listed)
        self.expire()
        first.token()
        for machine in (bob, copy):
            machine.token(status=LOCKED)
            for operation in (("verify",), ("invite", "mallory"), ("members",)):
                self.assertEqual(machine.vault(*operation, status=None).status, LOCKED)
        self.assertEqual(service.counts["token:refresh_token"], 1)

    def test_invitations(self):
        _, first = self.founded(lifetime=3600)
        bob = self.invited(first)
        bob.vault("invite", "mallory", status=REFUSED)
        good = self.invitation(first, "carol")
        altered = good[:-3] + ("AAA" if good[-3:] != "AAA" else "BBB")
        void = self.invitation(first, "dave")
        for text, status, words in ((altered, USAGE, "complete"), ("nonsense", USAGE, "complete"), (good, DONE, "joined"),
                                    (good, REFUSED, "already used")):
            self.assertIn(words, self.join(text, status).err)
        first.vault("rotate", "--yes")
        self.assertIn("key has changed", self.join(void, REFUSED).err)
        elsewhere = self.invitation(first, "frank")
        late = self.invitation(first, "erin", "--for", "1s")
        self.sql("update credmgr.invitation set expires = 1")
        self.assertIn("expired", self.join(late, REFUSED).err)
        self.sql("delete from credmgr.vault")
        self.assertIn("another vault", self.join(elsewhere, REFUSED).err)

    def join(self, invitation, status):
        return self.machine().run("vault", "join", "-", "--yes", stdin=invitation + "\n", status=status)

    def test_two_administrators_remove_each_other(self):
        _, first = self.founded(lifetime=3600)
        second = self.invited(first, MACHINE, "--administrator")
        operations = (first, MACHINE), (second, ADMIN)
        running = [machine.start("vault", "remove-member", other, "--vault", TEAM, "--yes") for machine, other in operations]
        results = [end(process) for process in running]
        self.assertEqual(sorted(status == DONE for status, _, _ in results), [False, True], results)
        winner, loser = (first, second) if results[0][0] == DONE else (second, first)
        winner.vault("verify")
        self.assertEqual(len(winner.vault("members").out.splitlines()), 1)
        loser.vault("members", status=LOCKED)

    def test_an_administrator_who_is_cut_off_delays_others_for_a_bounded_time(self):
        self.require_fault_points()
        _, first = self.founded(lifetime=3600)
        second = self.invited(first)
        self.expire()
        rotation = first.start("vault", "rotate", "--vault", TEAM, "--yes", CREDMGR_FAULT="rekey.begun=stop")
        locked = "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in %'"
        self.wait_until(lambda: self.sql(locked) == "1")
        began = time.monotonic()
        second.run("login", PROVIDER, "--account", "other")
        shared = second.run("share", PROVIDER, "other", "--vault", TEAM, status=None)
        self.assertEqual(shared.status, UNREACHABLE)
        self.assertIn("another machine has locked its records", shared.err)
        self.assertLess(time.monotonic() - began, 15)
        while self.sql(locked) != "0":
            self.assertLess(time.monotonic() - began, 30)
            time.sleep(0.5)
        second.run("share", PROVIDER, "other", "--vault", TEAM)
        second.token("--refresh", "--timeout", "1s", status=UNEXPECTED)
        second.patient(LEASE_TIME)
        second.token("--refresh")
        rotation.send_signal(signal.SIGCONT)
        self.assertEqual(end(rotation)[0], UNREACHABLE)
        first.vault("rotate", "--yes")
        for machine in (first, second):
            machine.vault("verify")

    # Networks.
    def test_a_pooler_in_transaction_mode(self):
        with Pooler(self.server, [self.database], size=2) as pooler:
            service, first = self.founded(self.server.url(self.database, pooler.port))
            second = self.invited(first)
            self.expire()
            self.assert_one_token([end(process) for process in [
                machine.start(*TOKEN) for machine in (first, second) for _ in range(PROCESSES)]], service)
            first.vault("rotate", "--yes")
            first.vault("verify")

    def test_certificates(self):
        create = "vault", "create", TEAM, "--member", ADMIN, "--at"
        url = self.server.url(self.database) + "?sslmode=verify-full"
        elsewhere = url.replace("127.0.0.1", "db.example") + "&hostaddr=127.0.0.1"
        with postgres.authority() as other:
            ours, theirs = {"PGSSLROOTCERT": self.authority.certificate}, {"PGSSLROOTCERT": other.certificate}
            for address, variables in ((url, theirs), (elsewhere, ours), (elsewhere.replace("verify-full", "disable"), ours)):
                self.assertIn("certificate", self.machine(**variables).run(*create, address, status=UNREACHABLE).err)
        first = self.machine(**ours)
        first.run(*create, url)
        self.assertIn("encrypted", first.vault("status").out)

    def test_a_server_that_dies_during_the_handshake_cannot_be_reached(self):
        def serve(listener):
            with listener.accept()[0] as connection:
                connection.recv(8)
                connection.sendall(b"S")
                connection.recv(1)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass

        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=serve, args=(listener,), daemon=True)
            thread.start()
            address = f"postgresql://db.example:{listener.getsockname()[1]}/x?hostaddr=127.0.0.1&sslmode=verify-full"
            machine = self.machine(PGSSLROOTCERT=self.authority.certificate)
            said = machine.run("vault", "create", TEAM, "--member", ADMIN, "--at", address, status=UNREACHABLE).err
        self.assertIn("cannot reach", said)

    def test_places_from_the_environment_do_not_switch_off_tls(self):
        """The address names loopback, but libpq would go elsewhere."""
        create = "vault", "create", TEAM, "--member", ADMIN, "--at", self.server.url(self.database)
        services = self.file("services", "[svc]\nhostaddr=192.0.2.2\n")
        for variables in {"PGHOSTADDR": "192.0.2.2"}, {"PGSERVICEFILE": services, "PGSERVICE": "svc"}:
            outcome = self.machine(**variables, PGCONNECT_TIMEOUT="2").run(*create, status=UNREACHABLE)
            self.assertNotIn("does not contain", outcome.err)
        # With a place on loopback, TLS with a name is demanded.
        near = self.machine(PGSERVICEFILE=self.file("near", "[svc]\nhostaddr=127.0.0.1\n"), PGSERVICE="svc")
        self.assertIn("certificate", near.run(*create, status=UNREACHABLE).err)

    def test_a_changed_password_of_the_database(self):
        self.environment.pop("PGPASSWORD")
        first = self.machine()
        address = self.server.url(self.database)
        first.run("vault", "create", TEAM, "--at", address, "--member", ADMIN, "--password-file",
                  self.file("old", PASSWORD + "\n"))
        self.sql(f"alter role {self.database} password 'n3w'")
        self.assertIn("--password-file", first.vault("members", status=LOCKED).err)
        other = Machine(self, first.home, {"PGPASSWORD": "n3w"})
        other.vault("members")
        # The invitation would contain the old password.
        other.vault("invite", MACHINE, status=LOCKED)
        first.vault("sync", "--password-file", self.file("wrong", "other\n"), status=LOCKED)
        first.vault("sync", "--password-file", self.file("new", "n3w\n"))
        first.vault("members")

    # Bad input.
    def test_servers_that_cannot_hold_a_vault(self):
        create = "vault", "create", TEAM, "--member", ADMIN, "--at"
        url, secret = self.server.url(self.database), "hunter2-of-the-database"
        self.server.create("without" + self.database, rights=False)
        self.server.create("other" + self.database)
        self.server.sql("create schema credmgr; create table credmgr.vault(name text)", "other" + self.database)
        for address, variables, status, words in (
            (url.replace("@", f":{secret}@"), {}, USAGE, "password"),
            ("mysql://localhost/x", {}, USAGE, "cannot read the address"),
            (f"e1:{secret}@127.0.0.1/e1", {}, USAGE, "cannot read the address"),
            (f"postgresql//e1:{secret}@127.0.0.1/e1", {}, USAGE, "cannot read the address"),
            (f"user=e1 password = {secret} host=127.0.0.1 foo", {}, USAGE, "cannot read the address"),
            (f"host=e1:{secret}@127.0.0.1 dbname=e1", {}, USAGE, "cannot read the address"),
            (f"{url}&passwor={secret}", {}, USAGE, "cannot read the address"),
            (self.server.socket_url(self.database).replace(f"/{self.database}?", "/nowhere?"), {}, UNREACHABLE, "nowhere"),
            (url, {"PGPASSWORD": secret, "PGSSLROOTCERT": self.authority.certificate}, LOCKED, "password"),
            (url.replace(f":{self.server.port}", ":1"), {}, UNREACHABLE, "cannot reach"),
            (self.server.socket_url("without" + self.database), {}, LOCKED, "permission denied"),
            (self.server.socket_url("other" + self.database), {}, LOCKED, ""),
            (self.url() + "&options=-c%20default_transaction_read_only%3Don", {}, LOCKED, "accepts no changes"),
        ):
            with self.subTest(address):
                outcome = self.machine(**variables).run(*create, address, status=status)
                self.assertIn(words, outcome.err)
                self.assertNotIn(secret, outcome.err)

    def test_a_full_disk(self):
        if os.geteuid() != 0:
            self.skipTest("only root can mount a small file system")
        with PostgreSQL() as self.server:
            small = os.path.join(self.server.folder, "small")
            os.mkdir(small)
            options = f"size=24m,mode=700,uid={postgres.OWNER.pw_uid},gid={postgres.OWNER.pw_gid}"
            mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", small]
            if subprocess.run(mount, capture_output=True, check=False).returncode:
                self.skipTest("this machine mounts no small file system")
            try:
                self.refresh_on_a_full_disk(small)
            finally:
                self.server.kill()
                # Killed processes of the server may not have ended yet.
                subprocess.run(["umount", "--lazy", small], check=True)
        self.server = type(self).server

    def refresh_on_a_full_disk(self, small):
        self.server.sql(f"create tablespace small location '{small}'")
        self.new_database()
        self.server.sql(f"alter database {self.database} set tablespace small")
        service, first = self.founded()
        second = self.invited(first)
        self.sql("create table filler(x text)")
        for count in (5000, 500, 50, 5, 1):
            # psql ends with an error as soon as the disk is full.
            with contextlib.suppress(AssertionError):
                while True:
                    self.sql(f"insert into filler select repeat(md5(random()::text), 30) from generate_series(1, {count})")
        # The first changes still find room in old pages.
        outcome = first.token("--refresh", status=None)
        for _ in range(100):
            if outcome.status != DONE:
                break
            outcome = first.token("--refresh", status=None)
        self.assertEqual(outcome.status, LOCKED, outcome.err)
        self.assertIn("full", outcome.err)
        self.sql("drop table filler")
        token = first.token("--refresh").line
        self.assertTrue(service.accepts(token))
        self.assertEqual(service.counts["reuse"], 0)
        second.vault("verify")

    def test_databases_that_changed_after_the_start(self):
        _, first = self.founded()
        before = self.server.dump(self.database)
        self.expire()
        for change, words in (
            ("drop schema credmgr cascade", "does not contain"),
            ("update credmgr.vault set version = 2000", "version"),
            ("alter table credmgr.record drop column holder", "changed"),
            ("alter table credmgr.record alter column revision type text", ""),
            (f"revoke all on all tables in schema credmgr from {self.database}", "permission denied"),
        ):
            with self.subTest(change):
                self.sql(change)
                self.assertIn(words, first.token(status=LOCKED).err)
                self.server.restore(self.database, before)
        self.sql(f"grant all on all tables in schema credmgr to {self.database}")
        first.token()

    def test_doctor_reports_a_server_that_accepts_no_changes(self):
        _, first = self.founded(lifetime=3600)
        self.sql(f"alter database {self.database} set default_transaction_read_only = on")
        outcome = first.run("doctor", status=None)
        self.assertEqual(outcome.status, LOCKED)
        self.assertIn("accepts no changes", outcome.out)

    def test_a_database_that_becomes_read_only_during_an_exchange(self):
        for ends in (False, True):
            with self.subTest(ends=ends):
                self.new_database()
                service, first = self.founded(refresh_delay=TIMEOUT, refreshed_lifetime=3600)
                second = self.invited(first)
                self.expire()
                holder = first.start(*TOKEN)
                self.wait_until(lambda: service.counts["token:refresh_token"] == 1)
                self.server.reload(default_transaction_read_only="on")
                try:
                    service.hurry.set()
                    self.wait_until(lambda: service.counts["granted:refresh_token"] == 1)
                    if ends:
                        holder.terminate()
                        self.assertIn("accepts no changes", end(holder)[2])
                        self.assertIn("accepts no changes", first.token(status=LOCKED).err)
                finally:
                    self.server.reload(default_transaction_read_only="off")
                started = [first.start(*TOKEN)] if ends else [holder]
                self.assert_one_token([end(process) for process in [*started, second.start(*TOKEN)]], service)
                self.services.remove(service)
                service.__exit__()

    def test_clocks_that_disagree_by_an_hour(self):
        self.require_fault_points()
        service, first = self.founded(lifetime=7200)
        token = first.token().line
        for offset in ("3600", "-3600"):
            other = self.machine(CREDMGR_CLOCK_OFFSET=offset)
            other.run("vault", "join", "-", "--yes", stdin=self.invitation(first, "machine" + offset) + "\n")
            self.assertEqual(other.token().line, token)
        first.vault("verify")
        self.assertEqual(service.counts["token:refresh_token"], 0)

    def test_the_simulation_of_a_fleet(self):
        """The same assumptions give the same result; docs/shared-vault.md uses it."""
        command = [sys.executable, os.path.join(ROOT, "Benchmarks", "fleet.py"), "--machines", "300", "--accounts", "3",
                   "--failover", "3600"]
        one, other = (subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2))
        self.assertEqual(one, other)
        self.assertIn("refreshes:", one)


class LostAnswers(TeamTest):
    """Without TLS, so that the network can tell statements apart."""

    def test_an_answer_is_found_after_a_lost_lease_and_an_outage(self):
        self.require_fault_points()
        with Proxy(self.server.port) as network:
            service, first = self.founded(self.server.url(self.database, network.port), lifetime=3600)
            self.kill(first, "refresh.kept")
            # The server has made this machine the holder again, which does not get to know it.
            network.when("SET holder=$3", "mute")
            first.token()
            self.assertEqual(network.mode, "mute")
            network.cut()
            network.become("open")
            self.server.stop()
            try:
                for _ in range(10):
                    first.vault("sync", status=UNREACHABLE)
            finally:
                self.server.start()
            first.vault("sync")
            self.assertEqual(self.shown(first), ("valid", False))
            self.assertTrue(service.accepts(first.token("--refresh").line))
            self.assertEqual(service.counts["reuse"], 0)

    def test_commits_whose_answers_are_lost(self):
        with Proxy(self.server.port) as network:
            _, first = self.founded(self.server.url(self.database, network.port), lifetime=3600)

            def losing(mode, machine, *arguments, text=""):
                """Runs an operation that loses its commit, or the answer to it."""
                network.when("COMMIT", mode)
                running = machine.start("vault", *arguments)
                network.wait_for(mode)
                network.cut()
                network.become("open")
                return end(running)

            for mode in ("silent", "mute"):
                invitation = self.invitation(first, f"member-{mode}")
                other = self.machine()
                status, _, said = losing(mode, other, "join", invitation)
                self.assertEqual(status, UNREACHABLE)
                self.assertIn("again with the same invitation", said)
                if mode == "silent":
                    self.assertIn(f"credmgr vault join - --as {TEAM}", other.run(*TOKEN, status=LOCKED).err)
                self.assertIn("joined", other.run("vault", "join", "-", "--yes", stdin=invitation + "\n").err)
                other.token()
                first.vault("verify")
            status, listed, _ = losing("mute", first, "remove-member", "member-mute", "--vault", TEAM, "--yes")
            self.assertEqual(status, DONE)
            revoke = f"credmgr logout {PROVIDER} --account {BOT} --vault {TEAM}"
            self.assertIn(revoke, listed)
            first.vault("verify")
            # The server stays away until the program gives up.
            network.when("COMMIT", "mute")
            running = first.start("vault", "remove-member", "member-silent", "--vault", TEAM, "--yes")
            network.wait_for("mute")
            self.wait_until(lambda: self.sql("select max(epoch) from credmgr.vault").strip() == "3")
            self.server.stop()
            try:
                network.cut()
                network.become("open")
                status, _, said = end(running)
                self.assertEqual(status, UNREACHABLE)
                self.assertIn("run the command again", said)
            finally:
                self.server.start()
            for _ in range(2):
                again = first.vault("remove-member", "member-silent", "--yes")
                self.assertIn("was removed", again.err)
                self.assertIn(revoke, again.out)
            removals = [line for line in first.run("log", "--vault", TEAM).out.splitlines() if "member-silent" in line]
            self.assertEqual(len([line for line in removals if "remove" in line]), 1)
            # A later login is not among what the member could read. The clocks of the machines may differ by an hour.
            if is_test_build():
                self.later(7200)
                first.run("login", PROVIDER, "--account", BOT)
                self.assertNotIn(revoke, first.vault("remove-member", "member-silent", "--yes").out)


class Failover(TeamTest):
    """The primary dies at a stage of a refresh, and its standby replaces it."""

    # The statement at which the network loses something, whether the provider has been asked before, and what is lost:
    # the statement ("silent") or only its answer ("mute"). Without one, the primary dies while the provider is asked.
    STAGES = (
        ("unnest", True, "mute"), ("unnest", True, "silent"), (None, True, None),  # the commit
        ("SET holder=$3", False, "silent"), ("SET holder=$3", False, "mute"),  # the lease
        ("unnest", False, "silent"), ("unnest", False, "mute"),  # the note
    )

    def test_the_primary_dies_during_a_refresh(self):
        for number in range(max(ROUNDS, len(self.STAGES))):
            stage = self.STAGES[number % len(self.STAGES)]
            with self.subTest(number), PostgreSQL() as primary, primary.standby() as standby, Proxy(primary.port) as network:
                self.server = primary
                self.new_database()
                service = self.kill_primary(primary, standby, network, *stage)
                self.services.remove(service)
                service.__exit__()
                if ROUNDS > 1:
                    print(f"failover {number + 1}: {stage}, 1 exchange, no reuse, nothing lost", file=sys.stderr, flush=True)

    def kill_primary(self, primary, standby, network, statement, is_asked, mode):
        hosts = f"127.0.0.1:{network.port},127.0.0.1:{standby.port}"
        service, first = self.founded(f"postgresql://{self.database}@{hosts}/{self.database}")
        second = self.invited(first)
        self.expire()
        if is_asked:
            service.refresh_delay = TIMEOUT
        else:
            network.when(statement, mode)
        running = first.start(*TOKEN)
        if is_asked:
            self.wait_until(lambda: service.counts["token:refresh_token"] == 1)
        if is_asked and statement:
            network.when(statement, mode)
            service.hurry.set()
        if statement:
            network.wait_for(mode)
        primary.kill()
        network.become("open")
        network.cut()
        standby.promote()
        service.hurry.set()
        status, token, err = end(running)
        if status != DONE:
            # The program may say that it cannot reach the server. Its next run continues.
            self.assertEqual(status, UNREACHABLE, err)
            token = first.token().line
        self.assertEqual(second.token().line, token)
        self.assertTrue(service.accepts(token))
        self.assertEqual((service.counts["reuse"], service.counts["granted:refresh_token"]), (0, 1))
        return service
