"""A terminal for a simulated user."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from browser import TIMEOUT


class Terminal:
    """Runs a program with a terminal as its three standard streams, and records the output."""

    def __init__(self, arguments, environment, folder, columns=80, rows=40, stdout=None):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            arguments, stdin=slave, stdout=stdout or slave, stderr=slave, env=environment, cwd=folder, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.seen = ""
        self.rest = b""

    def read(self, seconds):
        """Reads; returns whether there was more."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            self.rest += os.read(self.master, 65536)
        except OSError:
            return False
        # A character may arrive in two parts.
        text = self.rest.decode("utf-8", "ignore")
        self.rest = self.rest[len(text.encode()):]
        self.seen += text
        return True

    def wait_for(self, pattern):
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            found = re.search(pattern, self.seen)
            if found:
                return found
            if not self.read(0.1):
                break
        found = re.search(pattern, self.seen)
        if found is None:
            self.process.kill()
            raise AssertionError(f"{pattern!r} never came; the terminal shows:\n{self.seen}")
        return found

    def wait_until_quiet(self, seconds=0.4):
        """Waits until no output has come for a while, because a shell does not report that it has handled a key."""
        before = None
        while before != self.seen:
            before = self.seen
            self.read(seconds)

    def type(self, text):
        os.write(self.master, text.encode())

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self, seconds=TIMEOUT):
        """Waits for the end; returns the exit status."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.read(0.1):
            pass
        try:
            return self.process.wait(max(end - time.monotonic(), 1))
        finally:
            os.close(self.master)
