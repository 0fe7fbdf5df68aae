import CredmgrCredentialManager
import CredmgrDescriptors
import CredmgrJSON
import CredmgrMessages
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText
import CredmgrYAML

extension Command {
  static let descriptorFolders = Option(
    "--descriptors", value: "DIR", repeats: true, "directory of descriptors to search before the installed ones")

  static let check = Command(
    name: "check", operands: "FILE…", operandCount: 1...10_000,
    summary: "Check descriptors for errors",
    options: [
      descriptorFolders,
      Option("--strict", "also require the key \"verified\" and its sources, and fail on warnings"), json,
    ],
    notes: [
      "credmgr prints each error on standard output as FILE:LINE:COLUMN: error: MESSAGE, with the line and a caret. It "
        + "prints nothing for correct files, except a message if standard error is a terminal.",
      "If the descriptor of an added provider would send tokens to a new host or protect them less, credmgr prints a "
        + "warning.",
    ],
    examples: [
      ("credmgr check notes.yaml", "Check a descriptor before sharing it"),
      ("credmgr check --descriptors . *.yaml", "Check files that extend each other"),
      ("credmgr check --strict notes.yaml", "Check a descriptor before adding it to credmgr"),
    ], asksNobody: true, needsHome: false
  ) { invocation, context throws(CommandError) in
    var status = ExitStatus.done
    let isStrict = invocation.has("--strict")
    var all: [Finding] = []
    let library = context.home.library.behind(try context.descriptorFolders(invocation))
    for path in invocation.operands {
      let findings: [Finding]
      do throws(CommandError) {
        let name = Context.descriptorName(path)
        let bytes = try context.descriptor(path)
        let (descriptor, ownFindings) = library.check(bytes, name: name)
        if let descriptor { try checkAssertions(of: descriptor) }
        findings =
          ownFindings + newHosts(of: descriptor, in: bytes, named: name, context)
          + (isStrict ? doubts(about: descriptor, bytes, named: name, context.clock.now()) : [])
      } catch .credential(.provider(.invalid(let found))) {
        findings = found
      } catch .failed(let message) {
        // Continue with the other files.
        StandardError.show(message)
        status = .usage
        continue
      }
      all += findings
      if !context.isJSON { try context.output(findings.map { $0.report(columns: Terminal.outputColumns) }.joined()) }
      if findings.contains(where: { isStrict || $0.severity == .error }) { status = .usage }
    }
    if context.isJSON { try context.output(.array(all.map(\.json))) }
    if status != .done { throw .ended(status) }
    if all.isEmpty, !context.isJSON, Terminal.isTerminal(2) {
      context.tell("found no errors in " + some(invocation.operands.map(Context.descriptorName)))
    }
  }

  /// Throws if each login or logout would fail, because an endpoint would get an assertion for another server.
  private static func checkAssertions(of descriptor: Descriptor) throws(CommandError) {
    do throws(OAuthError) { try Client(unregistered: descriptor).checkAssertions() } catch {
      throw .failed(error.message(provider: descriptor.identifier).with(hints: []))
    }
  }

  /// Returns hosts that the user has not agreed to, if a provider with this identifier was added: after editing a
  /// descriptor, the user will be asked about them. Skips a vault that requires a passphrase.
  private static func newHosts(
    of descriptor: Descriptor?, in bytes: [UInt8], named name: String, _ context: Context
  ) -> [Finding] {
    guard let provider = descriptor?.identifier else { return [] }
    let start = beginning(of: bytes, named: name)
    return ((try? context.source.newPlaces(of: provider, bytes, named: name)) ?? []).map { new in
      let problem: Finding.Problem =
        switch new.kind {
        case .setting(let key), .value(let key): .newSetting(key, value: new.name, provider: provider)
        default: .newHost(new.name, provider: provider)
        }
      return Finding(problem, at: new.place ?? start, severity: .warning)
    }
  }

  /// Returns what makes the key `verified` worth nothing: it is missing, its date is in the future, or the file has no
  /// link to a page.
  private static func doubts(
    about descriptor: Descriptor?, _ bytes: [UInt8], named name: String, _ now: Moment
  ) -> [Finding] {
    guard let descriptor else { return [] }
    let start = beginning(of: bytes, named: name)
    // In the east, the next day has begun.
    let tomorrow = (now + .days(1)).text
    switch descriptor.verified {
    case nil: return [Finding(.missingKey("verified"), at: start)]
    case .unverified: return []
    case .documentation(let date), .live(let date):
      let isFuture = date > String(tomorrow.prefix(date.utf8.count))
      let hasLink = String(decoding: bytes, as: UTF8.self).split(separator: "\n").contains { line in
        line.firstPlace(of: "#").map { line[$0.upperBound...].firstPlace(of: "https://") != nil } ?? false
      }
      return (isFuture ? [Finding(.futureDate(date), at: start)] : [])
        + (hasLink ? [] : [Finding(.noSources, at: start)])
    }
  }

  private static func beginning(of bytes: [UInt8], named name: String) -> Place {
    Place(source: Source(name: name, text: String(decoding: bytes, as: UTF8.self)), line: 1, column: 1)
  }
}
