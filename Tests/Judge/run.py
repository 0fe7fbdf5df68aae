#!/usr/bin/env python3
"""Runs every `test_*.py` beside it and ends with `N passed, N failed`.

    run.py [-v] [WORD]…        only tests whose name contains one of the words

$CREDMGR_BIN is the program to judge, `.build/debug/credmgr` if it is not set.
"""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


def main():
    words = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    verbosity = 2 if "-v" in sys.argv else 1
    found = flatten(unittest.defaultTestLoader.discover(HERE, pattern="test_*.py"))
    chosen = [test for test in found if not words or any(word in test.id() for word in words)]
    result = unittest.TextTestRunner(verbosity=verbosity, stream=sys.stdout).run(unittest.TestSuite(chosen))
    # A test with several failed parts is one failed test.
    failed = len({getattr(test, "test_case", test).id() for test, _ in result.failures + result.errors})
    print(f"{result.testsRun - failed} passed, {failed} failed")
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
