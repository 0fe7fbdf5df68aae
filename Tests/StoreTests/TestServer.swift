import CredmgrCryptography
import CredmgrPlatform
import CredmgrPostgreSQL
import Glibc

/// A PostgreSQL server in a temporary directory, for all tests of this process. Its script ends it when this process
/// ends, however that happens.
final class TestServer: Sendable {
  static let shared = Result { try TestServer() }

  struct Failure: Error { let text: String }

  let path: String

  private init() throws {
    let path = "/tmp/credmgr-postgres-" + Hexadecimal.encode(SystemRandomSource().bytes(6))
    guard unsafe mkdir(path, 0o755) == 0, unsafe mkfifo(path + "/ready", 0o600) == 0 else {
      throw Failure(text: "cannot make \(path)")
    }
    self.path = path
    // The pipe to the script closes with this process, and no other program inherits it.
    guard unsafe popen("exec sh -c '\(Self.script)' sh \(path)", "we") != nil else { throw Failure(text: "no shell") }
    let answer = try File.read(path + "/ready", limit: 16384)
    if answer != Array("ready\n".utf8) { throw Failure(text: String(decoding: answer, as: UTF8.self)) }
  }

  /// PostgreSQL refuses to run as root.
  private static let script = """
    path=$1
    trap "" INT HUP TERM
    bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
    if [ $(id -u) = 0 ]; then
      as="setpriv --reuid=nobody --regid=nogroup --clear-groups"
    fi
    mkdir $path/data $path/socket
    if [ $(id -u) = 0 ]; then chown nobody:nogroup $path/data $path/socket; fi
    cd /
    if $as $bin/initdb -D $path/data -U credmgr --auth=trust --no-sync --wal-segsize=1 --encoding=UTF8 --locale=C \
      >$path/log 2>&1 &&
      $as $bin/pg_ctl -D $path/data -w -l $path/data/log start \
      -o "-k $path/socket -c listen_addresses= -c fsync=off -c full_page_writes=off -c shared_buffers=8MB \
      -c max_connections=100 -c autovacuum=off -c jit=off -c lc_messages=C" >>$path/log 2>&1
    then
      if [ -x /usr/sbin/pgbouncer ]; then
        printf "[databases]\\n* = host=$path/socket user=credmgr\\n[pgbouncer]\\nunix_socket_dir = $path/socket\\nlisten_port = 6432\\n\
    listen_addr =\\nauth_type = any\\npool_mode = transaction\\ndefault_pool_size = 4\\n" >$path/pooler.ini
        $as /usr/sbin/pgbouncer -q $path/pooler.ini >>$path/log 2>&1 &
        pooler=$!
        until [ -S $path/socket/.s.PGSQL.6432 ] || ! kill -0 $pooler; do sleep 0.01; done 2>>$path/log
      fi
      echo ready >$path/ready
    else cat $path/log >$path/ready
    fi
    cat >/dev/null
    if [ -n "$pooler" ]; then kill -9 $pooler; fi
    $as $bin/pg_ctl -D $path/data -m immediate stop >/dev/null 2>&1
    rm -rf $path
    """

  /// An address of a database, which others see as well.
  func address(_ database: String = "postgres") -> String {
    "postgresql://credmgr@/\(database)?host=\(path)/socket"
  }

  /// An address of a pooler in transaction mode, which gives each transaction another connection; without a pooler, the
  /// server's.
  var pooledAddress: String {
    File.exists(path + "/socket/.s.PGSQL.6432") ? address() + "&port=6432" : address()
  }

  func connect(_ database: String = "postgres") throws -> PostgreSQL {
    try PostgreSQL.connect(to: DatabaseAddress(address(database)), within: .seconds(30))
  }

  /// Returns the name of a new empty database.
  func database() throws -> String {
    let name = "d" + Hexadecimal.encode(SystemRandomSource().bytes(6))
    try connect().query("CREATE DATABASE \(name)", within: .seconds(60))
    return name
  }

  /// Returns a new private directory, which is removed with the server.
  func folder() throws -> String {
    let folder = path + "/" + Hexadecimal.encode(SystemRandomSource().bytes(6))
    guard unsafe mkdir(folder, 0o700) == 0 else { throw Failure(text: "cannot make \(folder)") }
    return folder
  }
}
