#!/usr/bin/env python3
"""Measures a shared vault on a real PostgreSQL server: statements, refreshes a second, many accounts that expire in the
same minute, and the size of the database.

    shared_vault.py [--quick] [--write]

--quick measures with fewer clients, delays and accounts. --write puts the tables into docs/shared-vault.md.
$CREDMGR_BIN is the measured program; the default is the release build.
"""

import argparse
import json
import os
import platform
import re
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "Tests", "Judge"))

from browser import Browser  # noqa: E402
from postgres import PostgreSQL  # noqa: E402
from service import Service, json_response, redirect, with_query  # noqa: E402

CREDMGR = os.path.abspath(os.environ.get("CREDMGR_BIN", os.path.join(ROOT, ".build", "release", "credmgr")))
REPORT = os.path.join(ROOT, "docs", "shared-vault.md")
BEGIN, END = "<!-- figures: Benchmarks/shared_vault.py --write -->", "<!-- end of figures -->"
PROVIDER, DATABASE = "measured", "vaults"
DESCRIPTOR = """\
provider: measured
grant: authorization_code
endpoints:
  authorization: {base}/authorize
  token: {base}/token
client: {{ authentication: none }}
hosts: [{host}]
"""


class Provider(Service):
    """Rotates refresh tokens, detects reuse, and answers after `delay` seconds."""

    def __init__(self):
        super().__init__()
        self.delay, self.valid, self.reuse, self.refreshes = 0.0, set(), 0, 0
        self.lifetime = 3600
        self.times = []
        self.routes = {("GET", "/authorize"): self.authorize, ("POST", "/token"): self.token}

    def authorize(self, request):
        asked = dict(request.query)
        return redirect(with_query(asked["redirect_uri"], {"code": "code", "state": asked["state"]}))

    def token(self, request):
        form = request.form_fields()
        if form["grant_type"] == "refresh_token":
            time.sleep(self.delay)
            with self.lock:
                if form["refresh_token"] not in self.valid:
                    self.reuse += 1
                    return json_response({"error": "invalid_grant"}, 400)
                self.valid.remove(form["refresh_token"])
                self.refreshes += 1
                self.times.append(time.monotonic())
        new = secrets.token_hex(20)
        with self.lock:
            self.valid.add(new)
            self.exchanges.clear()
        return json_response({"access_token": secrets.token_hex(20), "refresh_token": new, "token_type": "Bearer",
                              "expires_in": self.lifetime})


