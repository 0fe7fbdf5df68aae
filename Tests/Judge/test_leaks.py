"""No secret reaches standard error, a trace, a file, an argument or an environment.

Every command runs with `--trace` and `--json`, once successfully and once refused. The provider repeats everything it
receives under harmless names. The test then searches all output, all files of the home, and the arguments and
environments of all started programs for every secret in every form.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

import oauth2_server
from echo_server import EchoServer
from program import ADA, BINARY, DESCRIPTORS, DONE, TIMEOUT, ProgramTest, disguises, installed, text_of

STRACE = "/usr/bin/strace"
PASSPHRASE = "the-passphrase-of-the-judge"
PERSONAL_TOKEN = "personal-token-0123456789abcdef"
PASSWORD = "password-of-a-host-0123456789"


@unittest.skipUnless(os.access(STRACE, os.X_OK), "there is no strace")
class Leaks(ProgramTest):
    shipped = "github", "gitlab"

    def setUp(self):
        super().setUp()
        self.outputs = []
        self.executed = os.path.join(self.folder, "executed")
        self.strace = ("-f", "--seccomp-bpf", "-qq", "-A", "-o", self.executed, "-e", "trace=execve", "-e", "signal=none", "-v",
                       "-xx", "-s", "1000000")
        self.environment["CREDMGR_PASSPHRASE_FILE"] = self.file("passphrase", PASSPHRASE)

    # Commands whose standard output is a secret for the caller only.
    SHOWING = ("token", "header", "git-credential", "docker-credential", "kubectl-credential", "exec", "request")

    def runs(self, *arguments, stdin="", **options):
        """Runs a command with a trace and with JSON; records its output and the programs it starts."""
        outcomes = []
        for more in ("--trace", "--json"):
            end = arguments.index("--") if "--" in arguments else len(arguments)
            command = (*arguments[:end], more, *arguments[end:])
            outcome = self.run_program(*self.strace, self.binary, *command, stdin=stdin, binary=STRACE, **options)
            self.outputs.append((command, outcome.err))
            if arguments[0] not in self.SHOWING:
                self.outputs.append((command, outcome.out))
            outcomes.append(outcome)
        return outcomes

    def programs(self):
        """Returns the arguments and the environment of each started program."""
        for call in re.findall(r"execve\((.*)\)", text_of(self.executed)):
            _, arguments, environment = [
                [bytes.fromhex(word.replace("\\x", "")) for word in re.findall(r'"([^"]*)"', part)]
                for part in re.fullmatch(r'("[^"]*"), \[(.*?)\], \[(.*?)\].*', call).groups()]
            yield arguments, environment

    def requests(self, service, provider):
        """Runs every command that sends a credential of the client or the account."""
        for command in ("token", "token --refresh", "refresh", f"header --url {service.base}/resource", "validate",
                        f"request {service.base}/resource --include"):
            name, *more = command.split()
            self.runs(name, provider, *more, "--account", ADA)

    def everything(self, service, provider, other):
        self.requests(service, provider)
        self.requests(service, other)
        self.runs("request", provider, service.base + "/identity?x=1", "--account", ADA, "-H", f"X-Key: {PASSWORD}")
        self.runs("use", provider, ADA)
        for more in ((), ("--with-token",), ("--account", ADA, "--grant", "authorization_code")):
            self.runs("login", provider, "--dry-run", *more, stdin=PERSONAL_TOKEN)
        for command in ("status", "providers", "doctor", "kubectl-credential"):
            self.runs(command, provider)
        self.runs("exec", f"{provider}:{ADA}=TOKEN", "--", "true")
        for command in ("refresh --all", "status", "providers", "doctor", "docker-credential list", "completion bash",
                        "vault unlock --for 1s", "vault lock", "vault status", "vault verify", "log", "help"):
            self.runs(*command.split())
        self.runs("docker-credential", "get", stdin=f"127.0.0.1:{service.port}")
        host = f"protocol=http\nhost=127.0.0.1:{service.port}\n"
        for operation in ("get", "store", "erase"):
            self.runs("git-credential", operation, stdin=host + f"username=ada\npassword={PASSWORD}\n\n")
        self.runs("check", os.path.join(DESCRIPTORS, "oauth2-post.yaml"))

    def search(self, service):
        """Searches for every secret in every form in every place."""
        executed = list(self.programs())
        # `exec` has to set these.
        asked = {word[6:].decode() for _, environment in executed for word in environment if word.startswith(b"TOKEN=")}
        self.assertLessEqual(len(asked), 4)
        secrets = (service.secrets | service.verifiers | {PASSPHRASE, PERSONAL_TOKEN, PASSWORD}) - asked
        forms = [(secret, kind, form) for secret in secrets for kind, form in disguises(secret.encode())]
        places = {text.encode(): " ".join(command) for command, text in self.outputs}
        for arguments, environment in executed:
            # The user typed these arguments.
            typed = b"\0".join(arguments).replace(PASSWORD.encode(), b"")
            places |= {typed: f"the arguments {typed}", b"\0".join(environment): f"the environment of {typed}"}
        for secret, kind, form in forms:
            for text, place in places.items():
                if form in text:
                    self.fail(f"{place} shows {secret}, {kind}:\n{text.decode(errors='replace')}")
        for home in self.homes:
            self.assert_nowhere_in(home, secrets)
        files = sum(len(names) for home in self.homes for _, _, names in os.walk(home))
        print(f"  searched {len(self.outputs)} outputs, {len(executed)} programs' arguments and environments and {files} "
              f"files for {len(secrets)} secrets in {len(forms)} forms", file=sys.stderr)

    def test_every_command(self):
        service = self.serve(EchoServer())
        provider = self.add("oauth2-post", service, oauth2_server.POST_CLIENT, oauth2_server.CLIENT_SECRET)
        basic = self.add("oauth2-basic", service, oauth2_server.CONFIDENTIAL_CLIENT, oauth2_server.CLIENT_SECRET)
        for name in (provider, basic):
            logins = self.runs("login", name, "--account", ADA)
            self.assertEqual(logins[0].status, DONE, logins[0].err)
        self.runs("login", provider, "--account", "by-hand", "--with-token", stdin=PERSONAL_TOKEN)
        self.everything(service, provider, basic)
        # The provider refuses each request and repeats its content in the message.
        service.refuses = True
        self.everything(service, provider, basic)
        for name in (provider, basic):
            self.runs("login", name, "--account", ADA)
            self.runs("login", name)
            self.runs("logout", name, "--account", ADA)
        self.assertGreaterEqual(service.counts["refused:/token"], 8)
        self.assertGreater(service.counts["refused:/revoke"], 2)
        service.refuses = False
        self.runs("vault", "protect", "passphrase", "--passphrase-file", self.environment["CREDMGR_PASSPHRASE_FILE"])
        self.runs("vault", "rotate")
        kept = os.path.join(self.homes[-1], "kept")
        os.mkdir(kept, mode=0o700)
        self.runs("vault", "backup", os.path.join(kept, "backup"))
        self.runs("vault", "export", os.path.join(kept, "export"))
        self.assertEqual(len(os.listdir(kept)), 2)
        self.runs("vault", "import", os.path.join(kept, "export"))
        self.runs("vault", "restore", os.path.join(kept, "backup"))
        self.runs("vault", "protect", "key-file")
        self.runs("vault", "protect", "passphrase", "--remove")
        self.runs("vault", "verify")
        self.runs("logout", provider, "--all")
        self.runs("log")
        self.search(service)
        traces = [text for command, text in self.outputs if "--trace" in command]
        self.assertTrue(any("error_description" in text and "…" in text for text in traces), "nothing was masked")

    def test_child_processes_get_no_secrets(self):
        """A browser, and a command that requested another provider's token."""
        service = self.serve(EchoServer())
        provider = self.add("oauth2-post", service, oauth2_server.POST_CLIENT, oauth2_server.CLIENT_SECRET)
        self.credmgr("login", provider, "--account", "by-hand", "--with-token", stdin=PERSONAL_TOKEN)
        seen = os.path.join(self.folder, "seen")
        script = self.file("browser", f'#!/bin/sh\nenv >>{seen}\necho "$@" >>{seen}\n'
                                      f'ls -l /proc/$$/fd >>{seen}\nexec {self.environment["BROWSER"]} "$1"\n', 0o700)
        self.credmgr("login", provider, "--account", ADA, environment={"BROWSER": script})
        shown = self.credmgr("exec", f"{provider}:by-hand=MINE", "--", "sh", "-c", "env; ls -l /proc/$$/fd").out
        browser = text_of(seen)
        self.assertIn(f"MINE={PERSONAL_TOKEN}", shown)
        for text, secrets in ((browser, service.secrets | {PERSONAL_TOKEN, PASSPHRASE}),
                              (shown, service.secrets | {PASSPHRASE})):
            for secret in secrets:
                for kind, form in disguises(secret.encode()):
                    self.assertNotIn(form.decode("utf-8", "replace"), text, kind)
            self.assertNotIn("vault.db", text, "an open file of ours")
        self.assertNotIn("CREDMGR_", browser)


