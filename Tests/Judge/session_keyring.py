"""A session bus with a real gnome-keyring-daemon, without a display."""

import os
import shutil
import subprocess


class SessionKeyring:
    """For a test class of programs that use the Secret Service."""

    @staticmethod
    def is_possible():
        return all(map(shutil.which, ("gnome-keyring-daemon", "dbus-daemon", "secret-tool")))

    def start_keyring(self):
        folder = os.path.join(self.folder, "session")
        for name in ("run", "data", "cache"):
            os.makedirs(os.path.join(folder, name), mode=0o700)
        self.session = {
            "XDG_RUNTIME_DIR": os.path.join(folder, "run"), "XDG_DATA_HOME": os.path.join(folder, "data"),
            "XDG_CACHE_HOME": os.path.join(folder, "cache"), "HOME": folder, "PATH": self.environment["PATH"],
        }
        bus = subprocess.Popen(
            ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env=self.session)
        self.addCleanup(bus.stdout.close)
        self.addCleanup(bus.wait)
        self.addCleanup(bus.kill)
        self.session["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().strip()
        self.keyring = subprocess.Popen(
            ["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, env=self.session)
        self.addCleanup(self.keyring.wait)
        self.addCleanup(self.keyring.kill)
        self.keyring.stdin.write("keyring password")
        self.keyring.stdin.close()
        owner = ("org.freedesktop.DBus", "/", "org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets")
        self.wait_until(lambda: "boolean true" in self.on_bus(*owner))
        self.environment.update(self.session, HOME=self.environment["HOME"])

    def on_bus(self, destination, path, *call):
        return subprocess.run(
            ["dbus-send", "--session", "--print-reply", f"--dest={destination}", path, *call], env=self.session,
            capture_output=True, text=True).stdout
