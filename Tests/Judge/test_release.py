"""A release: its files, the signed repository in bare systems, and the image in containers.

`script/release --test` makes a release for http://packages.test:PORT and runs this; otherwise it is skipped. Where
podman cannot run containers, the layers of the image run in a directory instead.
"""

import functools
import glob
import gzip
import hashlib
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import threading
import unittest

from bare_system import SLOW, BareSystem, System, run
from program import ROOT, text_of

RELEASE = os.environ.get("CREDMGR_RELEASE", "")
# The keys of script/release --test, and the packages of the release.
MINISIGN, GPG, PACKAGES = (os.environ.get(f"CREDMGR_RELEASE_{name}", "") for name in ("MINISIGN", "GPG", "PACKAGES"))
only_releases = unittest.skipUnless(RELEASE, "only script/release --test tests a release")


def path_of(pattern):
    (path,) = glob.glob(os.path.join(RELEASE, pattern))
    return path


def address():
    return re.search(r"(?m)^URIs: (.*)/apt$", text_of(os.path.join(RELEASE, "credmgr.sources"))).group(1)


class Server(http.server.ThreadingHTTPServer):
    """Serves the release at its address on this machine."""

    def __init__(self):
        handler = functools.partial(Quiet, directory=RELEASE)
        super().__init__(("127.0.0.1", int(address().rpartition(":")[2])), handler)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *arguments):
        self.shutdown()
        self.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@only_releases
class Files(unittest.TestCase):
    def test_the_checksums_and_their_signature(self):
        run("minisign", "-V", "-q", "-p", MINISIGN + ".pub", "-m", os.path.join(RELEASE, "SHA256SUMS"))
        run("sha256sum", "--quiet", "--check", "SHA256SUMS", cwd=RELEASE)
        sums = {line.split("  ")[1] for line in text_of(os.path.join(RELEASE, "SHA256SUMS")).splitlines()}
        files = {os.path.relpath(path, RELEASE) for path in glob.glob(RELEASE + "/**", recursive=True) if os.path.isfile(path)}
        self.assertEqual(files - sums, {"SHA256SUMS", "SHA256SUMS.minisig"})

    def test_the_signatures_of_the_repository(self):
        folder = tempfile.mkdtemp(prefix="credmgr-release-")
        self.addCleanup(shutil.rmtree, folder)
        keyring, dists = folder + "/keys", os.path.join(RELEASE, "apt/dists/stable")
        run("gpg", "--quiet", "--export", "--output", keyring, GPG)
        # gpgv never asks or trusts another key.
        run("gpgv", "--keyring", keyring, dists + "/InRelease")
        run("gpgv", "--keyring", keyring, dists + "/Release.gpg", dists + "/Release")

    def test_the_bill_of_materials(self):
        from spdx_tools.spdx.parser.parse_anything import parse_file
        from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
        path = path_of("*.spdx.json")
        self.assertEqual(validate_full_spdx_document(parse_file(path)), [])
        packages = json.loads(text_of(path))["packages"]
        names = {package["name"] for package in packages}
        self.assertLessEqual({"swift", "glibc", "openssl", "libcurl4", "ca-certificates"}, names)
        digests = {sum["checksumValue"] for package in packages for sum in package.get("checksums", [])}
        sums = text_of(os.path.join(RELEASE, "SHA256SUMS")).splitlines()
        self.assertEqual(digests, {line.split()[0] for line in sums if re.search(r"\.deb$|\.tar", line)})

    def test_the_digests_of_the_image(self):
        with tarfile.open(path_of("*-image-*.tar")) as image:
            def blob(described):
                content = image.extractfile("blobs/" + described["digest"].replace(":", "/")).read()
                self.assertEqual((len(content), "sha256:" + hashlib.sha256(content).hexdigest()),
                                 (described["size"], described["digest"]))
                return content

            index = json.load(image.extractfile("index.json"))
            manifest = json.loads(blob(index["manifests"][0]))
            config = json.loads(blob(manifest["config"]))
            layers = [gzip.decompress(blob(layer)) for layer in manifest["layers"]]
            self.assertEqual(["sha256:" + hashlib.sha256(layer).hexdigest() for layer in layers],
                             config["rootfs"]["diff_ids"])

    def test_the_release_notes_are_those_of_the_changelog(self):
        notes = text_of(os.path.join(RELEASE, "release-notes.md"))
        self.assertIn("\n### Added\n", notes)
        self.assertNotRegex(notes, "(?m)^## ")

    def test_another_directory_makes_the_same_files(self):
        """The programs themselves are compared in test_package."""
        folder = tempfile.mkdtemp(prefix="credmgr-another-directory-")
        self.addCleanup(shutil.rmtree, folder)
        run("git", "clone", "--quiet", ROOT, folder + "/sources")
        if run("git", "-C", ROOT, "status", "--porcelain"):
            self.skipTest("the sources are not as they were committed")
        run(folder + "/sources/script/release", "--url", address(), "--gpg-key", GPG, "--minisign-key", MINISIGN,
            "--packages", PACKAGES, "--output", "release", cwd=folder)
        run("diff", "--recursive", RELEASE, folder + "/release")


