"""Debian's PostgreSQL and pgbouncer, in temporary directories, as an ordinary user. A server can get TLS, a standby
that replaces it, and an old backup. A proxy in front of it can lose answers or say nothing more.

    with PostgreSQL() as server:
        server.create("team")                       # a database and a role of the same name
        server.url("team")                          # for credmgr, over loopback; `PASSWORD` is the role's password

A server ends with the thread that started it, even if the tests are killed.
"""

import contextlib
import fcntl
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

import tls as certificates
from browser import TIMEOUT

PROGRAMS = max(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]), default="")
POOLER = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin")
BUILD = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.build"))
# The superuser of every server here, and the password of all other roles.
ADMINISTRATOR, PASSWORD = "judge", "p4ss-of-the-database:&%"
# PostgreSQL and pgbouncer refuse to run as root.
OWNER = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
SETTINGS = {
    "listen_addresses": "127.0.0.1", "shared_buffers": "8MB", "jit": "off", "max_connections": "100",
    "autovacuum": "off", "log_line_prefix": "%p %u ", "log_statement": "all", "log_min_error_statement": "panic",
    "max_wal_senders": "4", "max_wal_size": "64MB", "min_wal_size": "2MB", "lc_messages": "C",
    "wal_receiver_status_interval": "1s", "wal_retrieve_retry_interval": "50ms",
}
# For everything but the loss of a machine's memory, which no test can cause.
HASTY = {"fsync": "off", "full_page_writes": "off"}
ACCESS = """\
local all,replication all trust
host all,replication {administrator} 127.0.0.1/32 trust
{kind} all all 127.0.0.1/32 scram-sha-256
"""


def available():
    return bool(PROGRAMS and POOLER)


def program(name):
    return os.path.join(PROGRAMS, name)


def environment():
    """Returns the environment of the servers and tools, without any variable that libpq reads."""
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}


def as_owner(*command):
    if OWNER is None:
        return list(command)
    identity = ["--reuid", str(OWNER.pw_uid), "--regid", str(OWNER.pw_gid), "--clear-groups"]
    return ["/usr/bin/setpriv", *identity, *command]


def run_as_owner(*command):
    done = subprocess.run(as_owner(*command), env=environment(), cwd="/", capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{command[0]} failed: {done.stderr}")
    return done.stdout


def serve_as_owner(*command, log):
    """Starts a server that ends with this thread."""
    line = as_owner(*command) if OWNER else ["/usr/bin/setpriv", *command]
    line[1:1] = ["--pdeathsig", "QUIT"]
    with open(log, "ab") as output:
        return subprocess.Popen(line, env=environment(), cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output)


def own_folder():
    """Returns a new directory of the servers' user with a short path, because it contains a socket."""
    folder = tempfile.mkdtemp(prefix="judge-pg-", dir="/tmp")
    if OWNER:
        os.chown(folder, OWNER.pw_uid, OWNER.pw_gid)
    # credmgr runs as another user than the server.
    os.chmod(folder, 0o755)
    return folder


def write(path, text, mode=0o600):
    """Writes a file that the servers' user owns."""
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    os.chmod(path, mode)
    if OWNER:
        os.chown(path, OWNER.pw_uid, OWNER.pw_gid)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as place:
        return place.getsockname()[1]


def wait_until(condition, about):
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"never came about: {about}")
        time.sleep(0.005)