class Fleet:
    """Machines that joined the same vault."""

    def __init__(self, folder, server, provider):
        self.folder, self.server, self.provider = folder, server, provider
        self.environment = {"PATH": "/usr/bin:/bin", "HOME": folder, "LANG": "C.UTF-8", "BROWSER": "true",
                            "CREDMGR_CHEAP_PASSPHRASES": "1"}
        self.machines = []

    def run(self, home, *arguments, text="", status=0, opens=False):
        """Runs credmgr to its end. `opens` opens the page that it prints."""
        if opens:
            return self.open_page(home, *arguments)
        done = subprocess.run([CREDMGR, *arguments], env={**self.environment, "CREDMGR_HOME": home}, input=text, text=True,
                              capture_output=True, timeout=600, check=False)
        if status is not None and done.returncode != status:
            raise RuntimeError(f"credmgr {' '.join(arguments)}: status {done.returncode}\n{done.stderr}")
        return done.stdout.strip()

    def open_page(self, home, *arguments):
        process = subprocess.Popen(
            [CREDMGR, *arguments, "--no-browser"], text=True, env={**self.environment, "CREDMGR_HOME": home},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = ""
        for line in process.stderr:
            said += line
            found = re.search(r"^  (http://\S+)$", line)
            if found:
                Browser().open(found.group(1))
        if process.wait(60):
            raise RuntimeError(f"the login failed: {said}")

    def found(self):
        home = os.path.join(self.folder, "machine-0")
        self.machines.append(home)
        self.run(home, "vault", "create", "team", "--at", self.server.socket_url(DATABASE), "--member", "admin")
        descriptor = os.path.join(self.folder, "measured.yaml")
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(DESCRIPTOR.format(base=self.provider.base, host=self.provider.base.removeprefix("http://")))
        self.run(home, "add-provider", descriptor, "--client-id", "measured")

    def login(self, account):
        self.run(self.machines[0], "login", PROVIDER, "--account", account, "--vault", "team", opens=True)

    def join(self):
        home = os.path.join(self.folder, f"machine-{len(self.machines)}")
        invitation = self.run(self.machines[0], "vault", "invite", f"machine-{len(self.machines)}", "--vault", "team")
        self.machines.append(home)
        self.run(home, "vault", "join", "-", "--yes", text=invitation + "\n")

    def statements(self, *command, machine=0):
        before = len(self.server.statements(DATABASE))
        self.run(self.machines[machine], *command)
        return len(self.server.statements(DATABASE)) - before


def refreshes(fleet, clients, delay, seconds):
    """Returns the refreshes a second of `clients` programs, each of which refreshes an account of its own, and the median
    time of one."""
    fleet.provider.delay = delay
    stop = time.monotonic() + seconds
    times, lock = [], threading.Lock()

    def work(number):
        while time.monotonic() < stop:
            began = time.monotonic()
            fleet.run(fleet.machines[number % len(fleet.machines)], "token", PROVIDER, "--account", f"account-{number}",
                      "--refresh")
            with lock:
                times.append((time.monotonic(), time.monotonic() - began))

    began = time.monotonic()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = time.monotonic() - began
    return len(times) / spent, statistics.median(each for _, each in times) * 1000


def size(server):
    """Returns the bytes of the table of records with its indexes, and of the log."""
    server.sql("vacuum full credmgr.record", DATABASE)
    server.sql("vacuum full credmgr.event", DATABASE)
    return [int(server.sql(f"select pg_total_relation_size('credmgr.{table}')", DATABASE)) for table in ("record", "event")]


def in_parallel(workers, count, work):
    """Calls `work` with 0 to `count` - 1, and returns the seconds."""
    numbers, lock = iter(range(count)), threading.Lock()

    def run():
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            work(number)

    began = time.monotonic()
    threads = [threading.Thread(target=run) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - began


def many(fleet, count):
    """Lets many accounts expire in the same second. Returns the seconds until each has a new token, and those that a
    machine takes to get them all.

    One login is copied under other names with tokens of their own, and each account is shared."""
    provider, home = fleet.provider, fleet.machines[0]
    provider.delay, provider.lifetime = 0.05, 1
    fleet.run(home, "login", PROVIDER, "--account", "many", opens=True)
    export = json.loads(fleet.run(home, "vault", "export", "-", "--plain", "--plain"))
    model = next(each for each in export["records"] if each["kind"] == "credential" and each["account"] == "many")
    export["records"] = []
    for number in range(count):
        value = {**model["value"], "access_token": secrets.token_hex(20), "refresh_token": secrets.token_hex(20)}
        provider.valid.add(value["refresh_token"])
        export["records"].append({**model, "account": f"many-{number}", "value": value})
    path = os.path.join(fleet.folder, "many.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(export, file)
    fleet.run(home, "vault", "import", path, "--plain", "--yes")
    in_parallel(16, count, lambda number: fleet.run(home, "share", PROVIDER, f"many-{number}", "--vault", "team"))
    provider.lifetime = 3600
    began = time.monotonic()
    for home in fleet.machines[1:]:
        fleet.run(home, "vault", "sync", "--vault", "team", "--yes")
    synchronized = (time.monotonic() - began) / (len(fleet.machines) - 1)
    return synchronized, in_parallel(16, count, lambda number: fleet.run(
        fleet.machines[number % len(fleet.machines)], "token", PROVIDER, "--account", f"many-{number}"))


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    with open(CREDMGR, "rb") as file:
        build = "debug" if b"CREDMGR_FAULT" in file.read() else "release"
    return (f"{time.strftime('%Y-%m-%d')}, a {build} build, PostgreSQL with a synchronous standby on the "
            f"same machine, Linux {platform.release()}, {os.cpu_count()} cores ({model}), "
            f"load {os.getloadavg()[0]:.2f} at the beginning")


class Lines(list):
    """Lines that are also printed at once, because the later parts take long."""

    def append(self, line):
        print(line, flush=True)
        super().append(line)

    def __iadd__(self, lines):
        for line in lines:
            self.append(line)
        return self


def write(text):
    with open(REPORT, encoding="utf-8") as file:
        before, rest = file.read().split(BEGIN)
    with open(REPORT, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "\n" + text + END + rest.split(END)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--clients", type=int, nargs="+", help="programs at the same time (default: 1 8 64)")
    parser.add_argument("--accounts", type=int, help="accounts that expire in the same minute (default: 10000)")
    options = parser.parse_args()
    clients, delays, seconds = ((1, 4), (0, 50), 2) if options.quick else ((1, 8, 64), (0, 50, 500), 10)
    clients = options.clients or clients
    lines = Lines()
    lines += [machine(), ""]
    folder = tempfile.mkdtemp(prefix="credmgr-bench-")
    try:
        # As in production, commits wait for the disk and for a standby. The log of statements is for the first part.
        with Provider() as provider, PostgreSQL(durable=True, max_connections="200") as server, server.standby():
            server.create(DATABASE)
            fleet = Fleet(folder, server, provider)
            fleet.found()
            for number in range(max(clients)):
                fleet.login(f"account-{number}")
            for _ in range(3):
                fleet.join()
            fleet.run(fleet.machines[0], "vault", "members", "--vault", "team")
            token = ("token", PROVIDER, "--account", "account-0")
            lines += ["| what | statements |", "| --- | --- |"]
            lines.append(f"| a refresh | {fleet.statements(*token, '--refresh')} |")
            # A machine whose copy has expired, after another one has refreshed the token.
            provider.lifetime = 2
            fleet.run(fleet.machines[0], *token, "--refresh")
            fleet.run(fleet.machines[1], "vault", "sync", "--vault", "team", "--yes")
            provider.lifetime = 3600
            time.sleep(3)
            fleet.run(fleet.machines[0], *token)
            lines.append(f"| a token that another machine stored | {fleet.statements(*token[:4], machine=1)} |")
            lines.append(f"| a token that is cached | {fleet.statements(*token)} |")
            lines.append("")
            server.reload(log_statement="none")
            lines.append("| refreshes a second, and the median time of one | " + " | ".join(
                f"provider {delay} ms" for delay in delays) + " |")
            lines.append("| --- |" + " --- |" * len(delays))
            for count in clients:
                cells = []
                for delay in delays:
                    rate, median = refreshes(fleet, count, delay / 1000, seconds)
                    cells.append(f"{rate:.1f}, {median:.0f} ms")
                lines.append(f"| {count} client{'s' * (count > 1)} | " + " | ".join(cells) + " |")
            lines.append("")
            count = options.accounts or (20 if options.quick else 10_000)
            before = fleet.provider.refreshes
            synchronized, spent = many(fleet, count)
            lines.append(f"{count} accounts that expired in the same second had new tokens after {spent:.0f} s, with 16 "
                         f"programs at the same time: {count / spent:.0f} a second, "
                         f"{fleet.provider.refreshes - before} exchanges. A new machine got all of them with `vault sync` "
                         f"in {synchronized:.1f} s.")
            records, events = size(server)
            logged = max(1, int(server.sql("select count(*) from credmgr.event", DATABASE)))
            lines.append(f"An account takes {records / (max(clients) + count):.0f} bytes in the database, and an event of the "
                         f"log {events / logged:.0f} bytes.")
            lines.append(f"The provider saw {provider.refreshes} refreshes and {provider.reuse} reused refresh tokens.")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = "\n".join(lines) + "\n"
    if options.write:
        write(text)


if __name__ == "__main__":
    main()
