"""Kills the program at every named point, between any two system calls, and at random times.

    CREDMGR_KILLS=3000 CREDMGR_SEED=7 run.py crashes

Without the variable, nothing is random: of each kind of system call the first and every twelfth after it, always the same ones
(script/siege takes all).
"""

import collections
import concurrent.futures
import errno
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

from program import BINARY, DONE, LOCKED, LOGIN_NEEDED, TIMEOUT, USAGE, ProgramTest, is_test_build, text_of
from siege import (
    ADA, COMMANDS, GRACE, OTHER, PROVIDER, SOURCES, STRACE, WRITING, World, after_refresh, end, fault_points,
    kill_after, refresh, strand_key_file, strict,
)

KILLS = int(os.environ.get("CREDMGR_KILLS", 0))
# A short run takes one in twelve of the enumerable cases.
PART = 1 if KILLS else 12
SEED = int(os.environ.get("CREDMGR_SEED", 1))
WORKERS = os.cpu_count() or 1


def report(text):
    print(f"  {text}", file=sys.stderr, flush=True)


class CrashTest(ProgramTest):
    """Each worker has its own world, which it restores before each kill."""

    def setUp(self):
        super().setUp()
        self.worlds = {}
        # No test cuts the power, so a memory disk is enough, and faster. Measurements use a real disk.
        if "CREDMGR_KILLS" not in os.environ and os.access("/dev/shm", os.W_OK):
            self.folder = tempfile.mkdtemp(prefix="credmgr-judge-", dir="/dev/shm")
            self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def world(self, number=0):
        if number not in self.worlds:
            self.worlds[number] = World(os.path.join(self.folder, f"world-{number}"))
            self.addCleanup(self.worlds[number].close)
            self.worlds[number].people().save()
        return self.worlds[number]

    def each(self, cases, body, workers=WORKERS):
        """Runs `body(world, case)` for all cases, a list or what a function of a world returns; fails with the first failure."""
        worlds = [self.world(number) for number in range(workers)]
        cases = cases if callable(cases) else list(cases)

        def work(number):
            results = []
            own = cases(worlds[number]) if callable(cases) else cases
            for case in own[number::workers]:
                worlds[number].restore()
                try:
                    results.append((case, body(worlds[number], case)))
                except AssertionError as error:
                    raise AssertionError(f"{case}, seed {SEED}: {error}") from error
            return results

        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            return [result for results in pool.map(work, range(workers)) for result in results]