def template():
    """Returns an empty cluster to copy. initdb takes a second, so its result stays in .build."""
    version = PROGRAMS.split("/")[4]
    folder = os.path.join(BUILD, f"judge-postgres-{version}")
    os.makedirs(BUILD, exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(folder):
            made = own_folder()
            run_as_owner(program("initdb"), "-D", made + "/data", "-U", ADMINISTRATOR, "--auth=trust", "--no-sync",
                         "--wal-segsize=1", "--encoding=UTF8", "--locale=C")
            shutil.copytree(made + "/data", folder + ".new")
            os.rename(folder + ".new", folder)
            shutil.rmtree(made)
    return folder


class PostgreSQL:
    """A server from `with` to the end of the block. `settings` are lines of postgresql.conf. With `durable`, it waits for
    its disk; `tls` is a `certificates.Authority`, and then connections over loopback need TLS."""

    def __init__(self, durable=False, tls=None, hosts=(), **settings):
        self.settings = {**SETTINGS, **({} if durable else HASTY), **settings}
        self.tls, self.hosts = tls, hosts
        self.folder = own_folder()
        self.data, self.log = self.folder + "/data", self.folder + "/log"
        self.port = free_port()
        self.process = None
        self.standbys = 0

    def __enter__(self):
        try:
            # Much faster than Python's copytree.
            subprocess.run(["cp", "-R", template(), self.data], check=True)
            self._become_owner()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _become_owner(self):
        os.chmod(self.data, 0o700)
        if OWNER:
            subprocess.run(["chown", "-R", f"{OWNER.pw_uid}:{OWNER.pw_gid}", self.data], check=True)

    # The process.
    def configure(self, **settings):
        """Changes settings, which apply after `reload` or the next start."""
        self.settings.update(settings)
        lines = {**self.settings, "port": str(self.port), "unix_socket_directories": self.folder}
        if self.tls:
            self.tls.context(self.hosts)
            for name in ("server.pem", "server.key"):
                with open(os.path.join(os.path.dirname(self.tls.certificate), name), "rb") as file:
                    write(os.path.join(self.folder, name), file.read())
            lines |= {"ssl": "on", "ssl_cert_file": self.folder + "/server.pem", "ssl_key_file": self.folder + "/server.key"}
        text = "".join(f"{name} = '{value}'\n" for name, value in lines.items())
        write(self.data + "/postgresql.conf", text)
        write(self.data + "/pg_hba.conf", ACCESS.format(kind="hostssl" if self.tls else "host", administrator=ADMINISTRATOR))

    def start(self):
        self.configure()
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.data + "/postmaster.pid")
        self.process = serve_as_owner(program("postgres"), "-D", self.data, log=self.log)
        wait_until(self._is_ready, "a server that accepts connections")

    def _is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError("PostgreSQL does not start: " + self.said())
        with contextlib.suppress(FileNotFoundError):
            with open(self.data + "/postmaster.pid", encoding="utf-8") as file:
                return file.read().splitlines()[7:] in (["ready   "], ["standby "])
        return False

    def reload(self, **settings):
        self.configure(**settings)
        self.sql("select pg_reload_conf()")
        for name, value in settings.items():
            wait_until(lambda: self.sql(f"show {name}") == value, f"{name} = {value}")

    def stop(self):
        """Ends the server in order, with a checkpoint, also while clients are connected."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(TIMEOUT)

    def kill(self):
        """Ends the server and its children with SIGKILL, as if the machine had lost its power."""
        if self.process is None or self.process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            os.kill(self.process.pid, signal.SIGSTOP)
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
                for child in file.read().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(child), signal.SIGKILL)
        self.process.kill()
        self.process.wait(TIMEOUT)

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    # Use.
    def sql(self, text, database="postgres", user=ADMINISTRATOR):
        """Returns the rows as text: a line each, columns separated by `|`."""
        done = subprocess.run(
            [program("psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p", str(self.port),
             "-U", user, "-d", database, "-f", "-"], input=text, env=environment(), capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(f"psql: {done.stderr}")
        return done.stdout.rstrip("\n")

    def create(self, name, rights=True):
        """Creates a database and a role with the same name, which owns the database or has only the right to connect."""
        literal = PASSWORD.replace("'", "''")
        self.sql(f"create role {name} login password '{literal}'")
        self.sql(f"create database {name}" + (f" owner {name}" if rights else ""))

    def url(self, name, port=None, **parameters):
        """Returns the address over loopback, without the password."""
        query = "?" + urllib.parse.urlencode(parameters) if parameters else ""
        return f"postgresql://{name}@127.0.0.1:{port or self.port}/{name}{query}"

    def socket_url(self, name):
        query = urllib.parse.urlencode({"host": self.folder, "port": self.port}, safe="/")
        return f"postgresql://{name}@/{name}?{query}"

    def statements(self, user):
        """Returns the statements that a role has sent so far, each with its first line only."""
        found = []
        for line in self.said().splitlines():
            _, _, rest = line.partition(" ")
            if rest.startswith(user + " LOG:  "):
                kind, colon, text = rest.removeprefix(user + " LOG:  ").partition(": ")
                if colon and (kind == "statement" or kind.startswith("execute ")):
                    found.append(text)
        return found

    # Going back in time.
    def dump(self, name):
        """Returns a backup of a database, as SQL that replaces its content."""
        return run_as_owner(program("pg_dump"), "-h", self.folder, "-p", str(self.port), "-U", ADMINISTRATOR, "-d", name,
                            "--clean", "--if-exists")

    def restore(self, name, dump):
        self.sql(dump, name)

    def files(self):
        """Returns the content of all files of the server, among them old rows, the write-ahead log and its own log."""
        self.sql("checkpoint")
        content = []
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        content.append(file.read())
        return b"\0".join(content)

    # Replication.
    @contextlib.contextmanager
    def standby(self, synchronous=True):
        """Runs a server that receives every change of this one, which waits for it if it is `synchronous`."""
        self.standbys += 1
        name = f"standby{self.standbys}"
        follower = PostgreSQL(tls=self.tls, hosts=self.hosts)
        follower.settings = {**self.settings, "synchronous_standby_names": "", "primary_conninfo": "".join(
            f"{key}={value} " for key, value in (
                ("host", self.folder), ("port", self.port), ("user", ADMINISTRATOR), ("application_name", name)))}
        try:
            run_as_owner(program("pg_basebackup"), "-D", follower.data, "-h", self.folder, "-p", str(self.port),
                         "-U", ADMINISTRATOR, "--checkpoint=fast", "--no-sync", "--wal-method=stream")
            write(follower.data + "/standby.signal", "")
            follower.start()
            wait_until(lambda: name in self.sql("select application_name from pg_stat_replication where state = 'streaming'"),
                       "a standby that receives changes")
            if synchronous:
                self.reload(synchronous_standby_names=name)
                wait_until(lambda: self.sql("select sync_state from pg_stat_replication") == "sync", "a synchronous standby")
            yield follower
        finally:
            follower.__exit__()

    def promote(self):
        """Makes a standby the primary."""
        self.sql("select pg_promote(true, 60)")
        self.settings.pop("primary_conninfo", None)


class Pooler:
    """pgbouncer in transaction mode in front of a server, with few connections."""

    def __init__(self, server, databases, size=4):
        self.server, self.databases, self.size = server, databases, size
        self.port = free_port()

    def __enter__(self):
        self.folder = own_folder()
        password = PASSWORD.replace('"', '""')
        write(self.folder + "/users", "".join(f'"{name}" "{password}"\n' for name in self.databases))
        bases = "".join(f"{name} = host={self.server.folder} port={self.server.port}\n" for name in self.databases)
        write(self.folder + "/pgbouncer.ini", f"""\
