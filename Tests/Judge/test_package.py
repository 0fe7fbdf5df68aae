"""The packages: their files, and how they work in a bare Debian 12, without Swift and without build tools.

`script/package --test` builds the packages and runs this, and `script/siege` runs the first part; otherwise it is
skipped.
"""

import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from bare_system import SLOW, BareSystem, run
from program import HERE, ROOT, TIMEOUT, text_of

PACKAGES = os.environ.get("CREDMGR_PACKAGES")


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
        readme = text_of(self.folder + "/usr/share/doc/credmgr/README.md")
        self.assertNotIn("script/", readme)
        self.assertIn("\n## Install\n", readme)
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
class Package(BareSystem):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.deb,) = glob.glob(os.path.join(PACKAGES, "credmgr_*.deb"))
        (cls.tarball,) = glob.glob(os.path.join(PACKAGES, "credmgr-*.tar.xz"))
        shutil.copy(cls.deb, os.path.join(cls.tree, "credmgr.deb"))
        cls.apt("install", "/credmgr.deb", "git")

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
        with self.subTest("a login, with the simulator in the tree and the browser outside of it"):
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
