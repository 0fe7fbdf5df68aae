"""The jobs of docs/ci.md, as their runner would run them, and the scripts that install credmgr for jobs.

`.ci/lint` checks the form of the same files. The client is that of a simulated provider.
"""

import functools
import glob
import hashlib
import http.server
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import tarfile
import tempfile
import threading
import unittest

import yaml
from program import BINARY, DONE, LOCKED, ROOT, TIMEOUT, ProgramTest, text_of
from team import BOT, PROVIDER, TEAM, TeamTest

PAGE = text_of("docs/ci.md")
ACTION = os.path.join(ROOT, "Packaging/action/install")
FEATURE = os.path.join(ROOT, "Packaging/devcontainer/credmgr")


class Jobs(ProgramTest):
    """Each test starts with the files of a job: its descriptor, its client secret and its program."""

    def setUp(self):
        super().setUp()
        self.job = os.path.join(self.folder, "job")
        os.mkdir(self.job)
        descriptor = self.file("reports.yaml", re.search(r"(?ms)^```yaml\n(provider: reports\n.*?)^```", PAGE).group(1))
        said = self.simulate(descriptor)
        os.rename(said["descriptor"], self.job + "/reports.yaml")
        self.client, self.secret = said["client-id"], said["client-secret-file"]
        for name, script in (("publish", '[ -n "$REPORTS_TOKEN" ] && echo published >>"$PUBLISHED"'),
                             ("apt-get", "true"), ("curl", "true")):
            self.script(os.path.join(self.job, name), script)
        self.published = self.environment["PUBLISHED"] = os.path.join(self.folder, "published")
        self.examples = os.path.join(self.folder, "examples")
        subprocess.run([os.path.join(ROOT, ".ci/examples"), self.examples], check=True, timeout=TIMEOUT)
        self.environment["PATH"] = f"{self.job}:{os.path.dirname(BINARY)}:{self.environment['PATH']}"

    def script(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o700)

    def simulate(self, source):
        simulator = subprocess.Popen([BINARY, "simulate", source, "--port", "0"], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, text=True, env=self.environment, cwd=self.folder)
        self.addCleanup(lambda: (simulator.terminate(), simulator.wait(TIMEOUT), simulator.stdout.close()))
        said = {}
        for line in simulator.stdout:
            word, _, value = line.rstrip("\n").rpartition(" ")
            said[word] = value
            if value == "ready":
                return said
        self.fail("the simulator ended")

    def example(self, path):
        return text_of(os.path.join(self.examples, path))

    def run_job(self, *command, **environment):
        done = subprocess.run(command, cwd=self.job, env={**self.environment, **environment}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")

    def assert_published(self):
        self.assertEqual(text_of(self.published), "published\n")

    def test_github_actions(self):
        with open(self.secret, encoding="utf-8") as file:
            values = {"vars.REPORTS_CLIENT_ID": self.client, "secrets.REPORTS_CLIENT_SECRET": file.read().strip()}
        for step in yaml.safe_load(self.example(".github/workflows/publish.yml"))["jobs"]["publish"]["steps"]:
            if "run" in step:
                variables = {name: values[value.strip("${ }")] for name, value in step.get("env", {}).items()}
                self.run_job("bash", "-e", "-c", step["run"], **variables)
        self.assert_published()

    def identity(self, provider):
        """Adds a simulated provider, and returns the token of the machine that it accepts."""
        said = self.simulate(provider)
        self.credmgr("add-provider", said["descriptor"], "--yes")
        return text_of(said["key-file"]).strip()

    def test_github_actions_with_the_identity_of_the_job(self):
        token = self.identity("pypi-trusted")
        # The runner answers curl's request.
        self.script(os.path.join(self.job, "curl"), 'if [ "$1" = -fsSG ]; then '
                    f'[ "$3 $6" = "Authorization: Bearer request {self.folder}" ] && echo \'{{"value": "{token}"}}\'; fi')
        self.script(os.path.join(self.job, "jq"), "sed 's/.*: \"//; s/\".*//'")
        self.script(os.path.join(self.job, "twine"), '[ -n "$TWINE_PASSWORD" ] && echo published >>"$PUBLISHED"')
        job = yaml.safe_load(self.example(".github/workflows/upload.yml"))
        self.assertEqual(job["permissions"]["id-token"], "write")
        for step in job["jobs"]["upload"]["steps"]:
            if "run" in step:
                self.run_job("bash", "-e", "-c", step["run"], RUNNER_TEMP=self.folder, ACTIONS_ID_TOKEN_REQUEST_TOKEN="request",
                             ACTIONS_ID_TOKEN_REQUEST_URL=self.folder)
        self.assert_published()

    def test_gitlab_ci_with_an_id_token(self):
        token = self.identity("pypi-trusted")
        job = yaml.safe_load(self.example("gitlab/upload.yml"))["upload"]
        name, = job["id_tokens"]
        self.script(os.path.join(self.job, "pip"), "true")
        self.script(os.path.join(self.job, "twine"), '[ -n "$TWINE_PASSWORD" ] && echo published >>"$PUBLISHED"')
        self.run_job("bash", "-eo", "pipefail", "-c", "\n".join(job["before_script"] + job["script"]), **{name: token})
        self.assert_published()

    def test_kubernetes_with_a_projected_token(self):
        token = self.identity("google-workload")
        pod = yaml.safe_load(self.example("kubernetes-identity.yaml"))["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        mount, = pod["containers"][0]["volumeMounts"]
        source, = pod["volumes"][0]["projected"]["sources"]
        # The kubelet writes the file with this mode if `fsGroup` is set.
        self.file("token", token, 0o640)
        self.assertEqual(source["serviceAccountToken"]["path"], "token")
        script, = pod["containers"][0]["args"]
        script = script.replace(mount["mountPath"], self.folder).replace("/app/", self.job + "/")
        self.run_job(*pod["containers"][0]["command"], script)
        self.assert_published()

    def test_gitlab_ci(self):
        job = yaml.safe_load(self.example(".gitlab-ci.yml"))["publish"]
        home = os.path.join(self.folder, "gitlab")
        self.assertEqual(job["variables"], {"CREDMGR_HOME": "/tmp/credmgr"})
        self.run_job("bash", "-eo", "pipefail", "-c", "\n".join(job["before_script"] + job["script"]), CREDMGR_HOME=home,
                     REPORTS_CLIENT_ID=self.client, REPORTS_CLIENT_SECRET=self.secret)
        self.assert_published()

    def test_jenkins(self):
        pipeline = self.example("Jenkinsfile")
        (job,), (after,) = re.findall(r"(?s)sh '''(.*?)'''", pipeline), re.findall(r"sh '([^'].*?)'", pipeline)
        home = os.path.join(self.folder, "jenkins")
        variables = {"CREDMGR_HOME": home, "REPORTS_CLIENT_ID": self.client, "REPORTS_CLIENT_SECRET": self.secret}
        self.run_job("sh", "-xe", "-c", job, **variables)
        self.assert_published()
        self.assertTrue(os.listdir(home))
        self.run_job("sh", "-xe", "-c", after, **variables)
        self.assertFalse(os.path.exists(home))

    def log_in(self):
        self.credmgr("add-provider", self.job + "/reports.yaml", "--client-id", self.client, "--client-secret-file", self.secret,
                     "--yes")
        self.credmgr("login", "reports")

    def test_cron(self):
        self.log_in()
        table = self.example("crontab")
        line = table.splitlines()[1]
        command = re.fullmatch(r"((?:[\d*/,-]+ +){4}[\d*/,-]+)  +(.+)", line).group(2)
        # cron treats it as the end of the line.
        self.assertNotIn("%", command)
        kept = {name: self.environment[name] for name in ("CREDMGR_HOME", "PUBLISHED", "PATH")}
        self.run_job("env", "-i", f"HOME={self.folder}", "LOGNAME=ada", "SHELL=/bin/sh",
                     *(f"{name}={value}" for name, value in kept.items()), "/bin/sh", "-c", command)
        self.assert_published()

    def run_unit(self, name, **specifiers):
        """Runs the commands of a unit; systemd starts them without a shell."""
        unit = self.example("etc/systemd/system/" + name)
        for letter, value in specifiers.items():
            unit = unit.replace("%" + letter, value)
        variables = dict(text.split("=", 1) for text in re.findall("(?m)^Environment=(.*)$", unit))
        for command in re.findall("(?m)^Exec[A-Za-z]*=/usr/bin/(.*)$", unit):
            self.run_job(*shlex.split(command.replace("reports-ci", self.client)), **variables)
        self.assert_published()

    def test_a_unit_with_a_client_secret(self):
        credentials = os.path.join(self.folder, "credentials")
        os.mkdir(credentials)
        shutil.copy(self.secret, credentials + "/client-secret")
        self.run_unit("reports.service", t=os.path.join(self.folder, "run"), d=credentials)

    def test_a_unit_with_the_passphrase_of_a_vault(self):
        state = os.path.join(self.folder, "state")
        self.environment["CREDMGR_HOME"] = state + "/reports/credmgr"
        os.makedirs(self.environment["CREDMGR_HOME"], 0o700)
        self.log_in()
        passphrase = self.file("vault-passphrase", "correct horse battery staple\n", 0o600)
        lines = re.findall(r"(?m)^\$ credmgr (vault protect .*)$", PAGE)
        self.assertEqual(len(lines), 2)
        self.environment["CREDMGR_PASSPHRASE_FILE"] = passphrase
        for line in lines:
            self.credmgr(*line.replace("FILE", passphrase).split())
        del self.environment["CREDMGR_PASSPHRASE_FILE"]
        self.assertEqual(glob.glob(state + "/**/vault.key", recursive=True), [])
        self.run_unit("reports-of-ada.service", S=state, d=self.folder)

    def test_kubernetes(self):
        pod = yaml.safe_load(self.example("kubernetes.yaml"))["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        secret = os.path.join(self.folder, "secret")
        os.mkdir(secret)
        shutil.copy(self.secret, secret + "/client-secret")
        self.assertIn("\nENV CREDMGR_HOME=/tmp/credmgr\n", self.example("Dockerfile"))
        (container,) = pod["containers"]
        (script,) = container["args"]
        for place, value in {"/app/": self.job + "/", "/run/reports/": secret + "/", "reports-ci": self.client}.items():
            script = script.replace(place, value)
        self.run_job(*container["command"], script, CREDMGR_HOME=os.path.join(self.folder, "pod"))
        self.assert_published()

    def test_the_volumes_of_kubernetes(self):
        volume = os.path.join(self.folder, "volume")
        os.mkdir(volume)
        self.environment["CREDMGR_HOME"] = volume + "/home"
        # The modes of an `emptyDir` without and with `fsGroup`, and of another volume with `fsGroup`.
        for mode, status in ((0o777, LOCKED), (0o2777, LOCKED), (0o2775, DONE)):
            os.chmod(volume, mode)
            outcome = self.run_program("add-provider", self.job + "/reports.yaml", "--client-id", self.client,
                                       "--client-secret-file", self.secret, "--yes")
            self.assertEqual(outcome.status, status, outcome.err)


class Team(TeamTest):
    """A runner that joined a team's vault on a real PostgreSQL server."""

    def test_a_runner_joins_once(self):
        _, first = self.founded()
        lines = re.findall(r"(?m)^\$ credmgr (vault (?:invite|join) .*?)(?: [<>]invitation)?$", PAGE)
        self.assertEqual(len(lines), 2)
        invite, join = ([TEAM if word == "team" else word for word in line.split()] for line in lines)
        runner = self.machine()
        runner.run(*join, stdin=first.run(*invite).line + "\n")
        self.assertIn("runner-17", first.vault("members").out)
        examples = os.path.join(self.folder, "examples")
        subprocess.run([os.path.join(ROOT, ".ci/examples"), examples], check=True, timeout=TIMEOUT)
        job = yaml.safe_load(text_of(os.path.join(examples, ".github/workflows/team.yml")))["jobs"]["publish"]
        command = job["steps"][-1]["run"]
        self.assertIn(f"\n{command}\n", PAGE.partition("## A team's vault")[2].partition("\n## ")[0])
        words = command.replace("reports:ci", f"{PROVIDER}:{BOT}").replace("./publish", 'sh -c "[ -n \\"$REPORTS_TOKEN\\" ]"').split(" ", 1)[1]
        runner.run(*shlex.split(words))


class Installation(unittest.TestCase):
    """The scripts of the action and the feature, with a release whose program only prints its version."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="credmgr-ci-"))
        self.release, self.tree = self.folder + "/release", self.folder + "/tree"
        for path in (self.release, self.tree, self.folder + "/usr/bin"):
            os.makedirs(path)
        with open(self.folder + "/usr/bin/credmgr", "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho credmgr 1.2.3\n")
        os.chmod(self.folder + "/usr/bin/credmgr", 0o755)
        machine = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
        self.layer = f"{self.release}/credmgr-1.2.3-layer-{machine}.tar.gz"
        with tarfile.open(self.layer, "w:gz") as archive:
            archive.add(self.folder + "/usr/bin/credmgr", "usr/bin/credmgr")
        with open(self.layer, "rb") as file:
            self.digest = hashlib.file_digest(file, "sha256").hexdigest()
        with open(self.release + "/SHA256SUMS", "w", encoding="utf-8") as file:
            file.write(f"{'0' * 64}  apt/pool/credmgr_1.2.3_{machine}.deb\n{self.digest}  {os.path.basename(self.layer)}\n")

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=self.release))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(lambda: (server.shutdown(), server.server_close()))
        self.url = f"http://127.0.0.1:{server.server_address[1]}"

    def install(self, program=FEATURE + "/install.sh", **options):
        environment = {"PATH": os.environ["PATH"], "DESTINATION": self.tree, "URL": self.url, **options}
        done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=TIMEOUT)
        return done.returncode, done.stdout + done.stderr

    def test_the_feature(self):
        self.assertEqual(self.install(VERSION="", SHA256=""), (0, "credmgr 1.2.3\n"))
        self.assertEqual(os.listdir(self.tree), ["usr"])
        self.assertEqual(self.install(VERSION="1.2.3", SHA256=self.digest)[0], 0)

    def test_a_wrong_release_is_not_installed(self):
        unknown = self.url + "/unknown"
        cases = [({"URL": ""}, "the address of the release"), ({"URL": unknown}, f"{unknown}/SHA256SUMS cannot be fetched"),
                 ({"VERSION": "9"}, "not version 9"), ({"SHA256": "1" * 64}, "not 1111")]
        for options, reason in cases:
            with self.subTest(**options):
                status, said = self.install(**options)
                self.assertEqual(status == 0, False)
                self.assertIn(reason, said)
        with self.subTest("a changed layer"):
            with open(self.layer, "ab") as file:
                file.write(b"\0")
            self.assertIn("does not have the checksum of the release", self.install()[1])
        self.assertEqual(os.listdir(self.tree), [])

    def test_the_action(self):
        files = {name: f"{self.folder}/{name}" for name in ("GITHUB_ENV", "GITHUB_OUTPUT")}
        stub = self.folder + "/bin"
        os.mkdir(stub)
        with open(stub + "/sudo", "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nshift\nexec "$@"\n')
        os.chmod(stub + "/sudo", 0o755)
        step = yaml.safe_load(text_of("Packaging/action/action.yml"))["runs"]["steps"][0]
        self.assertEqual(step["run"], "$GITHUB_ACTION_PATH/install")
        status, said = self.install(ACTION, PATH=f"{stub}:{os.environ['PATH']}", RUNNER_TEMP="/runner", **files)
        self.assertEqual((status, said), (0, "credmgr 1.2.3\n"))
        self.assertEqual(text_of(files["GITHUB_ENV"]), "CREDMGR_HOME=/runner/credmgr\n")
        self.assertEqual(text_of(files["GITHUB_OUTPUT"]), "version=1.2.3\n")
        # Each input reaches the script.
        self.assertEqual(set(step["env"]), {"URL", "VERSION", "SHA256"})

    def test_the_options_of_the_feature_are_those_of_the_script(self):
        feature = json.loads(text_of(FEATURE + "/devcontainer-feature.json"))
        self.assertEqual(feature["id"], os.path.basename(FEATURE))
        self.assertEqual([name.upper() for name in feature["options"]], ["URL", "VERSION", "SHA256"])
        used = json.loads(re.search(r"(?ms)^```json\n(.*?)^```", PAGE).group(1))["features"]["./credmgr"]
        self.assertLessEqual(set(used), set(feature["options"]))
