"""Measures credmgr against its goals; started by script/bench, which builds everything first."""

import argparse
import http.client
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "Tests", "Judge"))

from browser import Browser  # noqa: E402
from measuring import Command, at_once, in_turn, is_over, medians, peak_memory  # noqa: E402
from peers import HOST, QUESTION, TOKEN, Peers  # noqa: E402

RELEASE = os.path.join(ROOT, ".build", "release")
CREDMGR = os.path.join(RELEASE, "credmgr")

# The file for the results of `--write`.
REPORT = os.path.join(ROOT, "docs", "performance.md")
BEGIN, END = "<!-- figures: script/bench --write -->", "<!-- end of figures -->"

DESCRIPTOR = """\
provider: {id}
grant: [authorization_code, client_credentials]
endpoints:
  authorization: https://{host}/authorize
  token: https://{host}/token
hosts: [{host}]
git: {{ hosts: [{host}], username: ada }}
client: {{ authentication: client_secret_post }}
"""


# A machine's own token, with the binding to a key or without one.
MACHINE = """\
provider: {id}
grant: client_credentials
endpoints: {{ token: https://bench.example/token }}
hosts: [bench.example]
token_binding: {binding}
"""


class Home:
    """A temporary home for credmgr."""

    def __init__(self, folder, environment, program=CREDMGR):
        self.path = folder
        self.program = program
        self.environment = {**environment, "CREDMGR_HOME": folder}
        os.makedirs(folder, 0o700, exist_ok=True)

    def credmgr(self, *arguments, text="", environment=None):
        outcome = subprocess.run([self.program, *arguments], env={**self.environment, **(environment or {})}, input=text,
                                 capture_output=True, text=True, timeout=120, check=False)
        if outcome.returncode != 0:
            raise RuntimeError(f"credmgr {' '.join(arguments)}: status {outcome.returncode}\n{outcome.stderr}")
        return outcome.stdout

    def command(self, *arguments, text="", expected=None):
        command = Command([self.program, *arguments], self.environment, text, expected)
        command.prepare(self.path)
        return command

    def grow(self, descriptors, accounts):
        """Adds this many of both; the first account is the default."""
        for number in range(descriptors):
            identifier = "bench" if number == 0 else f"another-{number}"
            path = os.path.join(self.path, identifier + ".yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(DESCRIPTOR.format(id=identifier, host=HOST if number == 0 else f"host-{number}.example"))
            self.credmgr("add-provider", path, "--client-id", "bench", "--replace")
        for number in range(1, accounts + 1):
            self.credmgr("login", "bench", "--account", f"account-{number}", "--with-token", text=f"{TOKEN}-{number}\n")
        self.credmgr("use", "bench", "account-1")
        self.accounts = accounts

    def copy(self, folder):
        shutil.copytree(self.path, folder)
        return Home(folder, self.environment)

    def unlocked(self, folder):
        """Returns a copy that only a passphrase opens, whose keys the kernel keeps for an hour; `None` if it cannot."""
        copy = self.copy(folder)
        passphrase = os.path.join(folder, "passphrase")
        with open(passphrase, "w", encoding="utf-8") as file:
            file.write("correct horse battery staple\n")
        answer = {"CREDMGR_PASSPHRASE_FILE": passphrase}
        copy.credmgr("vault", "protect", "passphrase", environment=answer)
        copy.credmgr("vault", "protect", "key-file", "--remove", environment=answer)
        try:
            copy.credmgr("vault", "unlock", "--for", "1h", environment=answer)
        except RuntimeError:
            return None
        return copy

    def token(self):
        return self.command("token", "bench")

    def git_get(self):
        return self.command("git-credential", "get", text=QUESTION, expected="password=")


class Simulator:
    def __init__(self, home, *arguments):
        self.process = subprocess.Popen(
            [CREDMGR, "simulate", *arguments], env=home.environment, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        said = {}
        for line in self.process.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "listening":
                self.origin = rest = rest.removeprefix("on ")
            said[word] = rest
            if word == "ready":
                break
        # The simulator's descriptor equals the bench's except for its addresses.
        with open(said["descriptor"], encoding="utf-8") as file:
            self.token = re.search(r"\btoken:[\s{]*(?:url: *)?\"?(http[^\s\",}]+)", file.read()).group(1)
        self.client, self.secret_file = said["client-id"], said["client-secret-file"]
        home.credmgr("add-provider", said["descriptor"], "--replace", "--client-id", self.client,
                     "--client-secret-file", self.secret_file)

    def answer_time(self, rounds):
        """Returns the milliseconds of a token request alone, including the connection."""
        with open(self.secret_file, encoding="utf-8") as file:
            secret = file.read().strip()
        parts = urllib.parse.urlsplit(self.token)
        body = urllib.parse.urlencode(
            {"grant_type": "client_credentials", "client_id": self.client, "client_secret": secret})
        times = []
        for _ in range(rounds):
            before = time.perf_counter_ns()
            connection = http.client.HTTPConnection(parts.netloc)
            connection.request("POST", parts.path, body, {"Content-Type": "application/x-www-form-urlencoded"})
            answer = connection.getresponse()
            answer.read()
            connection.close()
            times.append((time.perf_counter_ns() - before) / 1e6)
            if answer.status != 200:
                raise RuntimeError(f"the simulator answered {answer.status}")
        return statistics.median(times)

    def close(self):
        self.process.terminate()
        self.process.wait()


def login_work(home, rounds):
    """Returns the milliseconds of a complete login with a browser in this process, minus those outside credmgr."""
    times = []
    started = time.monotonic()
    for _ in range(rounds):
        start = time.perf_counter_ns()
        process = subprocess.Popen([CREDMGR, "login", "bench", "--account", "ada", "--no-browser"],
                                   env=home.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        said = []
        for line in process.stderr:
            said.append(line)
            if "http" in line:
                break
        address = next((word for word in "".join(said).split() if word.startswith("http")), None)
        if address is None:
            raise RuntimeError(f"login printed no address, but {''.join(said)}")
        asked = time.perf_counter_ns()
        # Stop at the redirect, because the work after it belongs to the login.
        callback = consent(address)
        agreed = time.perf_counter_ns()
        parts = urllib.parse.urlsplit(callback)
        connection = http.client.HTTPConnection(parts.netloc)
        connection.request("GET", parts.path + "?" + parts.query)
        connection.getresponse().read()
        connection.close()
        process.stderr.read()
        if process.wait() != 0:
            raise RuntimeError("the login failed")
        times.append((time.perf_counter_ns() - agreed + asked - start) / 1e6)
        if is_over(started, len(times)):
            break
        # A login that starts within the same tick of the kernel's clock may use this login's token.
        time.sleep(0.05)
    return statistics.median(times)


def consent(address):
    class Person(Browser):
        """Stops before following the redirect."""

        def open(self, url):
            return super().open(url)

        def exchange(self, parts, method, body):
            if parts.netloc != urllib.parse.urlsplit(address).netloc:
                raise Callback(urllib.parse.urlunsplit(parts))
            return super().exchange(parts, method, body)

    try:
        Person().open(address)
    except Callback as callback:
        return callback.args[0]
    raise RuntimeError("nobody was sent back")


class Callback(Exception):
    pass


class Bench:
    def __init__(self, folder, quick, against=None):
        self.folder = folder
        self.against = against
        self.rounds = 50 if quick else 500
        self.few_rounds = 7 if quick else 41
        self.environment = {
            "PATH": RELEASE + ":/usr/local/bin:/usr/bin:/bin", "HOME": folder, "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
        }
        self.result = {"rows": []}

    def row(self, what, figure, goal, unit, met, note=""):
        """Returns a row. `goal` is a text; `met` is None for results without a goal."""
        self.result["rows"].append(
            {"what": what, "figure": round(figure, 3), "unit": unit, "goal": goal, "met": met, "note": note})

    def ratio_row(self, what, slower, faster, times, limit, at_least=False):
        ratio = times[slower] / times[faster]
        self.row(what, ratio, f"{'≥' if at_least else '≤'} {limit}", "×", ratio >= limit if at_least else ratio <= limit,
                 f"{times[slower]:.2f} / {times[faster]:.2f} ms")

    def run(self):
        home = Home(os.path.join(self.folder, "few"), self.environment)
        home.grow(5, 1)
        many = home.copy(os.path.join(self.folder, "many"))
        many.grow(200, 1000)
        kept = home.unlocked(os.path.join(self.folder, "kept"))
        try:
            self.processes(home, many, kept)
        finally:
            if kept:
                kept.credmgr("vault", "lock")
        self.memory_and_parallel(home)
        self.network()
        self.proofs()
        self.checking(home)
        self.sizes()
        return self.result

    def processes(self, home, many, kept):
        peers = Peers(self.folder, self.environment)
        try:
            compared = peers.commands()
            ours = {"token": home.token(), "git-credential get": home.git_get(), "token, many": many.token(),
                    "git-credential get, many": many.git_get()}
            if kept:
                ours |= {"token, kernel keyring": kept.token(), "git-credential get, kernel keyring": kept.git_get()}
            if self.against:
                other = Home(os.path.join(self.folder, "other"), self.environment, os.path.join(self.against, "credmgr"))
                other.grow(5, 1)
                ours |= {"token, other build": other.token(), "git-credential get, other build": other.git_get()}
            quick = {name: command for name, command in compared.items() if not name.startswith(("pass", "gh"))}
            slow = {name: command for name, command in compared.items() if name.startswith(("pass", "gh"))}
            times_of_all = in_turn({**ours, **quick}, self.rounds)
            times = medians(times_of_all)
            self.result["rounds"] = len(times_of_all["token"])
            slow_times = medians(in_turn({"token": ours["token"], **slow}, max(self.rounds // 10, 7)))
        finally:
            peers.close()
        self.result["milliseconds"] = {**times, **{name: slow_times[name] for name in slow}}
        self.result["not_compared"] = peers.absent
        store = "git credential-store get"
        for name in ("token", "git-credential get"):
            if store in times:
                self.ratio_row(f"`{name}` to `{store}`", name, store, times, 1.5)
            if self.against:
                self.ratio_row(f"`{name}` to that of the other build", name, f"{name}, other build", times, 1.02)
        for name, limit in (("pass show", 15), ("gh auth token", 25)):
            if name in slow_times:
                self.ratio_row(f"`{name}` to `token`", name, "token", slow_times, limit, at_least=True)
        for name in ("token", "git-credential get"):
            self.ratio_row(f"`{name}`: many accounts and descriptors vs. few", f"{name}, many", name, times, 1.1)
            if kept:
                self.ratio_row(f"`{name}`: key in the kernel's keyring vs. key file", f"{name}, kernel keyring", name,
                               times, 1.2)
        status = many.command("status")
        count = many.accounts
        self.row(f"`status` of {count:,} accounts".replace(",", " "), medians(in_turn({"status": status}, self.few_rounds))["status"], "< 150",
                 "ms", None)
        last = self.result["rows"][-1]
        last["met"] = last["figure"] < 150

    def memory_and_parallel(self, home):
        token = home.token()
        for name, command in (("token", token), ("git-credential get", home.git_get())):
            if (peak := peak_memory(command)) is not None:
                self.row(f"peak memory of `{name}`", peak / 1024, "≤ 8", "MiB", peak <= 8 * 1024)
        git = shutil.which("git")
        if git:
            store = Command([git, "credential-store", "get"], self.environment)
            store.prepare(self.folder)
            times = at_once({"token": token, "git credential-store get": store}, 64, self.few_rounds)
            self.ratio_row("64 `token` at once to 64 `git credential-store get`", "token", "git credential-store get",
                           times, 1.5)

    def network(self):
        home = Home(os.path.join(self.folder, "network"), self.environment)
        descriptor = os.path.join(self.folder, "bench.yaml")
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(DESCRIPTOR.format(id="bench", host="bench.example"))
        simulator = Simulator(home, descriptor, "--port", "0", "--grace", "3600")
        try:
            own = login_work(home, self.few_rounds)
            refresh = home.command("token", "bench", "--refresh")
            total = statistics.median(in_turn({"refresh": refresh}, self.few_rounds)["refresh"])
            provider = simulator.answer_time(self.few_rounds)
        finally:
            simulator.close()
        self.row("`token` with a refresh, less the provider's time", total - provider, "≤ 15", "ms",
                 total - provider <= 15, f"{total:.1f} ms, of which the provider {provider:.1f} ms")
        self.row("a login's own work", own - provider, "< 60", "ms", own - provider < 60)

    def proofs(self):
        """Compares the header for a token that is bound to a key, with a new proof, with that for a bearer token."""
        home = Home(os.path.join(self.folder, "proofs"), self.environment)
        commands = {}
        for name, binding in (("bearer", "none"), ("bound", "dpop")):
            path = os.path.join(self.folder, name + ".yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(MACHINE.format(id=name, binding=binding))
            simulator = Simulator(home, path, "--port", "0", "--grace", "3600")
            try:
                home.credmgr("login", name)
            finally:
                simulator.close()
            expected = "DPoP: " if name == "bound" else "Authorization: Bearer "
            commands[f"header, {name}"] = home.command(
                "header", name, "--url", simulator.origin + "/simulator/resource", expected=expected)
        times = medians(in_turn(commands, self.rounds))
        self.result["milliseconds"] |= times
        bound, bearer = times["header, bound"], times["header, bearer"]
        self.row("`header` with a DPoP proof, more than with a bearer token", bound - bearer, "≤ 3", "ms",
                 bound - bearer <= 3, f"{bound:.2f} - {bearer:.2f} ms")

    def checking(self, home):
        providers = os.path.join(ROOT, "providers")
        files = sorted(os.path.join(providers, name) for name in os.listdir(providers) if name.endswith(".yaml"))
        check = home.command("check", *files[:64])
        total = statistics.median(in_turn({"check": check}, self.few_rounds)["check"])
        self.row("`check` of 64 files", total, "< 40", "ms", total < 40)

    def sizes(self):
        sizes = {}
        for name in ("credmgr", "credmgr-online"):
            copy = os.path.join(self.folder, name)
            shutil.copy(os.path.join(RELEASE, name), copy)
            subprocess.run(["strip", copy], check=True)
            sizes[name] = os.path.getsize(copy)
        self.result["bytes"] = sizes
        total = sum(sizes.values()) / 1e6
        self.row("the programs, stripped", total, "≤ 20", "MB", total <= 20,
                 " + ".join(f"{size / 1e6:.2f}" for size in sizes.values()))


def machine():
    processor = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                processor = line.split(":", 1)[1].strip()
                break
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    return {"date": time.strftime("%Y-%m-%d", time.gmtime()), "processor": processor,
            "cores": len(os.sched_getaffinity(0)), "system": system, "kernel": platform.release()}


def tables(result):
    about = result["machine"]
    yield (f"{about['date']}, {about['system']}, Linux {about['kernel']}, {about['cores']} cores "
           f"({about['processor']}), load {about['load']} at the beginning, {result['rounds']} rounds")
    yield ""
    if about["load"] > 0.5:
        yield "Other work ran on the machine during every round."
        yield ""
    yield "| what | goal | figure | | met |"
    yield "| --- | --- | --- | --- | --- |"
    for row in result["rows"]:
        figure = f"{row['figure']:.0f}" if row["figure"] >= 1000 else f"{row['figure']:.2f}"
        yield f"| {row['what']} | {row['goal']} | {figure} {row['unit']} | {row['note']} | {'yes' if row['met'] else 'no'} |"
    yield ""
    yield "| command | median ms | to `git credential-store get` |"
    yield "| --- | --- | --- |"
    store = result["milliseconds"].get("git credential-store get")
    for name, value in sorted(result["milliseconds"].items(), key=lambda item: item[1]):
        yield f"| `{name}` | {value:.2f} | {f'{value / store:.2f}' if store else ''} |"
    yield ""
    for name, reason in result["not_compared"].items():
        yield f"Not compared: {name} ({reason})."
    yield ""


def write_report(text):
    """Replaces the tables in the document."""
    with open(REPORT, encoding="utf-8") as file:
        before, begin, rest = file.read().partition(BEGIN)
    end, after = rest.partition(END)[1:]
    if not end:
        raise RuntimeError(f"{REPORT} has no place for the figures")
    with open(REPORT, "w", encoding="utf-8") as file:
        file.write(f"{before}{begin}\n{text}\n{end}{after}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--against")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    # gpg-agent's sockets require a short path.
    folder = tempfile.mkdtemp(prefix="cb-")
    # Measure the load before this program adds to it.
    load = os.getloadavg()[0]
    try:
        result = Bench(folder, options.quick, options.against).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    result["machine"] = {**machine(), "load": round(load, 2)}
    if options.write:
        write_report("\n".join(tables(result)))
    print(json.dumps(result, indent=2, ensure_ascii=False) if options.json else "\n".join(tables(result)))


if __name__ == "__main__":
    main()
