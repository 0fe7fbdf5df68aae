"""Checks speed by counts that are independent of the machine: system calls, opened files, and loaded libraries.

The times that `script/bench` measures cannot fail a test on a busy machine. These counts can.
"""

import contextlib
import functools
import glob
import os
import random
import re
import shutil
import sqlite3
import subprocess

from program import BINARY, ROOT, ProgramTest, is_test_build, text_of

DESCRIPTOR = """\
provider: {id}
grant: authorization_code
endpoints: {{ authorization: "https://{id}.example/authorize", token: "https://{id}.example/token" }}
hosts: ["{id}.example"]
git: {{ hosts: ["{id}.example"], username: ada }}
"""

MACHINE = """\
provider: {id}
grant: client_credentials
token_binding: {binding}
endpoints: {{ client_credentials: "https://{id}.example/token" }}
hosts: ["{id}.example"]
"""

# The first call of `main`. Earlier calls of the loader and the runtime library differ between static and dynamic
# builds.
BEGINNING = "prctl(PR_SET_DUMPABLE"

# 108 calls are needed. Half of them are SQLite's (open, lock, read and close, in the transactions that find the key
# and the record). The rest checks that other users cannot read or exchange the files, protects the process, and puts
# the keys into a page of fenced memory. Another file costs about 5 calls, a transaction 10, a page for a key 13, so
# the limit catches each of these.
MOST_CALLS = 115

QUESTION = "protocol=https\nhost=provider-0.example\n\n"

# The record, its key, and the note of the use, which is appended without a sync.
VAULT = ["vault/vault.db", "vault/vault.key", "vault/vault.log"]


