"""The database servers of the judge itself: a standby that replaces its primary, a pooler, TLS, and a silent network."""

import os
import subprocess
import unittest

import postgres
from postgres import PASSWORD, Pooler, PostgreSQL, Proxy


def ask(url, text, timeout=60, **variables):
    """Returns the status and the output of psql with a URL."""
    try:
        done = subprocess.run([postgres.program("psql"), "-X", "-A", "-t", url, "-c", text], capture_output=True, text=True,
                              timeout=timeout, env={**postgres.environment(), "PGPASSWORD": PASSWORD, **variables})
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout.strip() + done.stderr


@unittest.skipUnless(os.environ.get("CREDMGR_ROUNDS"), "other tests use these servers every day; script/siege runs this one")
class Servers(unittest.TestCase):
    def test_a_standby_a_pooler_and_a_network_that_loses_answers(self):
        with PostgreSQL() as server, Pooler(server, ["team"]) as pooler, Proxy(server.port) as network:
            server.create("team")
            self.assertEqual(ask(server.url("team"), "create table t (n int)"), (0, "CREATE TABLE"))
            self.assertEqual(ask(server.url("team", pooler.port), "insert into t values (1)"), (0, "INSERT 0 1"))
            dump = server.dump("team")
            network.when("values (2)", "mute")
            self.assertEqual(ask(server.url("team", network.port), "insert into t values (2)", timeout=0.5)[0], None)
            server.sql("select 1")
            self.assertEqual(ask(server.socket_url("team"), "select sum(n) from t"), (0, "3"))
            self.assertEqual(server.statements("team")[-1], "select sum(n) from t")
            with server.standby() as standby:
                ask(server.url("team"), "insert into t values (4)")
                server.kill()
                standby.promote()
                self.assertEqual(ask(standby.url("team"), "select sum(n) from t"), (0, "7"))
                standby.restore("team", dump)
                self.assertEqual(ask(standby.url("team"), "select sum(n) from t"), (0, "1"))

    def test_tls(self):
        with postgres.authority() as ours, postgres.authority() as other, PostgreSQL(tls=ours) as server:
            server.create("team")
            verify = {"PGSSLMODE": "verify-full"}
            url = server.url("team")
            self.assertEqual(ask(url, "select 1", PGSSLROOTCERT=ours.certificate, **verify), (0, "1"))
            self.assertIn("certificate verify failed", ask(url, "select 1", PGSSLROOTCERT=other.certificate, **verify)[1])
            self.assertEqual(ask(url, "select 1", PGSSLMODE="disable")[0], 2)


