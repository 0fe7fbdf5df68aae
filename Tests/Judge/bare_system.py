"""A bare Debian or Ubuntu in a directory, without Swift and without build tools.

It needs root, debootstrap and a mirror, and takes minutes the first time; .build/RELEASE.tar keeps it. Processes in it
have their own process numbers and mounts, and end with the test.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from browser import Browser
from program import HERE, Running

SLOW = 900
# Debian has no keyring of Ubuntu, and not every version of debootstrap knows its releases, which are all alike.
UBUNTU = {"noble": ["--no-check-gpg", "--components=main,universe"]}
UBUNTU_SOURCE = ["http://archive.ubuntu.com/ubuntu", "/usr/share/debootstrap/scripts/gutsy"]


def run(*arguments, **options):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=SLOW, stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        raise AssertionError(f"{' '.join(arguments)}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def archive(release):
    return os.path.abspath(os.path.join(HERE, f"../../.build/{release}.tar"))


def unpack(release, folder):
    """Unpacks the system, which is downloaded once."""
    kept = archive(release)
    if not os.path.exists(kept):
        with tempfile.TemporaryDirectory(prefix="credmgr-bare-") as fresh:
            options, source = (UBUNTU[release], UBUNTU_SOURCE) if release in UBUNTU else ([], [])
            run("debootstrap", "--variant=minbase", *options, release, fresh, *source)
            run("tar", "--create", "--numeric-owner", "--file", kept + ".new", "--directory", fresh, ".")
        os.rename(kept + ".new", kept)
    run("tar", "--extract", "--numeric-owner", "--preserve-permissions", "--file", kept, "--directory", folder)
    # Temporary directories are accessible only to their owner.
    os.chmod(folder, 0o755)


class System(unittest.TestCase):
    """A system with credmgr; `command` returns the command that runs a program in it."""

    @classmethod
    def inside(cls, *arguments, **options):
        return run(*cls.command(*arguments, **options))

    def start(self, *arguments):
        process = subprocess.Popen(
            self.command(*arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)

        def end():
            # unshare(1) cannot end a process that has become another user.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()
            process.stderr.close()

        self.addCleanup(end)
        return process

    def simulate(self, provider):
        """Starts the simulator in the system; returns its output."""
        process = self.start("credmgr", "simulate", provider, "--port", "0")
        said = {}
        for line in process.stdout:
            for word in ("listening on", "descriptor", "client-id", "client-secret-file"):
                if line.startswith(word + " "):
                    said[word] = line[len(word) + 1:].rstrip("\n")
            if line.startswith("ready"):
                return said
        raise AssertionError(process.stderr.read())

    def log_in(self):
        """Logs in with the simulator in the system and the browser outside of it; returns the token."""
        said = self.simulate("github")
        self.inside("credmgr", "add-provider", said["descriptor"], "--replace", "--client-id", said["client-id"],
                    "--client-secret-file", said["client-secret-file"], "--yes")
        login = Running(self.start("credmgr", "login", "github", "--account", "ada", "--no-browser"), lambda o: o)
        Browser().open(login.address())
        outcome = login.end()
        self.assertEqual(outcome.status, 0, outcome.err)
        token = self.inside("credmgr", "token", "github")
        self.assertTrue(token.strip())
        self.inside("credmgr", "request", "github", said["listening on"] + "/simulator/resource")
        self.assertEqual(self.inside("credmgr", "vault", "verify"), "")
        return token


@unittest.skipUnless(os.geteuid() == 0, "only root can make a tree of Debian")
class BareSystem(System):
    """Each subclass has its own tree, with the user `ada`."""

    release = "bookworm"

    @classmethod
    def setUpClass(cls):
        if not os.path.exists(archive(cls.release)) and not shutil.which("debootstrap"):
            raise unittest.SkipTest("there is no debootstrap")
        cls.tree = tempfile.mkdtemp(prefix="credmgr-tree-")
        cls.addClassCleanup(shutil.rmtree, cls.tree, ignore_errors=True)
        unpack(cls.release, cls.tree)
        cls.inside("useradd", "--create-home", "--shell", "/bin/bash", "ada", user="root")
        cls.inside("apt-get", "update", user="root")

    @classmethod
    def command(cls, *arguments, user="ada", **environment):
        """Returns the command that runs `arguments` in the system as a user who has just logged in."""
        home = "/root" if user == "root" else f"/home/{user}"
        settings = {"HOME": home, "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
                    "DEBIAN_FRONTEND": "noninteractive", **environment}
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={cls.tree}/proc",
                "chroot", f"--userspec={user}:{user}", cls.tree,
                "env", "--ignore-environment", f"--chdir={home}", *(f"{n}={v}" for n, v in settings.items()), *arguments]

    @classmethod
    def apt(cls, *arguments):
        return cls.inside("apt-get", "--quiet", "--yes", "--no-install-recommends", *arguments, user="root")