class Speed(ProgramTest):
    def setUp(self):
        super().setUp()
        path = self.file("provider-0.yaml", DESCRIPTOR.format(id="provider-0"))
        self.credmgr("add-provider", path, "--client-id", "client")
        self.log_in("ada")

    def log_in(self, account):
        self.credmgr("login", "provider-0", "--account", account, "--with-token", stdin="a-token-of-ours\n")

    def traced(self, *arguments, stdin="", expected="a-token-of-ours"):
        """Returns the system calls of a successful run, starting at `main`."""
        trace = os.path.join(self.folder, "trace")
        outcome = self.run_program("-f", "-qq", "-s", "200", "-o", trace, BINARY, *arguments, stdin=stdin,
                                   binary="/usr/bin/strace")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertIn(expected, outcome.out)
        calls = text_of(trace).splitlines()
        first = next((number for number, call in enumerate(calls) if BEGINNING in call), None)
        self.assertIsNotNone(first, "the program does not protect itself")
        return calls[first:]

    def opened(self, calls):
        """Returns the names of the opened files, without missing ones."""
        names = [re.search(r'open(?:at)?\([^"]*"([^"]*)".*= \d+$', call) for call in calls]
        # The note of the use includes the calling process, from /proc.
        return [os.path.relpath(name.group(1), self.environment["CREDMGR_HOME"]) for name in names
                if name and not name.group(1).startswith("/proc/")]

    def test_a_cached_token_takes_few_system_calls_and_opens_few_files(self):
        # The program also reads git's request and the host's record.
        for arguments, question, most in ((("token", "provider-0"), "", MOST_CALLS),
                                          (("git-credential", "get"), QUESTION, MOST_CALLS + 10)):
            with self.subTest(arguments):
                calls = self.traced(*arguments, stdin=question)
                self.assertLessEqual(len(calls), most, "\n".join(calls))
                self.assertEqual(self.expensive(calls), [])
                self.assertEqual(self.opened(calls), VAULT)

    @staticmethod
    def expensive(calls):
        """Matches every call that waits for the disk, another process or the network. Creating a directory waits for
        other creators, even if it exists."""
        return [call for call in calls
                if re.search(r"\b(socket|connect|fork|vfork|clone3?|execve|fsync|fdatasync|nanosleep|mkdir)\(", call)]

    def test_a_proof_of_a_key_takes_one_more_system_call(self):
        # A signature needs a random number. Another program would take a hundred calls and 20 ms.
        counts = []
        for name, binding in (("bearer", "none"), ("bound", "dpop")):
            said = self.simulated(self.file(name + ".yaml", MACHINE.format(id=name, binding=binding)))
            self.credmgr("add-provider", said["descriptor"], "--client-id", said["client-id"],
                         "--client-secret-file", said["client-secret-file"])
            self.credmgr("login", name)
            url = said["listening on"] + "/simulator/resource"
            counts.append(self.counted("header", name, "--url", url, expected="Authorization: "))
        self.assertLessEqual(counts[1], counts[0] + 1)

    def test_a_thousand_accounts_and_descriptors_cost_nothing(self):
        alone = [self.counted("token", "provider-0"), self.counted("git-credential", "get", stdin=QUESTION)]
        self.grow(1000)
        many = [self.counted("token", "provider-0"), self.counted("git-credential", "get", stdin=QUESTION)]
        self.assertEqual(many, alone)

    def test_status_of_many_accounts_takes_few_system_calls(self):
        for number in range(3):
            self.log_in(f"account-{number}")
        few = self.counted_status()
        for number in range(3, 15):
            self.log_in(f"account-{number}")
        # More accounts add pages of the tree and the index, but no calls for a single account.
        self.assertLessEqual(self.counted_status(), few + 2)

    def counted_status(self):
        trace = os.path.join(self.folder, "trace")
        outcome = self.run_program("-f", "-qq", "-o", trace, BINARY, "status", binary="/usr/bin/strace")
        self.assertEqual(outcome.status, 0, outcome.err)
        return len(re.findall(r"\b(?:write|ioctl|fcntl|openat|statx|newfstatat)\(", text_of(trace)))

    def counted(self, *arguments, **options):
        """Returns the number of system calls, without reads (SQLite's tree now has two levels), without calls for
        memory, and without those of Swift's locks in a release build."""
        calls = self.traced(*arguments, **options)
        return len([call for call in calls if not re.search(r"\b(pread64|read|brk|mmap|munmap|mremap|gettid)\(", call)])

    def grow(self, count):
        """Adds that many fake records to the vault, and that many descriptors. Creating real ones by logging in would
        take minutes."""
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
        # Regular expressions take 1.3 MB in each program, and one call of `replacing` links them all.
        for name in (BINARY, BINARY + "-online"):
            symbols = self.symbols(name)
            self.assertTrue("15CredmgrCommands10Invocation" in symbols, "there are no symbols to look at")
            self.assertEqual([line for line in symbols.splitlines() if "17_StringProcessing" in line], [], name)

    def test_nothing_of_the_concurrency_library_is_linked(self):
        # Concurrency links libdispatch as well: 0.7 MB in each program, and one `ContinuousClock` is enough.
        parts = re.compile(r"ContinuousClock|\bswift_task_alloc|\bdispatch_async")
        self.assertEqual([line for line in self.symbols(BINARY).splitlines() if parts.search(line)], [])

    @staticmethod
    @functools.cache
    def symbols(program):
        return "".join(subprocess.run(["nm", *options, program], capture_output=True, text=True, check=True).stdout
                       for options in ([], ["--dynamic"]))

    def test_the_program_does_nothing_unneeded_before_main(self):
        trace = os.path.join(self.folder, "trace")
        outcome = self.run_program("-qq", "-o", trace, BINARY, "--version", binary="/usr/bin/strace")
        self.assertEqual(outcome.status, 0, outcome.err)
        before = text_of(trace).partition(BEGINNING)[0]
        self.assertNotIn("/proc/self/maps", before)
        self.assertNotIn("swift", before)

    def test_programs_are_small(self):
        if is_test_build():
            return
        sizes = {}
        for name in ("credmgr", "credmgr-online"):
            copy = os.path.join(self.folder, name)
            subprocess.run(["strip", "-o", copy, os.path.join(os.path.dirname(BINARY), name)], check=True)
            sizes[name] = os.path.getsize(copy)
        # 19.2 MB when this was written. Together with its other files, a package may have 20 MB (test_package).
        self.assertLessEqual(sum(sizes.values()), 19_300_000, sizes)

    def test_large_parts_of_libraries_are_not_linked(self):
        if is_test_build():
            return
        for name in (BINARY, BINARY + "-online"):
            symbols = self.symbols(name)
            self.assertTrue("_swift_stdlib_getBinaryProperties" in symbols, "there are no symbols to look at")
            # 0.55 MB in each program.
            self.assertFalse(" _swift_stdlib_getScalarName\n" in symbols, name)
            # 0.15 MB in each program.
            self.assertFalse("Remangler" in symbols, name)
        # 0.45 MB, of which no command uses anything.
        self.assertIn("__ieee754_fmod", self.symbols(BINARY), "there are no symbols to look at")
        functions = r" __(?:ieee754_)?(?:asin|acos|atan|atan2|sin|cos|tan|jn|lgamma_r|pow|exp|log|vfscanf_internal)\b"
        self.assertEqual(re.findall(functions, self.symbols(BINARY)), [])
        # 0.1 MB, of which no vault uses anything.
        self.assertIn(" crypto_pwhash", self.symbols(BINARY), "there are no symbols to look at")
        self.assertEqual(re.findall(r" (?:ge25519_\w+|crypto_stream_salsa20\w+)", self.symbols(BINARY)), [])
        # 0.35 MB, and registered for each connection or at the start.
        self.assertIn(" sqlite3_open_v2", self.symbols(BINARY), "there are no symbols to look at")
        self.assertEqual(
            re.findall(r" (?:fts[35]|rtree|statVtab|stmtConnect|json|strftimeFunc)\w*", self.symbols(BINARY)), [])
        # 0.05 MB, for a message before the program ends.
        self.assertEqual(re.findall(r" (?:__cxa_demangle|d_print_comp)\b", self.symbols(BINARY)), [])

    def test_no_code_calls_the_functions_that_are_not_linked(self):
        sources = glob.glob(os.path.join(ROOT, "Sources/**/*.swift"), recursive=True)
        self.assertTrue(sources)
        calls = re.compile(r"properties\.name\b|(?<!func )(?<!\.)\b(?:a?(?:sin|cos|tan)h?|atan2|erfc?|[jy]n|[lt]gamma|exp(?:2|10|m1)?|"
                           r"log(?:10|1p|2)|pow|hypot|cbrt|remquo|nextafter|fma|sscanf|_typeByName)\(")
        self.assertEqual([path for path in sources if calls.search(text_of(path))], [])

    def test_a_cold_start_takes_few_page_faults(self):
        if is_test_build():
            return  # This build does not order its functions.
        program = shutil.copy(self.binary, os.path.join(self.folder, "cold"))
        with open(program, "r+b") as file:
            os.fsync(file)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        process = subprocess.Popen([program, "token", "provider-0"], env=self.environment, stdout=subprocess.DEVNULL)
        _, process.returncode, usage = os.wait4(process.pid, 0)
        self.assertEqual(process.returncode, 0)
        # About 135 with the order of `script/build-release`, and 215 without it.
        self.assertLessEqual(usage.ru_majflt + usage.ru_minflt, 170, usage)

    def test_the_static_program_has_no_public_keys_of_openssl(self):
        # They would add 3.2 MB to the static program, and libnettle's signature takes 0.2 MB.
        self.assertEqual(re.findall(r"[0-9a-f] \w (EVP_\w+)", self.symbols(BINARY)), [])

    def test_no_library_of_the_network_or_of_foundation_is_linked(self):
        self.assertIn(" sqlite3_open_v2\n", self.symbols(BINARY), "there are no symbols to look at")
        for name in ("curl_easy_init", "$s10Foundation", "SSL_CTX_new", "dbus_", "secret_password", "g_object_new"):
            self.assertNotIn(" " + name, self.symbols(BINARY))
        outcome = subprocess.run(["ldd", BINARY], capture_output=True, text=True, check=False)
        self.assertIn("not a dynamic executable", outcome.stdout + outcome.stderr)