class Protection(ProgramTest):
    """A waiting process as seen by another process of the same user."""

    def test_no_core_dump_and_no_attaching(self):
        service = self.serve(EchoServer())
        # Root may inspect any process, so use another user.
        user = 65534 if os.geteuid() == 0 else os.geteuid()
        folder = tempfile.mkdtemp(prefix="credmgr-judge-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        programs = os.path.join(folder, "bin")
        for name in ("credmgr", "credmgr-online"):
            installed(name, programs)
        descriptor = shutil.copy(os.path.join(DESCRIPTORS, "oauth2-public.yaml"), folder)
        home = os.path.join(folder, "home")
        os.makedirs(home, mode=0o700)
        for path in (folder, programs):
            os.chmod(path, 0o755)
        if user != os.geteuid():
            os.chown(home, user, user)
        as_user = {"user": user, "group": user, "extra_groups": []} if user != os.geteuid() else {}
        environment = {**self.environment, "CREDMGR_HOME": home + "/own", "HOME": home}
        program = os.path.join(programs, "credmgr")
        subprocess.run([program, "add-provider", descriptor, "--client-id", "c", "--set", f"port={service.port}"],
                       env=environment, check=True, capture_output=True, cwd="/", **as_user)
        process = subprocess.Popen(
            [program, "login", "oauth2-public", "--no-browser"], env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd="/", **as_user)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for line in process.stderr:
            if "http://" in line:
                break
        limits = text_of(f"/proc/{process.pid}/limits")
        self.assertRegex(limits, r"(?m)^Max core file size +0 ")
        # proc(5): root owns the files of a process that is not dumpable.
        self.assertEqual(os.stat(f"/proc/{process.pid}/environ").st_uid, 0)
        for name in ("environ", "mem", "maps", "fd"):
            read = subprocess.run(["ls" if name == "fd" else "cat", f"/proc/{process.pid}/{name}"],
                                  capture_output=True, check=False, **as_user)
            self.assertNotEqual(read.returncode, 0, f"/proc/PID/{name} can be read")
        if os.access("/usr/bin/strace", os.X_OK):
            attach = subprocess.run(["strace", "-p", str(process.pid)], capture_output=True, text=True, timeout=TIMEOUT,
                                    check=False, **as_user)
            self.assertNotEqual(attach.returncode, 0)
            self.assertIn("Operation not permitted", attach.stderr)

    def test_the_program_that_gets_the_vaults_key_leaves_no_core_dump(self):
        limit = os.path.join(self.folder, "limit")
        self.file("secret-tool", f"#!/bin/sh\nulimit -c >{limit}\nexit 1\n", 0o700)
        self.credmgr("--version")
        environment = {**self.environment, "PATH": self.folder + ":" + self.environment["PATH"],
                       "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        subprocess.run([BINARY, "vault", "protect", "secret-service"], env=environment, capture_output=True, check=False,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)))
        self.assertEqual(text_of(limit).strip(), "0")

    def test_a_program_that_is_started_gets_its_core_dumps_back(self):
        self.credmgr("--version")
        path = self.file("notes.yaml", "provider: notes\ngrant: authorization_code\nendpoints: { authorization: "
                         "'https://n.example/a', token: 'https://n.example/t' }\n")
        self.credmgr("add-provider", path, "--client-id", "c")
        self.credmgr("login", "notes", "--with-token", stdin=PERSONAL_TOKEN)
        shown = self.credmgr("exec", "notes=TOKEN", "--", "sh", "-c", "ulimit -c").out.strip()
        ours = subprocess.run(["sh", "-c", "ulimit -c"], capture_output=True, text=True, check=True).stdout.strip()
        self.assertEqual(shown, ours)
