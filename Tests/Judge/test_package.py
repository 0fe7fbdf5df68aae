"""The packages: their files, and how they work in a bare Debian 12, without Swift and without build tools.

`script/package --test` builds the packages and runs this, and `script/siege` runs the first part; otherwise it is
skipped. The bare system needs root, debootstrap and a Debian mirror, and takes minutes the first time;
.build/bookworm.tar keeps it. Processes in it have their own process numbers and mounts, and end with the test.
"""

import contextlib
import glob
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from browser import Browser
from program import HERE, ROOT, TIMEOUT, Running, text_of

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
    """Unpacks the system, which is downloaded once."""
    if not os.path.exists(BARE):
        with tempfile.TemporaryDirectory(prefix="credmgr-bare-") as fresh:
            run("debootstrap", "--variant=minbase", RELEASE, fresh)
            run("tar", "--create", "--numeric-owner", "--file", BARE + ".new", "--directory", fresh, ".")
        os.rename(BARE + ".new", BARE)
    run("tar", "--extract", "--numeric-owner", "--preserve-permissions", "--file", BARE, "--directory", folder)
    # Temporary directories are accessible only to their owner.
    os.chmod(folder, 0o755)


def contents(package):
    """Returns the digest of the package and of each file in it."""
    with tempfile.TemporaryDirectory(prefix="credmgr-contents-") as folder:
        if package.endswith(".deb"):
            run("dpkg-deb", "--raw-extract", package, folder)
        else:
            run("tar", "--extract", "--file", package, "--directory", folder)
        paths = [path for path in glob.glob(folder + "/**", recursive=True) if os.path.isfile(path)]
        return {os.path.relpath(path, folder): digest(path) for path in paths} | {"the package itself": digest(package)}


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@unittest.skipUnless(PACKAGES, "only script/package --test and script/siege test the packages")
class Files(unittest.TestCase):
    """Checks the content of the packages, without a Debian system."""

    def setUp(self):
        (self.deb,) = glob.glob(os.path.join(PACKAGES, "credmgr_*.deb"))
        self.folder = tempfile.mkdtemp(prefix="credmgr-package-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    @unittest.skipUnless(shutil.which("lintian"), "there is no lintian")
    def test_lintian_finds_nothing(self):
        done = subprocess.run(["lintian", "--fail-on", "error,warning", self.deb], capture_output=True, text=True, timeout=SLOW)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_the_programs_are_hardened(self):
        run("dpkg-deb", "--extract", self.deb, self.folder)
        static, dynamic = self.folder + "/usr/bin/credmgr", self.folder + "/usr/libexec/credmgr/credmgr-online"
        for program in (static, dynamic):
            segments = run("readelf", "--wide", "--segments", program)
            self.assertIn("GNU_RELRO", segments, program)
            self.assertRegex(segments, r"GNU_STACK .* RW  ", program)
            self.assertNotRegex(segments, r"LOAD .* RWE ", program)
            # Otherwise constants would be in a writable segment.
            self.assertRegex(run("readelf", "--wide", "--sections", program), r" \.rodata +PROGBITS( +\w+){4} +A", program)
            # The loader ignores a library placed next to a program.
            self.assertNotIn("PATH)", run("readelf", "--wide", "--dynamic", program))
        # A static program binds nothing at run time.
        self.assertNotIn("INTERP", run("readelf", "--wide", "--segments", static))
        self.assertIn("There is no dynamic section", run("readelf", "--wide", "--dynamic", static))
        self.assertRegex(run("readelf", "--wide", "--dynamic", dynamic), r"\(FLAGS_1\) +Flags: NOW PIE")

    def test_all_installed_files_take_20_MB_at_most(self):
        run("dpkg-deb", "--extract", self.deb, self.folder)
        sizes = {path: os.lstat(path).st_size for path in glob.glob(self.folder + "/**", recursive=True)
                 if not os.path.isdir(path)}
        self.assertGreater(len(sizes), 100)
        self.assertLessEqual(sum(sizes.values()), 20_000_000, sorted((size, path) for path, size in sizes.items())[-5:])

    def test_another_directory_makes_the_same_packages(self):
        if run("git", "-C", ROOT, "status", "--porcelain"):
            self.skipTest("the sources are not as they were committed")
        # This path is longer than the original one.
        sources = os.path.join(self.folder, "the-same-sources-in-another-directory")
        run("git", "clone", "--quiet", ROOT, sources)
        others = os.path.join(self.folder, "packages")
        temporary = os.path.join(self.folder, "temporary-files-of-the-second-build")
        os.mkdir(temporary)
        run(os.path.join(sources, "script/package"), "--output", others, env={**os.environ, "TMPDIR": temporary})
        for name in sorted(os.listdir(PACKAGES)):
            one, other = contents(os.path.join(PACKAGES, name)), contents(os.path.join(others, name))
            # Names the differing files inside the package.
            self.assertEqual([path for path in one.keys() | other.keys() if one.get(path) != other.get(path)], [], name)


class Sources(unittest.TestCase):
    """Checks without a build."""

    def test_no_path_of_the_sources_is_part_of_a_program(self):
        sources = glob.glob(os.path.join(ROOT, "Sources/**/*.swift"), recursive=True)
        self.assertTrue(sources)
        # For `withoutActuallyEscaping` an optimized program has the length of the file's path.
        paths = re.compile(r"#file\b|#filePath\b|\bwithoutActuallyEscaping\b")
        self.assertEqual([path for path in sources if paths.search(text_of(path))], [])


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
        """Returns the command that runs `arguments` in the system as a user who has just logged in."""
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

    def test_the_package_from_installation_to_removal(self):
        """Follows a user's order: install, log in, upgrade, remove, and unpack elsewhere."""
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
                self.assertTrue(os.path.isfile(pages + "credmgr-login.1.gz"))
            for program in glob.glob(self.tree + "/usr/libexec/credmgr/*"):
                loaded = self.inside("ldd", program.removeprefix(self.tree))
                self.assertNotIn("not found", loaded)
                self.assertNotIn("swift", loaded)
            self.assertTrue(os.path.exists(self.tree + "/usr/share/applications/credmgr.desktop"))
        token = self.log_in()
        with self.subTest("the shells find the words"):
            self.apt("install", "bash-completion", "zsh", "fish")
            # With an account, completion gets its words from the vault.
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
            # Uses the program with networking.
            self.assertEqual(len(self.inside("credmgr", "refresh", "--all")), 0)

    def log_in(self):
        with self.subTest("a login, with the simulator in the tree and the browser outside of it"):
            said = self.simulate("github")
            # Runs another process with the same temporary directory.
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
        """Installs the same package with a higher version."""
        with tempfile.TemporaryDirectory(prefix="credmgr-upgrade-") as folder:
            run("dpkg-deb", "--raw-extract", self.deb, folder)
            control = os.path.join(folder, "DEBIAN/control")
            text = text_of(control)
            with open(control, "w", encoding="utf-8") as file:
                file.write(text.replace("\nVersion: ", "\nVersion: 9:", 1))
            run("dpkg-deb", "--root-owner-group", "-Znone", "--build", folder, self.tree + "/newer.deb")
        self.apt("install", "/newer.deb")
        self.assertIn("9:", self.inside("dpkg-query", "--show", "--showformat=${Version}", "credmgr"))