[databases]
{bases}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {self.folder}/users
pool_mode = transaction
default_pool_size = {self.size}
max_client_conn = 4000
""")
        self.process = serve_as_owner(POOLER, self.folder + "/pgbouncer.ini", log=self.folder + "/log")
        try:
            wait_until(self._answers, "a pooler that accepts connections")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(TIMEOUT)
        shutil.rmtree(self.folder)

    def _answers(self):
        if self.process.poll() is not None:
            with open(self.folder + "/log", encoding="utf-8") as file:
                raise AssertionError("pgbouncer does not start: " + file.read())
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True
        return False


class Proxy:
    """Passes connections on to a port of loopback, and loses something if a test wants it.

    `open` passes everything on. `silent` passes nothing on, as a network that was cut. `mute` passes on questions
    and loses the answers. In each case connections stay open.
    """

    def __init__(self, port):
        self.target = port
        self.mode = "open"
        self.triggers = []
        self.passed = 0  # connections
        self.unsent = 0  # questions that changed the mode and were not passed on yet
        self._changed = threading.Condition()
        self._sockets = []

    def __enter__(self):
        self._server = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        # A thread that waits in accept(2) keeps a closed socket alive.
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.become("open")
        self.cut()

    def become(self, mode):
        with self._changed:
            self.mode = mode
            self._changed.notify_all()

    def when(self, text, mode):
        """Changes the mode as soon as a client has sent `text`. A mute proxy passes this question on, a silent one does
        not."""
        self.triggers.append((text.encode(), mode))

    def wait_for(self, mode):
        with self._changed:
            if not self._changed.wait_for(lambda: self.mode == mode and (mode != "mute" or not self.unsent), TIMEOUT):
                raise AssertionError(f"the proxy never became {mode}")

    def cut(self):
        """Closes all connections."""
        with self._changed:
            sockets, self._sockets = self._sockets, []
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client):
        with self._changed:
            self._changed.wait_for(lambda: self.mode != "silent")
        try:
            server = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            client.close()
            return
        with self._changed:
            self.passed += 1
            self._sockets += [client, server]
        threading.Thread(target=self._pass, args=(client, server, True), daemon=True).start()
        self._pass(server, client, False)

    def _pass(self, source, sink, asks):
        try:
            while data := source.recv(65536):
                found = [each for each in self.triggers if asks and each[0] in data]
                with self._changed:
                    self.unsent += len(found)
                for trigger in found:
                    self.triggers.remove(trigger)
                    self.become(trigger[1])
                with self._changed:
                    self._changed.wait_for(lambda: self.mode == "open" or asks and self.mode == "mute")
                try:
                    sink.sendall(data)
                finally:
                    with self._changed:
                        self.unsent -= len(found)
                        self._changed.notify_all()
        except OSError:
            pass  # one side closed the connection, or `cut` did
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def authority():
    """Makes an authority for certificates of servers on 127.0.0.1."""
    with tempfile.TemporaryDirectory(prefix="judge-pg-") as folder:
        yield certificates.Authority(folder)
