import CredentialManager
import Cryptography
import HTTP
import Messages
import OAuth
import POSIX
import Providers

/// What git and its helpers say to each other (git-credential(1), INPUT/OUTPUT FORMAT).
struct GitCredential: Equatable {
  /// Names and values in the order in which they came.
  private(set) var attributes: [(name: String, value: String)] = []

  /// Reads what git writes: lines of `name=value`, until an empty one or the end.
  ///
  /// - Throws: `CommandError.failed` for a line without `=`, and for a NUL, a CR or a control character in a value: what
  ///   git and we take for different hosts must not be one (CVE-2020-5260, CVE-2024-52006).
  init(_ bytes: [UInt8]) throws(CommandError) {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw .usage("what git wrote is not UTF-8")
    }
    for line in text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.isEmpty { break }
      guard !line.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
        throw .usage("what git wrote has a control character in it")
      }
      guard let sign = line.firstIndex(of: "="), sign > line.startIndex else {
        throw .usage("what git wrote has a line without \"=\"")
      }
      attributes.append((String(line[..<sign]), String(line[line.index(after: sign)...])))
    }
  }

  /// The last value of a name; an empty one is none.
  subscript(name: String) -> String? {
    attributes.last { $0.name == name }.flatMap { $0.value.isEmpty ? nil : $0.value }
  }

  static func == (left: GitCredential, right: GitCredential) -> Bool {
    left.attributes.elementsEqual(right.attributes) { $0.name == $1.name && $0.value == $1.value }
  }
}

extension Command {
  static let gitCredential = Command(
    name: "git-credential", operands: "get|store|erase|capability", operandCount: 1...1,
    summary: "The git credential helper", options: [],
    notes: ["\"credmgr git-setup\" enters it into git's configuration."]
  ) { invocation, context throws(CommandError) in
    switch invocation.operands[0] {
    case "capability":
      try context.output("version 0\n")
    case "get":
      let input = try system { () throws(POSIXError) in try File.readStandardInput(limit: 1 << 20) }
      do throws(CommandError) {
        try get(GitCredential(input), context)
      } catch .handOver {
        throw .handOver(input: input)
      }
    case "erase":
      let input = try system { () throws(POSIXError) in try File.readStandardInput(limit: 1 << 20) }
      try erase(GitCredential(input), context)
    default:
      // What git asks to store came from us, or is another helper's; operations that we do not know are passed over
      // (gitcredentials(7)).
      _ = try system { () throws(POSIXError) in try File.readStandardInput(limit: 1 << 20) }
    }
    return .done
  }

  /// The provider that a git host belongs to; `nil` when none claims it, or the connection is not safe.
  private static func provider(
    _ request: GitCredential, _ context: Context
  ) -> (provider: String, username: String)? {
    guard let scheme = request["protocol"], let host = request["host"], isAuthority(host),
      let uri = try? URI(parsing: "\(scheme)://\(host)/"), uri.isSecure || (scheme == "http" && uri.isLoopback)
    else { return nil }
    return context.source.gitProvider(for: HostPattern.authority(uri) ?? host)
  }

  /// Whether a text is a host, with a port at most. git decodes what stands in a URL before it asks: in
  /// `https://good.example%2F.evil.example` the host would begin like another one's.
  private static func isAuthority(_ host: String) -> Bool {
    host.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: ".-_:[]".utf8.contains(byte)
      }
    }
  }

  private static func get(_ request: GitCredential, _ context: Context) throws(CommandError) {
    guard let claim = provider(request, context) else { return }
    let wanted = request["username"]
    let account: Account
    do throws(CredentialError) {
      account = try context.source.freshAccount(
        accountName(wanted, claim, context), of: claim.provider)
    } catch .unknownAccount {
      // A user name that is none of our accounts: another helper may know it.
      return
    } catch {
      throw CommandError(error)
    }
    context.source.noteHandOut(account, to: "git " + (request["host"] ?? ""))
    let credential = account.credential
    let username = wanted ?? claim.username.replacing("{account}", with: account.name)
    var answer = "username=\(username)\npassword=\(credential.accessToken.reveal())\n"
    if let expiresAt = credential.expiresAt { answer += "password_expiry_utc=\(expiresAt)\n" }
    try context.output(answer)
  }

  /// The account that git means: the user name in the URL, unless that is the one that goes with every token.
  private static func accountName(
    _ username: String?, _ claim: (provider: String, username: String), _ context: Context
  ) -> String? {
    if let username, username != claim.username { return username }
    return context.environment("CREDMGR_ACCOUNT").flatMap { $0.isEmpty ? nil : $0 }
  }

  private static func erase(_ request: GitCredential, _ context: Context) throws(CommandError) {
    guard let claim = provider(request, context), let password = request["password"] else { return }
    try manager { () throws(CredentialError) in
      guard try context.source.accountsIfAny() != nil else { return }
      try context.source.reject(Secret(password), account: nil, of: claim.provider)
    }
  }

  static let gitSetup = Command(
    name: "git-setup", operands: "", operandCount: 0...0,
    summary: "Enter the helper into git's configuration, or take it out",
    options: [
      Option("--global", "the person's configuration; this is what is taken without an option"),
      Option("--local", "the configuration of the repository here"),
      Option("--system", "the machine's configuration"),
      Option("--remove", "take our entry out again"),
    ],
    notes: ["Only our own entry is added or removed; all others stay as they are."]
  ) { invocation, context throws(CommandError) in
    let scopes = ["--global", "--local", "--system"].filter { invocation.has($0) }
    guard scopes.count <= 1 else { throw .exclusive(scopes) }
    let scope = scopes.first ?? "--global"
    let entry = helper(context.executable)
    let listed = try git(["config", scope, "--get-all", "credential.helper"], allowed: [0, 1])
    let isThere = listed.split(separator: "\n").contains { $0 == entry }
    if invocation.has("--remove") {
      guard isThere else {
        context.tell("git's configuration has no entry of ours")
        return .done
      }
      _ = try git(["config", scope, "--fixed-value", "--unset-all", "credential.helper", entry])
      context.tell("took the helper out of git's configuration")
    } else if isThere {
      context.tell("git's configuration has the helper already")
    } else {
      _ = try git(["config", scope, "--add", "credential.helper", entry])
      context.tell("git asks credmgr for credentials now")
    }
    return .done
  }

  /// The value of `credential.helper`: an absolute path is run as it is, anything else by a shell behind a `!`
  /// (gitcredentials(7)).
  private static func helper(_ executable: String) -> String {
    let isPlain = executable.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: "/._-+".utf8.contains(byte)
      }
    }
    if isPlain { return executable + " git-credential" }
    let pieces = executable.split(separator: "'", omittingEmptySubsequences: false)
    return "!'" + pieces.joined(separator: "'\\''") + "' git-credential"
  }

  /// Runs git, which says on standard error itself what does not work.
  ///
  /// - Parameter allowed: `git config --get-all` has the status 1 where there is no such key.
  private static func git(_ arguments: [String], allowed: Set<Int32> = [0]) throws(CommandError) -> String {
    let completion = try system { () throws(POSIXError) in try Launcher.run("git", arguments) }
    guard allowed.contains(completion.status) else {
      throw .failed(
        Message("git did not change its configuration (status \(completion.status))", status: .unexpected))
    }
    return String(decoding: completion.output, as: UTF8.self)
  }
}
