"""Arguments arrive unchanged even if a library moved them before main, and those that are not text are refused."""

import os
import resource
import shutil
import subprocess

from program import ADA, BINARY, DONE, LOCKED, TIMEOUT, UNEXPECTED, USAGE, ProgramTest
ONLINE = os.path.join(os.path.dirname(BINARY), "credmgr-online")

# Moves the environment before main starts, as libfaketime and others do.
MOVING = """#include <stdlib.h>
__attribute__((constructor)) static void moved(void) { setenv("CREDMGR_JUDGE", "1", 1); }
"""


class Arguments(ProgramTest):
    def setUp(self):
        super().setUp()
        self.service, self.provider = self.logged_in()

    def run_bytes(self, *arguments, program=BINARY, **options):
        return subprocess.run([program, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT,
                              env={**self.environment, **options.pop("environment", {})}, cwd=self.folder, check=False,
                              **options)

    def test_a_preloaded_library_that_moves_the_environment(self):
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("there is no C compiler")
        source = self.file("moving.c", MOVING)
        library = os.path.join(self.folder, "moving.so")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
        for program in (BINARY, ONLINE):
            for arguments in (("token", self.provider, "--account", ADA), ("status", "--json"), ("no-such-command",),
                              ("login", "--no-such-option"), ("--version",), (),
                              ("exec", self.provider, "--", "printf", "%s\\n", "two words", "", "--json")):
                with self.subTest(program=program, arguments=arguments):
                    plain = self.run_bytes(*arguments, program=program)
                    moved = self.run_bytes(*arguments, program=program, environment={"LD_PRELOAD": library})
                    self.assertEqual((moved.returncode, moved.stdout, moved.stderr),
                                     (plain.returncode, plain.stdout, plain.stderr))
        # One program replaces the other.
        before = self.credmgr("token", self.provider).line
        done = self.run_bytes("refresh", self.provider, "--account", ADA, environment={"LD_PRELOAD": library})
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertNotEqual(self.credmgr("token", self.provider).line, before)

    def test_a_process_that_may_open_hardly_any_file(self):
        for program in (BINARY, ONLINE):
            for limit in range(3, 9):
                for arguments in (("token", self.provider, "--account", ADA), ("--version",), ("vault", "verify")):
                    with self.subTest(program=program, limit=limit, arguments=arguments):
                        done = self.run_bytes(
                            *arguments, program=program,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
                        # The loader of shared libraries may fail before our code runs.
                        self.assertIn(done.returncode, (DONE, UNEXPECTED, LOCKED, 127), done.stderr)
                        self.assertNotIn(b"usage:", done.stderr)
                        if done.returncode in (UNEXPECTED, LOCKED):
                            self.assertIn(b"too many open files", done.stderr)

    def test_input_that_is_not_text_is_refused(self):
        """Two names that are not UTF-8 would become the same text."""
        for arguments in ((b"token", self.provider, b"--account", b"\xff\xfe"), (b"login", b"\xc3("),
                          (b"exec", b"x:\xff", b"--", b"true"), (b"request", self.provider, b"https://x", b"-d", b"\xe4")):
            for program in (BINARY, ONLINE):
                done = self.run_bytes(*arguments, program=program)
                self.assertEqual(done.returncode, USAGE, done.stderr)
                self.assertIn(b"is not UTF-8", done.stderr)
        # The program that `exec` runs gets any bytes; and the replacement character is allowed like any other.
        done = self.run_bytes("exec", self.provider, "--", "printf", "%s", b"\xff\xfe")
        self.assertEqual((done.returncode, done.stdout), (DONE, b"\xff\xfe"))
        done = self.run_bytes("token", self.provider, "--account", "\ufffd")
        self.assertNotIn(b"UTF-8", done.stderr)