class Installation(BareSystem):
    """Runs the lines of the README that install credmgr."""

    @classmethod
    def setUpClass(cls):
        if not RELEASE:
            raise unittest.SkipTest("only script/release --test tests a release")
        super().setUpClass()
        cls.apt("install", "curl", "ca-certificates")
        with open(cls.tree + "/etc/hosts", "a", encoding="utf-8") as file:
            file.write("127.0.0.1 packages.test\n")
        # The commands already run as root.
        with open(cls.tree + "/usr/local/bin/sudo", "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nexec "$@"\n')
        os.chmod(cls.tree + "/usr/local/bin/sudo", 0o755)
        cls.enterClassContext(Server())

    def installs_for_jobs(self):
        """Runs the script of the action and of the feature."""
        shutil.copy(os.path.join(ROOT, "Packaging/devcontainer/credmgr/install.sh"), self.tree + "/install.sh")
        self.assertRegex(self.inside("/install.sh", user="root", URL=address()), "^credmgr ")

    def run_block(self, word, document="README.md"):
        """Runs the block of a document that contains `word`, with the address of this release."""
        blocks = re.findall(r"(?ms)^```sh\n(.*?)^```", text_of(document))
        (block,) = [block for block in blocks if word in block]
        block = block.replace("https://packages.example/credmgr", address()).replace("apt-get install", "apt-get install -y")
        self.inside("bash", "-e", "-c", block, user="root")

    def install(self):
        with self.subTest("apt"):
            self.run_block("credmgr.sources")
            self.assertIn(address(), self.inside("apt-cache", "policy", "credmgr"))
            self.log_in()
            self.assertEqual(self.inside("apt-get", "--simulate", "upgrade", user="root").count("Inst credmgr"), 0)
            self.apt("purge", "credmgr")
        with self.subTest("apt refuses the repository without its key"):
            sources = self.tree + "/etc/apt/sources.list.d/credmgr.sources"
            text = text_of(sources)
            with open(sources, "w", encoding="utf-8") as file:
                file.write(re.sub(r"(?s)\nSigned-By.*", "\n", text))
            refused = subprocess.run(self.command("apt-get", "update", user="root"), capture_output=True, text=True, timeout=SLOW)
            self.assertRegex(refused.stdout + refused.stderr, "NO_PUBKEY|not signed|Missing key")
            os.unlink(sources)
        with self.subTest("the layer, which has its own libraries"):
            self.run_block("-layer-")
            self.log_in()
            self.installs_for_jobs()
            shutil.copy(path_of("*-layer-*.tar.gz"), self.tree + "/root")
            self.run_block("rm -df", "docs/releasing.md")
            self.assertEqual(glob.glob(self.tree + "/usr/**/*credmgr*", recursive=True), [])


class Debian12(Installation):
    def test_the_lines_of_the_readme(self):
        self.install()


class Debian13(Installation):
    release = "trixie"

    def test_the_lines_of_the_readme(self):
        self.install()


class Ubuntu2404(Installation):
    release = "noble"

    def test_the_lines_of_the_readme(self):
        self.install()


class Schedulers(BareSystem):
    """The jobs of docs/ci.md, started by cron, and by systemd as process 1 of the bare system."""

    # Without the units of a whole system, and with the status of the unit as the status of systemd.
    ALONE = """[Unit]
DefaultDependencies=no
SuccessAction=exit-force
FailureAction=exit-force
FailureActionExitStatus=5
[Service]
StandardOutput=append:/output
StandardError=append:/output
"""
    BOOT = """mount --make-rprivate / && mount --bind "$1" "$1" && cd "$1" && mount -t proc proc proc && mount --rbind /sys sys
umount -R sys/fs/cgroup; mount -t cgroup2 none sys/fs/cgroup
mount -t tmpfs run run && mount -t tmpfs dev dev
for name in null zero full random urandom tty; do touch dev/$name; mount --bind /dev/$name dev/$name; done
mount --make-rshared .
exec env --ignore-environment container=test PATH=/usr/bin:/usr/sbin chroot . /lib/systemd/systemd --system --unit="$2"
"""

    @classmethod
    def setUpClass(cls):
        if not RELEASE:
            raise unittest.SkipTest("only script/release --test tests a release")
        super().setUpClass()
        shutil.copy(path_of("apt/pool/credmgr_*_amd64.deb"), cls.tree + "/credmgr.deb")
        cls.apt("install", "/credmgr.deb", "cron", "systemd")
        for user in ("reports", "cron-user"):
            cls.inside("useradd", "--create-home", user, user="root")
        run(os.path.join(ROOT, ".ci/examples"), cls.tree)
        for path in ("/etc/reports", "/srv/reports"):
            os.mkdir(cls.tree + path)
        cls.write("/srv/reports/publish", '#!/bin/sh\n[ "$REPORTS_TOKEN" ] && echo published\n', 0o755)
        cls.write("/srv/example.yaml", re.search(r"(?ms)^```yaml\n(provider: reports\n.*?)^```", text_of("docs/ci.md")).group(1))

    @classmethod
    def write(cls, path, text, mode=0o644):
        with open(cls.tree + path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(cls.tree + path, mode)

    def add_client(self):
        said = self.simulate("/srv/example.yaml")
        shutil.copy(self.tree + said["descriptor"], self.tree + "/srv/reports/reports.yaml")
        os.chmod(self.tree + "/srv/reports/reports.yaml", 0o644)
        shutil.copy(self.tree + said["client-secret-file"], self.tree + "/etc/reports/client-secret")
        return said["client-id"]

    def boot(self, unit):
        path = f"{self.tree}/etc/systemd/system/{unit}"
        os.makedirs(path + ".d", exist_ok=True)
        self.write(f"/etc/systemd/system/{unit}.d/alone.conf", self.ALONE)
        self.write("/output", "")
        done = subprocess.run(["unshare", "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child",
                               "sh", "-c", self.BOOT, "sh",
                               self.tree, unit], capture_output=True, text=True, timeout=SLOW, stdin=subprocess.DEVNULL)
        output = text_of(self.tree + "/output")
        self.assertEqual(done.returncode, 0, output + done.stderr)
        self.assertIn("published\n", output)

    def test_the_crontab(self):
        home, user = self.tree + "/home/cron-user", "cron-user"
        client = self.add_client()
        self.inside("chown", user, "/etc/reports/client-secret", user="root")
        self.inside("credmgr", "add-provider", "/srv/reports/reports.yaml", "--client-id", client, "--client-secret-file",
                    "/etc/reports/client-secret", "--yes", user=user)
        self.inside("credmgr", "login", "reports", user=user)
        # The test waits for the job to open this file.
        os.mkfifo(home + "/published", 0o666)
        self.write("/home/cron-user/publish", '#!/bin/sh\n[ "$REPORTS_TOKEN" ] && echo published >published\n', 0o755)
        self.inside("chown", user, f"/home/{user}/published", f"/home/{user}/publish", user="root")
        # crontab refuses a table with an invalid line.
        self.inside("crontab", "/crontab", user=user)
        self.write("/crontab", text_of(self.tree + "/crontab").replace("*/30", "*"))
        self.inside("crontab", "/crontab", user=user)
        cron = subprocess.Popen(self.command("cron", "-f", user="root"), start_new_session=True)
        self.addCleanup(lambda: (os.killpg(cron.pid, signal.SIGKILL), cron.wait()))
        self.assertEqual(run("timeout", "120", "cat", home + "/published"), "published\n")

    def test_a_unit_with_a_client_secret(self):
        unit = "/etc/systemd/system/reports.service"
        self.write(unit, text_of(self.tree + unit).replace("reports-ci", self.add_client()))
        self.boot("reports.service")

    def test_a_unit_with_the_passphrase_of_a_vault(self):
        client = self.add_client()
        shutil.copy(self.tree + "/etc/reports/client-secret", self.tree + "/srv/client-secret")
        self.write("/etc/reports/vault-passphrase", "correct horse battery staple\n")
        self.inside("install", "--directory", "--owner=reports", "--mode=700", "/var/lib/reports", user="root")
        self.inside("chown", "reports", "/srv/client-secret", user="root")
        passphrase = "/etc/reports/vault-passphrase"
        for line in ((f"add-provider /srv/reports/reports.yaml --client-id {client} --client-secret-file /srv/client-secret --yes"),
                     "login reports", f"vault protect passphrase --passphrase-file {passphrase}",
                     "vault protect key-file --remove"):
            self.inside("credmgr", *line.split(), user="reports", CREDMGR_HOME="/var/lib/reports/credmgr",
                        CREDMGR_PASSPHRASE_FILE=passphrase)
        os.chmod(self.tree + passphrase, 0o600)
        self.boot("reports-of-ada.service")


@only_releases
class Image(System):
    """The image in containers, which share the network with this test."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="credmgr-image-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        # For the files of the simulator.
        os.mkdir(cls.folder + "/tmp")
        os.chmod(cls.folder + "/tmp", 0o1777)

    @classmethod
    def podman(cls, *arguments):
        """Runs podman with its own storage, and as root in a mount namespace with version 2 of the control groups."""
        command = ["podman", "--root", cls.folder + "/root", "--runroot", cls.folder + "/run", "--storage-driver", "vfs",
                   *arguments]
        if os.geteuid() != 0:
            return command
        return ["unshare", "--mount", "sh", "-c",
                'umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec "$@"', "sh", *command]

    @classmethod
    def command(cls, _, *arguments):
        return cls.podman("run", "--rm", "--network", "host", "--cgroups", "disabled", "--ulimit", "nofile=1024:1024",
                          "--ulimit", "nproc=4096:4096", "--volume", "vault:/credmgr", "--volume", cls.folder + "/tmp:/tmp",
                          cls.image, *arguments)

    @unittest.skipUnless(shutil.which("podman"), "there is no podman")
    def test_podman_runs_it(self):
        loaded = run(*self.podman("load", "--input", path_of("*-image-*.tar")))
        type(self).image = re.search(r"localhost/credmgr:\S+", loaded).group()
        # Containers outlive the process that started them.
        self.addCleanup(lambda: run(*self.podman("rm", "--all", "--force", "--time", "0")))
        self.assertIn("ok       certificates", self.inside("credmgr", "doctor"))
        self.log_in()

    def test_the_layer_runs_in_an_empty_directory(self):
        tree = self.folder + "/tree"
        os.mkdir(tree)
        run("tar", "--extract", "--file", path_of("*-layer-*.tar.gz"), "--directory", tree)
        os.mkdir(tree + "/home")
        for program in ("/usr/bin/credmgr", "/usr/libexec/credmgr/credmgr-online"):
            self.assertIn("credmgr", run("chroot", tree, program, "--version", env={"PATH": os.environ["PATH"], "HOME": "/home"}))
