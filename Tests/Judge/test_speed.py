"""Counts that stand for speed, and do not depend on the machine: system calls, opened files, loaded libraries.

What `script/bench` measures in milliseconds cannot fail a test on a busy machine. These can.
"""

import contextlib
import os
import random
import re
import sqlite3
import subprocess

from program import BINARY, ProgramTest

DESCRIPTOR = """\
provider: {id}
grant: authorization_code
endpoints: {{ authorization: "https://{id}.example/authorize", token: "https://{id}.example/token" }}
hosts: ["{id}.example"]
git: {{ hosts: ["{id}.example"], username: ada }}
"""

# The first thing that `main` does: what the loader and the run-time library do before is not ours, and differs between a
# static and a dynamic build.
BEGINNING = "prctl(PR_SET_DUMPABLE"

# 108 are needed: a half of them is SQLite's (open, lock, read and close, in the transactions that find the key and the
# record); the rest checks that nobody else can read or exchange the files, protects the process, and puts the keys into
# one page of fenced memory. A look into another file costs about 5, another transaction 10, another page for a key 13; so
# whoever adds one of each without need is told here.
MOST_CALLS = 115

QUESTION = "protocol=https\nhost=provider-0.example\n\n"

# The record, the key that opens it, and the note of who was handed the token, which is appended without a sync.
VAULT = ["vault/vault.db", "vault/vault.key", "vault/vault.log"]


