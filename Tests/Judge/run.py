#!/usr/bin/env python3
"""Runs every `test_*.py` in this directory in several processes and ends with `N passed, N failed`.

    run.py [-v] [-j N] [WORD]…        only tests whose name contains one of the words

$CREDMGR_BIN is the tested program; the default is `.build/debug/credmgr`.
"""

import argparse
import fnmatch
import io
import multiprocessing
import os
import resource
import signal
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

PATTERN = "test_*.py"
# Shipped descriptors fix the port of their redirect, as does a release that of its server, so tests that use the same
# port take turns.
SHARED_PORTS = {"test_readme", "test_package", "test_release"}
# The longest modules start first, so that no process works alone at the end.
LONGEST = ("test_library", "test_leaks", "test_crashes", "test_bad_input", "test_doctor", "test_races", "test_git",
           "test_vault_keys", "test_speed")
# The maximum number of tests for one process, and the classes whose slow tests get a process each.
PART = 10
ALONE = {"test_crashes.SystemCalls", "test_crashes.NamedPoints", "test_leaks.Leaks"}


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


def find(words):
    """Returns the chosen tests in groups for single processes: a part of a class, or all tests that share ports."""
    groups, found = {}, []
    for test in flatten(unittest.defaultTestLoader.discover(HERE, pattern=PATTERN)):
        if words and not any(word in test.id() for word in words):
            continue
        module = type(test).__module__
        groups.setdefault("ports" if module in SHARED_PORTS else f"{module}.{type(test).__qualname__}", []).append(test.id())
    order = {name: number for number, name in enumerate(LONGEST)}
    groups = sorted(groups.items(), key=lambda group: (order.get(group[0].split(".")[0], len(order)), -len(group[1])))
    for name, tests in groups:
        size = len(tests) if name == "ports" else 1 if name in ALONE else PART
        found += ((name, tests[start:start + size]) for start in range(0, len(tests), size))
    return found


def run(group):
    """Runs a group; returns its name, wall and CPU seconds, the numbers of tests and failures, and the failures."""
    name, identifiers = group
    began = time.monotonic()
    text = io.StringIO()
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromNames(identifiers))
    result = unittest.TextTestRunner(stream=text, verbosity=0).run(suite)
    # A test with several failed parts counts as one failed test, as does a class whose setup failed.
    failed = {getattr(test, "test_case", test).id() for test, _ in result.failures + result.errors}
    reports = "\n".join(f"FAILED {test.id()}\n{trace}" for test, trace in result.failures + result.errors)
    skipped = [f"{test.id()}: {reason}" for test, reason in result.skipped]
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    times = time.monotonic() - began, sum(each.ru_utime + each.ru_stime for each in usage)
    return name, times, max(result.testsRun, len(failed)), len(failed), reports, skipped


def main():
    # A shell or nohup starts background jobs with these signals ignored, and programs inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    parser = argparse.ArgumentParser()
    parser.add_argument("-v", action="store_true", dest="verbose", help="also say which tests were skipped, and why")
    parser.add_argument("-j", type=int, default=(os.cpu_count() or 1) * 3, dest="jobs", help="processes")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    count = failures = 0
    # Each group gets a fresh process, so no test class affects the next. It is a copy of a process that has imported
    # all modules, because importing them takes longer than many groups.
    context = multiprocessing.get_context("forkserver")
    modules = (path.removesuffix(".py") for path in sorted(fnmatch.filter(os.listdir(HERE), PATTERN)))
    context.set_forkserver_preload(["__main__", *modules])
    with context.Pool(options.jobs, maxtasksperchild=1) as pool:
        groups = pool.apply(find, [options.words])
        for name, (wall, busy), ran, failed, reports, skipped in pool.imap_unordered(run, groups):
            count += ran
            failures += failed
            print(f"{'FAILED' if failed else 'ok':6} {name}: {ran} tests, {len(skipped)} skipped, {wall:.1f} s, {busy:.1f} s CPU",
                  flush=True)
            if reports:
                print(reports, flush=True)
            if options.verbose and skipped:
                print("\n".join(skipped), flush=True)
    print(f"{count - failures} passed, {failures} failed")
    return 0 if count and not failures else 1


if __name__ == "__main__":
    sys.exit(main())
