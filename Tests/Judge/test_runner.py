"""The scripts that run the tests: a shell starts background jobs with ignored interrupts, and arguments of a test may be long."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.join(HERE, "../../script")
SWIFT = """#!/bin/sh
case $1 in
  test)
    sed -n 's/^SigIgn:\t*/ignored /p' /proc/self/status >"$REPORT"
    printf '✘ Test long(_:) recorded an issue with 1 argument text → "%20000s"\\n' x
    echo "✔ Test run with 1 test in 1 suite passed after 0.1 seconds." ;;
esac
"""


def ignore_interrupts():
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Scripts(unittest.TestCase):
    def test_the_tests_in_swift(self):
        """With a `swift` that reports its signals and a long line instead of running tests."""
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(folder + "/script")
            for name in ("test", "build-debug"):
                shutil.copy(os.path.join(SCRIPTS, name), folder + "/script")
            for path, text in (("script/dependencies", "#!/bin/sh\n"), ("swift", SWIFT)):
                with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
                    file.write(text)
                os.chmod(file.name, 0o700)
            environment = {**os.environ, "PATH": folder + ":" + os.environ["PATH"], "REPORT": folder + "/report"}
            outcome = subprocess.run(
                [folder + "/script/test", "--swift-only"], env=environment, preexec_fn=ignore_interrupts, capture_output=True,
                text=True, timeout=60, check=True)
            with open(folder + "/report", encoding="utf-8") as file:
                ignored = int(file.read().split()[1], 16)
        self.assertFalse(ignored & 1 << signal.SIGINT - 1, hex(ignored))
        self.assertIn("✘ Test long", outcome.stdout)
        self.assertLessEqual(max(len(line.encode()) for line in outcome.stdout.splitlines()), 400)
        self.assertEqual(outcome.stdout.splitlines()[-1], "1 passed, 0 failed")

    def test_the_judge(self):
        """With a test that interrupts a program."""
        name = "test_bad_answers.Callbacks.test_wrong_or_missing_state_gets_nothing"
        outcome = subprocess.run(
            [sys.executable, os.path.join(HERE, "run.py"), name], preexec_fn=ignore_interrupts, capture_output=True, text=True,
            timeout=60, check=False)
        self.assertEqual(outcome.stdout.splitlines()[-1:], ["1 passed, 0 failed"], outcome.stdout[-2000:] + outcome.stderr[-2000:])
