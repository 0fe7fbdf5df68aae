"""Sets up other credential programs, each with one token in its own home."""

import os
import shutil
import subprocess

from measuring import Command

HOST = "bench.example"
TOKEN = "gho_0123456789abcdefghijABCDEFGHIJ012345"
QUESTION = f"protocol=https\nhost={HOST}\n\n"


class Peers:
    def __init__(self, folder, environment):
        self.folder, self.environment = folder, environment
        self.children, self.absent = [], {}

    def commands(self):
        """Returns the commands by name. `absent` has the reasons for those that cannot be set up."""
        found = {}
        for name, make in [
            ("git credential-store get", self.credential_store),
            ("git-credential-store get, without git", self.credential_store_alone),
            ("git credential-cache get", self.credential_cache),
            ("secret-tool lookup", self.secret_tool),
            ("pass show", self.password_store),
            ("gh auth token", self.gh),
        ]:
            try:
                command = make()
                command.prepare(self.folder)
                found[name] = command
            except (OSError, subprocess.SubprocessError, RuntimeError, IndexError) as error:
                self.absent[name] = str(error).splitlines()[0]
        self.absent["oidc-token"] = "needs an account at an OpenID provider that it reaches over https"
        return found

    def close(self):
        for end in reversed(self.children):
            end()

    def run(self, *arguments, text="", environment=None):
        return subprocess.run(
            arguments, env=environment or self.environment, input=text, capture_output=True, text=True, timeout=60,
            check=True).stdout

    def credential_file(self):
        path = os.path.join(self.folder, "git-credentials")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"https://ada:{TOKEN}@{HOST}\n")
        os.chmod(path, 0o600)
        return path

    def credential_store(self):
        return Command(["git", "credential-store", "--file", self.credential_file(), "get"], self.environment,
                       QUESTION, TOKEN)

    def credential_store_alone(self):
        program = os.path.join(self.run("git", "--exec-path").strip(), "git-credential-store")
        return Command([program, "--file", self.credential_file(), "get"], self.environment, QUESTION, TOKEN)

    def credential_cache(self):
        socket = os.path.join(self.folder, "cache", "socket")
        os.mkdir(os.path.dirname(socket), 0o700)
        self.run("git", "credential-cache", "--socket", socket, "store",
                 text=f"protocol=https\nhost={HOST}\nusername=ada\npassword={TOKEN}\n\n")
        self.children.append(lambda: self.run("git", "credential-cache", "--socket", socket, "exit"))
        return Command(["git", "credential-cache", "--socket", socket, "get"], self.environment, QUESTION, TOKEN)

    def password_store(self):
        # A directory near the root, because gpg-agent's sockets require a short path.
        home = os.path.join(self.folder, "g")
        os.mkdir(home, 0o700)
        environment = {**self.environment, "GNUPGHOME": home,
                       "PASSWORD_STORE_DIR": os.path.join(self.folder, "password-store")}
        self.children.append(lambda: self.run("gpgconf", "--kill", "all", environment=environment))
        self.run("gpg", "--batch", "--pinentry-mode", "loopback", "--passphrase", "", "--quick-generate-key",
                 "bench@example.org", "default", "default", "never", environment=environment)
        self.run("pass", "init", "bench@example.org", environment=environment)
        self.run("pass", "insert", "--multiline", "bench", text=TOKEN + "\n", environment=environment)
        return Command(["pass", "show", "bench"], environment, "", TOKEN)

    def gh(self):
        folder = os.path.join(self.folder, "gh")
        os.mkdir(folder, 0o700)
        with open(os.path.join(folder, "hosts.yml"), "w", encoding="utf-8") as file:
            file.write(f"github.com:\n    user: ada\n    oauth_token: {TOKEN}\n    git_protocol: https\n")
        return Command(["gh", "auth", "token"], {**self.environment, "GH_CONFIG_DIR": folder}, "", TOKEN)

    def secret_tool(self):
        for program in ("dbus-daemon", "gnome-keyring-daemon", "secret-tool"):
            if not shutil.which(program):
                raise OSError(f"{program} is not installed")
        runtime = os.path.join(self.folder, "r")
        os.mkdir(runtime, 0o700)
        environment = {**self.environment, "XDG_RUNTIME_DIR": runtime}
        bus = subprocess.Popen(["dbus-daemon", "--session", "--nofork", "--print-address=1"], env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.children.append(lambda: (bus.kill(), bus.wait()))
        environment["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().strip()
        keyring = subprocess.Popen(["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"],
                                   env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, text=True)
        self.children.append(lambda: (keyring.kill(), keyring.wait()))
        keyring.stdin.write("bench")
        keyring.stdin.close()
        self.run("gdbus" if shutil.which("gdbus") else "dbus-send", *(
            ["wait", "--session", "--timeout", "10", "org.freedesktop.secrets"] if shutil.which("gdbus") else
            ["--session", "--print-reply", "--dest=org.freedesktop.secrets", "/org/freedesktop/secrets",
             "org.freedesktop.DBus.Peer.Ping"]), environment=environment)
        self.run("secret-tool", "store", "--label=bench", "host", HOST, text=TOKEN, environment=environment)
        return Command(["secret-tool", "lookup", "host", HOST], environment, "", TOKEN)
