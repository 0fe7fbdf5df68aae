"""The packages in a bare tree of Debian 12, which has no Swift and nothing else that builds them.

`script/package --test` makes the packages and runs this; otherwise it is skipped. It needs root, debootstrap and a mirror of
Debian, and takes minutes the first time; the bare tree is kept as .build/bookworm.tar. Processes in the tree have their own
process numbers and mounts, and end with the test.
"""

import glob
import os
import shutil
import subprocess
import tempfile
import unittest

from browser import Browser
from program import HERE, TIMEOUT, Running, text_of

PACKAGES = os.environ.get("CREDMGR_PACKAGES")
BARE = os.path.abspath(os.path.join(HERE, "../../.build/bookworm.tar"))
RELEASE = "bookworm"
SLOW = 900


def run(*arguments, **options):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=SLOW, stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        raise AssertionError(f"{' '.join(arguments)}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def bare_tree(folder):
    """Unpacks the tree, which is fetched once."""
    if not os.path.exists(BARE):
        with tempfile.TemporaryDirectory(prefix="credmgr-bare-") as fresh:
            run("debootstrap", "--variant=minbase", RELEASE, fresh)
            run("tar", "--create", "--numeric-owner", "--file", BARE + ".new", "--directory", fresh, ".")
        os.rename(BARE + ".new", BARE)
    run("tar", "--extract", "--numeric-owner", "--preserve-permissions", "--file", BARE, "--directory", folder)
    # It was a temporary folder, which is open to its owner alone.
    os.chmod(folder, 0o755)


@unittest.skipUnless(PACKAGES, "only script/package --test tests the packages")
@unittest.skipUnless(os.geteuid() == 0, "only root can make a tree of Debian")
@unittest.skipUnless(os.path.exists(BARE) or shutil.which("debootstrap"), "there is no debootstrap")
class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = tempfile.mkdtemp(prefix="credmgr-tree-")
        cls.addClassCleanup(shutil.rmtree, cls.tree, ignore_errors=True)
        bare_tree(cls.tree)
        (deb,) = glob.glob(os.path.join(PACKAGES, "credmgr_*.deb"))
        (cls.tarball,) = glob.glob(os.path.join(PACKAGES, "credmgr-*.tar.xz"))
        cls.deb = deb
        shutil.copy(deb, os.path.join(cls.tree, "credmgr.deb"))
        cls.inside("useradd", "--create-home", "--shell", "/bin/bash", "ada", user="root")
        cls.inside("apt-get", "update", user="root")
        cls.apt("install", "/credmgr.deb", "git")

    @classmethod
    def command(cls, *arguments, user="ada", **environment):
        """The command that runs `arguments` in the tree as a user who has just logged in."""
        home = "/root" if user == "root" else f"/home/{user}"
        settings = {"HOME": home, "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
                    "DEBIAN_FRONTEND": "noninteractive", **environment}
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={cls.tree}/proc",
                "chroot", f"--userspec={user}:{user}", cls.tree,
                "env", "--ignore-environment", f"--chdir={home}", *(f"{n}={v}" for n, v in settings.items()), *arguments]

    @classmethod
    def inside(cls, *arguments, **options):
        return run(*cls.command(*arguments, **options))

    @classmethod
    def apt(cls, *arguments):
        return cls.inside("apt-get", "--quiet", "--yes", "--no-install-recommends", *arguments, user="root")

    def start(self, *arguments):
        process = subprocess.Popen(
            self.command(*arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close(), process.stderr.close()))
        return process

    def simulate(self, provider):
        """Starts the simulator in the tree; what it says about itself."""
        process = self.start("credmgr", "simulate", provider, "--port", "0")
        said = {}
        for line in process.stdout:
            for word in ("listening on", "descriptor", "client-id", "client-secret-file"):
                if line.startswith(word + " "):
                    said[word] = line[len(word) + 1:].rstrip("\n")
            if line.startswith("ready"):
                return said
        raise AssertionError(process.stderr.read())

    def test_from_the_first_to_the_last(self):
        """In the order in which a person comes by it: installed, logged in, upgraded, removed, unpacked elsewhere."""
        with self.subTest("it is whole, and nothing that built it is there"):
            self.assertEqual(self.inside("dpkg", "--verify", "credmgr"), "")
            for tool in ("swift", "cc", "ld"):
                self.assertNotEqual(subprocess.run(
                    self.command("which", tool), capture_output=True, timeout=TIMEOUT).returncode, 0)
        with self.subTest("the programs start"):
            self.assertRegex(self.inside("credmgr", "--version"), r"^credmgr \d")
            self.assertIn("capability", self.inside("git-credential-credmgr", "capability"))
            self.assertIn("credmgr", self.inside("docker-credential-credmgr", "version"))
            shipped = len(glob.glob(os.path.join(HERE, "../../providers/*.yaml")))
            self.assertEqual(self.inside("credmgr", "providers", "--json").count('"provider":'), shipped)
            if os.path.exists(os.path.join(HERE, "../../script/manual")):
                pages = self.tree + "/usr/share/man/man1/"
                self.assertTrue(os.path.exists(pages + "credmgr.1.gz"))
                self.assertEqual(os.readlink(pages + "credmgr-login.1.gz"), "credmgr-accounts.1.gz")
                links = [pages + name for name in os.listdir(pages) if os.path.islink(pages + name)]
                self.assertEqual([link for link in links if not os.path.isfile(link)], [])
            for program in glob.glob(self.tree + "/usr/libexec/credmgr/*"):
                loaded = self.inside("ldd", program.removeprefix(self.tree))
                self.assertNotIn("not found", loaded)
                self.assertNotIn("swift", loaded)
                # A library that somebody puts beside a program is not loaded.
                self.assertNotIn("PATH)", run("readelf", "--dynamic", program))
            self.assertTrue(os.path.exists(self.tree + "/usr/share/applications/credmgr.desktop"))
        token = self.log_in()
        with self.subTest("the shells find the words"):
            self.apt("install", "bash-completion", "zsh", "fish")
            # With an account, the words of a provider come from the vault.
            self.assertIn("complete -F _credmgr credmgr", self.inside(
                "bash", "-c", ". /usr/share/bash-completion/bash_completion; _completion_loader credmgr; complete -p credmgr"))
            self.assertEqual(self.inside("zsh", "-c", (
                "autoload -Uz compinit; compinit -u -D; print $_comps[credmgr]; "
                "autoload +X $_comps[credmgr]; whence -w _credmgr")), "_credmgr\n_credmgr: function\n")
            self.assertIn("github", self.inside("fish", "-c", 'complete -C "credmgr token gi"'))
        with self.subTest("an upgrade leaves the vault"):
            self.upgrade()
            self.assertEqual(self.inside("credmgr", "token", "github"), token)
        with self.subTest("removal takes what was installed, and nothing else"):
            self.apt("purge", "credmgr")
            left = [path for path in glob.glob(self.tree + "/usr/**/*credmgr*", recursive=True)]
            self.assertEqual(left, [])
            self.assertTrue(os.listdir(self.tree + "/home/ada/.local/share/credmgr"))
        with self.subTest("the tarball, below /usr/local"):
            run("tar", "--extract", "--file", self.tarball, "--strip-components=1", "--directory", self.tree + "/usr/local")
            self.assertEqual(self.inside("credmgr", "token", "github"), token)
            # Through the program with a network.
            self.assertEqual(len(self.inside("credmgr", "refresh", "--all")), 0)

    def log_in(self):
        with self.subTest("a login, with the simulator in the tree and the browser outside of it"):
            said = self.simulate("github")
            # From another process, whose folder of temporary files is the same one.
            self.inside("credmgr", "add-provider", said["descriptor"], "--replace", "--client-id", said["client-id"],
                        "--client-secret-file", said["client-secret-file"])
            login = Running(self.start("credmgr", "login", "github", "--account", "ada", "--no-browser"), lambda o: o)
            Browser().open(login.address())
            outcome = login.end()
            self.assertEqual(outcome.status, 0, outcome.err)
            token = self.inside("credmgr", "token", "github")
            self.assertTrue(token.strip())
            self.inside("credmgr", "request", "github", said["listening on"] + "/simulator/resource")
            self.assertEqual(self.inside("credmgr", "vault", "verify"), "")
        return token

    def upgrade(self):
        """Installs the same package under a higher version."""
        with tempfile.TemporaryDirectory(prefix="credmgr-upgrade-") as folder:
            run("dpkg-deb", "--raw-extract", self.deb, folder)
            control = os.path.join(folder, "DEBIAN/control")
            text = text_of(control)
            with open(control, "w", encoding="utf-8") as file:
                file.write(text.replace("\nVersion: ", "\nVersion: 9:", 1))
            run("dpkg-deb", "--root-owner-group", "-Znone", "--build", folder, self.tree + "/newer.deb")
        self.apt("install", "/newer.deb")
        self.assertIn("9:", self.inside("dpkg-query", "--show", "--showformat=${Version}", "credmgr"))