class Speed(ProgramTest):
    def add_providers(self, numbers):
        for number in numbers:
            name = f"provider-{number}"
            path = self.file(name + ".yaml", DESCRIPTOR.format(id=name))
            self.credmgr("add-provider", path, "--client-id", "client")

    def log_in(self, provider, account):
        self.credmgr("login", provider, "--account", account, "--with-token", stdin="a-token-of-ours\n")

    def traced(self, *arguments, stdin=""):
        """The system calls of a successful run, from `main` on."""
        trace = os.path.join(self.folder, "trace")
        outcome = self.run_program("-f", "-qq", "-s", "200", "-o", trace, BINARY, *arguments, stdin=stdin,
                                   binary="/usr/bin/strace")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertIn("a-token-of-ours", outcome.out)
        with open(trace, encoding="utf-8", errors="replace") as file:
            calls = file.read().splitlines()
        first = next((number for number, call in enumerate(calls) if BEGINNING in call), None)
        self.assertIsNotNone(first, "the program does not protect itself")
        return calls[first:]

    def opened(self, calls):
        """The names of the files that were opened, without those that were not there."""
        names = [re.search(r'open(?:at)?\([^"]*"([^"]*)".*= \d+$', call) for call in calls]
        # Who asks is read from /proc, for the note of the hand-out.
        return [os.path.relpath(name.group(1), self.environment["CREDMGR_HOME"]) for name in names
                if name and not name.group(1).startswith("/proc/")]

    def test_a_cached_token_takes_few_system_calls(self):
        self.add_providers(range(1))
        self.log_in("provider-0", "ada")
        calls = self.traced("token", "provider-0")
        self.assertLessEqual(len(calls), MOST_CALLS, "\n".join(calls))
        self.assertEqual(self.expensive(calls), [])

    def test_git_takes_few_system_calls_too(self):
        self.add_providers(range(1))
        self.log_in("provider-0", "ada")
        calls = self.traced("git-credential", "get", stdin=QUESTION)
        # The question is read, and the record of the host.
        self.assertLessEqual(len(calls), MOST_CALLS + 10, "\n".join(calls))
        self.assertEqual(self.expensive(calls), [])

    @staticmethod
    def expensive(calls):
        """Whatever waits for the disk, another process or the network: to make a folder is to wait for who makes another beside
        it, also where it is there already."""
        return [call for call in calls
                if re.search(r"\b(socket|connect|fork|vfork|clone3?|execve|fsync|fdatasync|nanosleep|mkdir)\(", call)]

    def test_a_cached_token_opens_the_vault_its_key_and_the_note_of_hand_outs(self):
        self.add_providers(range(1))
        self.log_in("provider-0", "ada")
        self.assertEqual(self.opened(self.traced("token", "provider-0")), VAULT)

    def test_git_opens_no_file_more(self):
        self.add_providers(range(1))
        self.log_in("provider-0", "ada")
        calls = self.traced("git-credential", "get", stdin=QUESTION)
        self.assertEqual(self.opened(calls), VAULT)

    def test_other_accounts_and_descriptors_cost_nothing(self):
        self.add_providers(range(1))
        self.log_in("provider-0", "ada")
        alone = len(self.traced("token", "provider-0"))
        self.add_providers(range(1, 40))
        for number in range(1, 40):
            self.log_in(f"provider-{number}", "ada")
            self.log_in("provider-0", f"account-{number}")
        # SQLite reads a page or two more of the tree that it searches.
        self.assertLessEqual(len(self.traced("token", "provider-0")), alone + 5)

    def test_a_thousand_accounts_and_descriptors_cost_nothing(self):
        self.add_providers(range(1))
        self.log_in("provider-0", "ada")
        alone = [self.counted("token", "provider-0"), self.counted("git-credential", "get", stdin=QUESTION)]
        self.grow(1000)
        many = [self.counted("token", "provider-0"), self.counted("git-credential", "get", stdin=QUESTION)]
        self.assertEqual(many, alone)

    def test_status_of_many_accounts_takes_few_system_calls(self):
        self.add_providers(range(1))
        for number in range(3):
            self.log_in("provider-0", f"account-{number}")
        few = self.counted_status()
        for number in range(3, 15):
            self.log_in("provider-0", f"account-{number}")
        # A page more of the tree, and a part of the index for each account; nothing is asked or written for each one.
        self.assertLessEqual(self.counted_status(), few + 2)

    def counted_status(self):
        trace = os.path.join(self.folder, "trace")
        outcome = self.run_program("-f", "-qq", "-o", trace, BINARY, "status", binary="/usr/bin/strace")
        self.assertEqual(outcome.status, 0, outcome.err)
        with open(trace, encoding="utf-8", errors="replace") as file:
            return len(re.findall(r"\b(?:write|ioctl|fcntl|openat|statx|newfstatat)\(", file.read()))

    def counted(self, *arguments, stdin=""):
        """The number of system calls, without reads: SQLite's tree is two pages deep by now; and without those for
        memory."""
        calls = self.traced(*arguments, stdin=stdin)
        return len([call for call in calls if not re.search(r"\b(pread64|read|brk|mmap|munmap|mremap)\(", call)])

    def grow(self, count):
        """Puts that many records into the vault that are none of its own, but look like it, and as many descriptors beside
        the one that is there. To make so many by logging in would take minutes."""
        home = self.environment["CREDMGR_HOME"]
        for number in range(count):
            name = f"another-{number}"
            with open(os.path.join(home, "config", "providers", name + ".yaml"), "w", encoding="utf-8") as file:
                file.write(DESCRIPTOR.format(id=name))
        numbers = random.Random(1)
        with contextlib.closing(sqlite3.connect(os.path.join(home, "vault", "vault.db"))) as vault, vault:
            vault.executemany(
                "INSERT INTO record VALUES(?,1,?,1,?)",
                [(numbers.randrange(-1 << 63, 1 << 63), numbers.randrange(-1 << 63, 1 << 63), numbers.randbytes(250))
                 for _ in range(count)])

    def test_nothing_of_the_regular_expressions_is_linked(self):
        # They are 1.3 MB in each program, and one call of `replacing` brings them all.
        symbols = ""
        for options in ([], ["--dynamic"]):
            symbols += subprocess.run(["nm", *options, BINARY], capture_output=True, text=True, check=True).stdout
        self.assertTrue("8Commands10Invocation" in symbols, "there are no symbols to look at")
        self.assertEqual(re.findall(r"\S*17_StringProcessing\S*", symbols), [])

    def test_nothing_of_the_concurrency_library_is_linked(self):
        # It brings libdispatch along: 0.7 MB in each program, and one `ContinuousClock` is enough.
        symbols = ""
        for options in ([], ["--dynamic"]):
            symbols += subprocess.run(["nm", *options, BINARY], capture_output=True, text=True, check=True).stdout
        self.assertEqual(re.findall(r"\S*(?:ContinuousClock|\bswift_task_alloc|\bdispatch_async)\S*", symbols), [])

    def test_the_release_does_nothing_before_main_that_it_needs_not(self):
        if self.is_dynamic():
            return  # The loader's work comes first there.
        trace = os.path.join(self.folder, "trace")
        outcome = self.run_program("-qq", "-o", trace, BINARY, "--version", binary="/usr/bin/strace")
        self.assertEqual(outcome.status, 0, outcome.err)
        with open(trace, encoding="utf-8") as file:
            before = file.read().partition(BEGINNING)[0]
        self.assertNotIn("/proc/self/maps", before)
        self.assertNotIn("swift", before)

    def test_programs_are_small(self):
        if self.is_dynamic():
            return  # Not the release.
        sizes = {}
        for name in ("credmgr", "credmgr-online"):
            copy = os.path.join(self.folder, name)
            subprocess.run(["strip", "-o", copy, os.path.join(os.path.dirname(BINARY), name)], check=True)
            sizes[name] = os.path.getsize(copy)
        # 18.8 MB at the time of writing, of the 20 that are the goal; the last 0.5 are what the doctor finds and the hints that
        # mend it. What is more than a tenth of a megabyte has to be worth it.
        self.assertLessEqual(sum(sizes.values()), 19_000_000, sizes)

    def test_the_static_program_has_no_public_keys(self):
        # OpenSSL's are 3.2 MB there.
        symbols = subprocess.run(["nm", "--defined-only", BINARY], capture_output=True, text=True, check=True).stdout
        self.assertEqual(re.findall(r" (EVP_\w+)", symbols), [])

    @staticmethod
    def is_dynamic():
        outcome = subprocess.run(["ldd", BINARY], capture_output=True, text=True, check=False)
        return "not a dynamic executable" not in outcome.stdout + outcome.stderr

    def test_no_library_of_the_network_or_of_foundation_is_loaded(self):
        if not self.is_dynamic():
            return  # The release: there is nothing to load.
        text = subprocess.run(["ldd", BINARY], capture_output=True, text=True, check=True).stdout
        self.assertIn("libc.so", text)
        for name in ("libcurl", "libFoundation", "lib_FoundationICU", "libssl", "libdbus", "libsecret", "libglib"):
            self.assertNotIn(name, text)
