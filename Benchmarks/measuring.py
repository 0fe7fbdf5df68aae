"""Measures whole processes in turn (A, B, C, A, B, C, …), so that other load affects all of them equally.

hyperfine runs all of A, then all of B, and Debian's version cannot pass standard input.
"""

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field


@dataclass
class Command:
    arguments: list
    environment: dict
    # The text on standard input.
    text: str = ""
    # The required output of the first run: a fast wrong answer is not a result.
    expected: str | None = None
    path: str = field(default="", init=False)

    def prepare(self, folder):
        self.path = os.path.join(folder, f"input-{abs(hash(self.text))}")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(self.text)
        program = self.arguments[0]
        self.arguments = [shutil.which(program, path=self.environment.get("PATH")) or program, *self.arguments[1:]]
        with open(self.path, "rb") as file:
            outcome = subprocess.run(
                self.arguments, env=self.environment, stdin=file, capture_output=True, timeout=60, check=False)
        out = outcome.stdout.decode()
        if outcome.returncode != 0 or (self.expected is not None and self.expected not in out):
            raise RuntimeError(
                f"{' '.join(self.arguments)}: status {outcome.returncode}\n{out[:200]}{outcome.stderr.decode()[:500]}")

    def start(self):
        return os.posix_spawn(
            self.arguments[0], self.arguments, self.environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, self.path, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
            ])

    def run(self):
        """Returns the milliseconds from its start to its end."""
        before = time.perf_counter_ns()
        process = self.start()
        status = os.waitpid(process, 0)[1]
        after = time.perf_counter_ns()
        if status != 0:
            raise RuntimeError(f"{' '.join(self.arguments)}: status {status}")
        return (after - before) / 1e6


# The longest time for repeating commands, in seconds. All rounds take less on an idle machine.
LIMIT = 20
# A median of fewer rounds means little.
FEWEST = 15


def is_over(started, rounds):
    return rounds >= FEWEST and time.monotonic() - started > LIMIT


def in_turn(commands, rounds, warm_up=5):
    """Returns the times in milliseconds of each named command; in fewer rounds if they take too long.

    Each command runs twice. Only the second run counts, because a program before it may have emptied the caches.
    """
    times = {name: [] for name in commands}
    started = time.monotonic()
    for number in range(rounds + warm_up):
        if is_over(started, number - warm_up):
            break
        for name, command in commands.items():
            command.run()
            duration = command.run()
            if number >= warm_up:
                times[name].append(duration)
    return times


def medians(times):
    return {name: statistics.median(values) for name, values in times.items()}


def peak_memory(command):
    """Returns the maximum resident set in KiB. Uses time(1), because Python's own memory would count otherwise."""
    if not (program := shutil.which("time")):
        return None
    with tempfile.NamedTemporaryFile("r") as report, open(command.path, "rb") as text:
        subprocess.run([program, "-f", "%M", "-o", report.name, *command.arguments], env=command.environment,
                       stdin=text, stdout=subprocess.DEVNULL, check=True)
        return int(report.read())


def at_once(commands, processes, rounds):
    """Returns the median milliseconds until this many simultaneous processes of each command have ended."""
    times = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            before = time.perf_counter_ns()
            started = [command.start() for _ in range(processes)]
            if any(os.waitpid(process, 0)[1] for process in started):
                raise RuntimeError(f"one of many {name} failed")
            times[name].append((time.perf_counter_ns() - before) / 1e6)
    return medians(times)