@unittest.skipUnless(KILLS, "only script/siege kills at random moments")
class RandomMoments(CrashTest):
    def kill(self, name):
        start, check = COMMANDS[name]
        durations = []

        def whole(world, _):
            began = time.monotonic()
            process = start(world)
            strict(end(process) == DONE, process.returncode)
            durations.append(time.monotonic() - began)
            check(world)

        self.each(range(2 * WORKERS), whole)
        longest = dict.fromkeys(self.worlds.values(), statistics.median(durations) * 1.1)
        source = random.Random(SEED)

        def death(world, fraction):
            killed = kill_after(start(world), fraction * longest[world])
            # Other work on the machine changes how long a command takes. With these factors, a quarter ends before the
            # kill.
            longest[world] *= 1.04 if killed else 0.9
            answered = world.service.counts["answered:/token"] + world.service.counts["answered:/revoke"] > 0
            return killed, answered, check(world)

        deaths = [result for _, result in self.each((source.random() for _ in range(KILLS)), death)]
        counts = collections.Counter(deaths)
        killed = sum(count for (was_killed, _, _), count in counts.items() if was_killed)
        behind = sum(count for (was_killed, answered, _), count in counts.items() if was_killed and answered)
        lost = sum(count for (_, _, was_lost), count in counts.items() if was_lost)
        report(f"{name}: {killed} kills within {max(longest.values()) * 1000:.0f} ms, {behind} of them after the provider's answer, "
               f"{lost} answers lost, all of them told")
        self.assertGreater(killed, KILLS // 4, "most of the moments came too late")

    def test_each_command(self):
        for name in ("refresh", "login", "logout", "rotate", "protect"):
            with self.subTest(name):
                self.kill(name)


# The loss if the program dies at each point. A point that is not listed has no test.
POINTS = {
    "refresh": {"refresh.locked": False, "refresh.noted": False, "refresh.answered": True, "refresh.kept": False,
                "refresh.committed": False},
    "login": {"login.noted": False, "login.answered": True, "login.stored": False, "login.identified": False,
              "login.committed": False},
    "logout": {"logout.noted": False, "logout.revoked": False, "logout.committed": False},
    "rotate": {"key-file.staged": False, "rotate.written": False, "rotate.committed": False, "key-file.moved": False},
    "protect": {"protect.committed": False},
    "restore": {"key-file.moved": False, "key-file.staged": False},
    "unprotect": {"unprotect.committed": False},
    "protect again": {"key-file.staged": False, "protect.committed": False, "key-file.moved": False},
}


class NamedPoints(CrashTest):
    def setUp(self):
        super().setUp()
        if not is_test_build():
            self.skipTest("this program was built for use, and has no fault points")

    def test_every_point_is_known(self):
        named = {point for points in POINTS.values() for point in points}
        # At these points, a process only stops, with no exchange in progress.
        stops = {"git.login", "login.begins"}
        # test_team kills at the points of `share`; at the last point, only a copy of what is stored is missing.
        # test_shared_vault stops at the point of a key change.
        shared = {"share.stored", "share.marked", "share.done", "share.published", "share.compared",
                  "copy.renewed", "rekey.begun"}
        self.assertEqual(set(fault_points()), named | stops | shared)

    def test_death_at_each(self):
        cases = [(command, point) for command, points in POINTS.items() for point in points]

        def death(world, case):
            command, point = case
            start, check = COMMANDS[command]
            if command == "restore":
                strand_key_file(world)
            if command in ("unprotect", "protect again"):
                world.expect("vault", "protect", "passphrase", "--passphrase-file", world.passphrase)
            if command == "protect again":
                world.expect("vault", "protect", "key-file", "--remove")
            code = end(start(world, CREDMGR_FAULT=point))
            strict(code == -9, "it was not reached: status", code)
            lost = check(world)
            strict(lost == POINTS[command][point], "lost" if lost else "not lost")

        self.each(cases, death)

    def test_a_killed_first_login(self):
        """The next login adds the account, whatever the killed process left behind."""
        def death(world, point):
            for account in (ADA, GRACE):
                world.expect("logout", PROVIDER, "--account", account)
            strict(end(world.login(CREDMGR_FAULT=point)) == -9)
            world.expect("vault", "verify")
            process = world.login()
            # If the first login lacked only its last message, a second one reports an existing account.
            strict(end(process) == (USAGE if point == "login.committed" else DONE), process.said)
            strict(world.service.accepts(world.expect("token", PROVIDER).line))
            strict("interrupted" not in world.expect("status").err)

        self.each(list(POINTS["login"]), death)


class Release(unittest.TestCase):
    def test_a_release_has_no_fault_points(self):
        folder = os.path.join(SOURCES, "../.build/release")
        programs = [os.path.join(folder, name) for name in ("credmgr", "credmgr-online")]
        if not all(os.path.exists(program) for program in programs):
            self.skipTest("nothing was built for use: swift build -c release")
        for program in programs:
            with open(program, "rb") as file:
                content = file.read()
            for name in ("CREDMGR_FAULT", "CREDMGR_CLOCK_OFFSET", "CREDMGR_CHEAP_PASSPHRASES", *fault_points()):
                # The content is no part of the failure: it is 20 MB.
                self.assertFalse(name.encode() in content, f"{program} has the fault point {name}")


@unittest.skipUnless(os.access(STRACE, os.X_OK), "there is no strace")
class SystemCalls(CrashTest):
    """Kills and failures at every system call that changes something, also in a release build."""

    def inject(self, world, fault, *arguments, log=None, **environment):
        options = ["-f", "-qq", "-o", log or "/dev/null", "-e", "trace=" + ",".join(WRITING)]
        if fault:
            options += ["-e", "inject=" + fault]
        return world.start(*options, BINARY, *arguments, binary=STRACE, **environment)

    def calls(self, world, *arguments):
        """Returns how often each call occurs in an undisturbed run in this world.

        Worlds differ: an identifier depends on the vault's key, so each vault changes other pages.
        """
        world.restore()
        log = os.path.join(world.folder, "calls")
        self.assertEqual(end(self.inject(world, None, *arguments, log=log)), DONE)
        with open(log, encoding="utf-8", errors="replace") as file:
            return collections.Counter(re.findall(r"^\d+ +(\w+)\(", file.read(), re.M))

    def death_between(self, name, *arguments, workers=WORKERS):
        _, check = COMMANDS[name]

        def cases(world):
            counts = self.calls(world, *arguments)
            return [(call, when) for call, count in counts.items() for when in range(1, count + 1, PART)]

        def death(world, case):
            call, when = case
            code = end(self.inject(world, f"{call}:signal=KILL:when={when}", *arguments))
            # The number of reads from a socket depends on how the answer arrives.
            strict(code == -9 or (code == DONE and call == "recvfrom"), "it did not die:", code)
            return check(world)

        deaths = self.each(cases, death, workers)
        lost = sum(was_lost for _, was_lost in deaths)
        report(f"{name}: killed before each of {len(deaths)} system calls, {lost} answers lost, all of them told")
        return lost

    def test_refresh(self):
        # The last bytes of the answer, and the call that saves it.
        self.assertLessEqual(self.death_between("refresh", "token", PROVIDER, "--account", ADA, "--refresh"), 4)

    def test_logout(self):
        self.death_between("logout", "logout", PROVIDER, "--account", ADA)

    def test_rotate(self):
        self.assertEqual(self.death_between("rotate", "vault", "rotate"), 0)

    def test_restore(self):
        world = self.world()
        strand_key_file(world)
        world.save()
        # Nothing has changed since the backup, so both vaults contain everything.
        self.assertEqual(self.death_between(
            "restore", "vault", "restore", world.backup, "--key-file", world.backup_key, workers=1), 0)

    def test_a_change_that_makes_the_file_shorter(self):
        """SQLite truncates the file after the commit, so the rest that a killed process leaves is unused."""
        world = self.world()
        vault = os.path.join(world.home, "vault", "vault.db")
        arguments = ("logout", OTHER, "--account", "large-1", "--keep-remote")
        for number in range(4):
            world.expect("login", OTHER, "--account", f"large-{number}", "--with-token", stdin="x" * 60_000)
        world.save()
        size = os.path.getsize(vault)
        counts = self.calls(world, *arguments)
        cases = [(call, when) for call, count in counts.items() for when in range(1, count + 1)]
        # The most important case is always included.
        some = cases if PART == 1 else random.Random(SEED).sample(cases, 8)
        for call, when in {*some, ("ftruncate", counts["ftruncate"])}:
            with self.subTest(call=call, when=when, seed=SEED):
                world.restore()
                self.assertEqual(end(self.inject(world, f"{call}:signal=KILL:when={when}", *arguments)), -9)
                world.expect("vault", "verify")
                there = world.run("token", OTHER, "--account", "large-1")
                self.assertIn((there.status, there.line), {(DONE, "x" * 60_000), (LOGIN_NEEDED, "")})
                world.expect("logout", OTHER, "--account", "large-2", "--keep-remote")
                if there.status == DONE:
                    world.expect(*arguments)
                world.assert_whole()
                self.assertLess(os.path.getsize(vault), size - 100_000)

    def failing(self, errors, calls, lasting):
        """Makes each call fail in turn, once or from then on."""
        arguments = ("token", PROVIDER, "--account", ADA, "--refresh")

        def cases(world):
            counts = self.calls(world, *arguments)
            # Each error meets other calls.
            return [(call, error, when) for call in calls for number, error in enumerate(errors)
                    for when in range(1 + number * PART // len(errors), counts[call] + 1, PART)]

        def failure(world, case):
            call, error, when = case
            process = self.inject(world, f"{call}:error={error}:when={when}{'+' if lasting else ''}", *arguments)
            out, err = process.communicate(timeout=TIMEOUT)
            strict(process.returncode in (DONE, LOCKED), "status", process.returncode, err)
            if process.returncode == DONE:
                strict(world.service.accepts(out.strip()), "a token that the provider does not know")
            else:
                strict(re.search(r"(?m)^credmgr: error: \S", err), err)
                asked = world.service.counts["token:refresh_token"]
                strict(("only in a file next to the vault" in err) == bool(asked), "the provider was asked", asked, "times:", err)
            return after_refresh(world)

        # The program tries to save an answer for some seconds.
        failures = self.each(cases, failure, 4 * WORKERS if lasting else WORKERS)
        self.assertTrue(failures)
        lost = sum(was_lost for _, was_lost in failures)
        report(f"{'/'.join(errors)} {'from each on' if lasting else 'at each'} of {len(failures)} calls: "
               f"{lost} answers lost, all of them told")
        return lost

    def test_a_write_or_a_sync_that_fails_once_costs_nothing(self):
        self.assertEqual(self.failing(["ENOSPC", "EIO"], ["pwrite64"], lasting=False), 0)
        self.assertEqual(self.failing(["EIO"], ["fsync", "fdatasync"], lasting=False), 0)

    def test_a_disk_that_stays_full_and_a_disk_that_does_not_sync(self):
        self.failing(["ENOSPC"], ["pwrite64"], lasting=True)
        self.failing(["EIO"], ["fdatasync"], lasting=True)


class Disks(CrashTest):
    """Without space, write permission, or large enough files, credmgr requests nothing that it could lose."""

    def refused(self, world, *words):
        """A refresh and a login fail before contacting the provider, and change nothing."""
        world.service.exchanges.clear()
        for arguments in (("token", PROVIDER, "--account", ADA, "--refresh"),
                          ("login", PROVIDER, "--account", ADA, "--timeout", "5s")):
            outcome = world.expect(*arguments, status=LOCKED)
            self.assertRegex(outcome.err, r"(?m)^credmgr: error: \S")
            self.assertRegex(outcome.err, "|".join(words))
        self.assertEqual(world.service.exchanges, [], "the provider was asked")
        world.assert_whole()

    def mounted(self, *options):
        if os.geteuid() != 0:
            self.skipTest("only root can mount")
        world = self.world()
        done = subprocess.run(["mount", *options, world.home], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.skipTest(done.stderr)
        self.addCleanup(subprocess.run, ["umount", "--lazy", world.home], check=False)
        return world

    def full_disk(self):
        world = self.mounted("-t", "tmpfs", "-o", "size=512k,mode=700", "tmpfs")
        for name in os.listdir(world.saved):
            shutil.copytree(os.path.join(world.saved, name), os.path.join(world.home, name))
        return world

    def fill(self, world):
        path = os.path.join(world.home, "filler")
        with open(path, "ab", buffering=0) as filler:
            for size in (65536, 4096, 1):
                try:
                    while True:
                        filler.write(b"x" * size)
                except OSError as error:
                    self.assertEqual(error.errno, errno.ENOSPC)
        return path

    def test_a_full_disk(self):
        world = self.full_disk()
        filler = self.fill(world)
        self.refused(world, "full")
        os.remove(filler)
        self.assertTrue(world.works())

    def test_a_disk_that_fills_while_the_provider_answers(self):
        if not is_test_build():
            self.skipTest("this program was built for use, and has no fault points")
        world = self.full_disk()
        process = refresh(world, CREDMGR_FAULT="refresh.answered=stop")
        self.stopped(process)
        filler = self.fill(world)
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, LOCKED, err)
        self.assertIn("only in a file next to the vault", err)
        world.assert_whole()
        os.remove(filler)
        newest = world.service.tokens[-1].access_token
        self.assertEqual(world.expect("token", PROVIDER, "--account", ADA, "--refresh").line, newest)
        self.assertTrue(world.works())
        self.assertEqual(world.service.counts["reuse"], 0)

    def stopped(self, process):
        self.wait_until(lambda: text_of(f"/proc/{process.pid}/stat").rpartition(")")[2].split()[0] == "T")

    def test_a_directory_that_is_read_only(self):
        world = self.mounted("--bind", self.world().home)
        subprocess.run(["mount", "-o", "remount,bind,ro", world.home], check=True)
        self.refused(world, "the file system is read-only")
        world.expect("logout", PROVIDER, "--account", ADA, status=LOCKED)
        subprocess.run(["mount", "-o", "remount,bind,rw", world.home], check=True)
        self.assertTrue(world.works())

    def test_a_limit_on_the_length_of_files(self):
        world = self.world()
        size = os.path.getsize(os.path.join(world.home, "vault", "vault.db"))
        for limit in (0, 512, 4096, size // 2, size - 4096, size - 1, size):
            with self.subTest(limit=limit):
                world.restore()
                command = ["prlimit", f"--fsize={limit}", "--", BINARY, "token", PROVIDER, "--account", ADA, "--refresh"]
                process = world.start(*command[1:], binary="/usr/bin/prlimit")
                out, err = process.communicate(timeout=TIMEOUT)
                if process.returncode == DONE:
                    self.assertTrue(world.service.accepts(out.strip()))
                else:
                    self.assertEqual(process.returncode, LOCKED, err)
                    self.assertRegex(err, r"(?m)^credmgr: error: \S")
                self.assertFalse(after_refresh(world))
