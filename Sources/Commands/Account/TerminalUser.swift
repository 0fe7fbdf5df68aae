import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrDescriptors
import CredmgrMessages
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

/// The user of a login at a terminal. `credmgr-online` makes it a `User`, because a linker keeps the code of each
/// conformance, and `credmgr` never logs in.
package final class TerminalUser {
  private let provider: String
  private let offersDevice: Bool
  /// Why this grant was chosen; `nil` once shown.
  private var reason: String?
  private let context: Context
  private var isWaitingTold = false
  private var shownURL: String?
  private var strayRedirects = 0
  /// The started browser. If it exits after `end`, a time of the monotonic clock, it has not failed.
  private var browser: (command: String, program: Launcher.Launched, end: MonotonicMoment)?
  private var silence: Terminal.Silence?
  /// The terminal, if the user does not type on standard input.
  private let terminal: ControllingTerminal?
  /// The programs that wait for this login, if it is only for them.
  private let waiting: WaitingPrograms?
  /// How long the login waits; `nil` if the user learns this from a terminal or from another program.
  private let patience: Duration?
  /// Whether the login ends if the browser fails and no user can read the address.
  private let needsReader: Bool
  private(set) var isUnread = false
  private let readsInput: Bool  // Whether the values of a prompt come from standard input.
  /// The content of the key file that the user named.
  private let keyFile: String?
  private let values: [String: Secret]  // The values of a prompt, if another tool has them.

  init(
    provider: String, offered: [Grant], fitting: Command.FittingGrant?, _ context: Context,
    terminal: ControllingTerminal? = nil, waiting: WaitingPrograms? = nil, patience: Duration? = nil,
    needsReader: Bool = false, readsInput: Bool = false,
    keyFile: String? = nil, values: [String: Secret] = [:]
  ) {
    self.readsInput = readsInput
    self.keyFile = keyFile
    self.values = values
    self.provider = provider
    offersDevice = fitting == nil && offered.first != .deviceCode && offered.contains(.deviceCode)
    reason = fitting?.reason
    self.context = context
    self.terminal = terminal
    self.waiting = waiting
    self.patience = Terminal.isTerminal(2) ? nil : patience
    self.needsReader = needsReader && !Terminal.isTerminal(0) && !Terminal.isTerminal(2)
  }

  package func tell(_ step: LoginStep) {
    if let reason { say(reason) }
    reason = nil
    switch step {
    case .alreadyLoggedIn(let accounts):
      // The values may be wrong, and no user can stop this login.
      if readsInput, !Terminal.isTerminal(0) { return }
      say("already logged in to \(context.titled(provider)) as " + some(accounts))
    case .open(let url):
      say("opening the browser; if it does not open, visit this address:")
      show(url)
      shownURL = url
    case .visit(let url) where url == shownURL: say("cannot start a browser" + otherwise)
    case .visit(let url):
      say("open this address in a browser:")
      show(url)
    case .pageExpires(let time): say("the address is valid for \(exactDuration(time))")
    case .awaiting(let redirect, canPaste: true, opensBrowser: false):
      say("if the browser is on another machine, it will fail to load \(redirect)")
      say("in that case, copy its whole address, paste it here and press Enter; Ctrl-C stops")
    case .awaiting(_, canPaste: true, opensBrowser: true):
      say("waiting for the browser, or for its last address pasted here")
    case .awaiting(_, _, opensBrowser: false) where patience != nil:
      say("waiting for the browser for at most \(exactDuration(patience ?? .zero))")
    case .awaiting:
      if Terminal.isTerminal(2) { say("waiting for the browser; Ctrl-C stops") }
    case .paste(let redirect):
      let isCode = redirect == "oob" || redirect.hasPrefix("urn:")
      if !isCode { say("after you agree, the browser shows an address that begins with \(redirect)") }
      say("paste \(isCode ? "the code from the page" : "that address") here and press Enter:")
    case .tokenPaste:
      silence = try? Terminal.Silence()
      if silence != nil { say("the pasted text is not shown") }
    case .device(let userCode, let url, let completeURL, let validity, let patience):
      showQRCode(completeURL ?? url)
      say("open \(url) in any browser and enter the code \(userCode)")
      if let completeURL, completeURL != url { say("or open \(completeURL)") }
      sayLimit(of: "the code", validity, patience)
    case .confirmation(let message, let validity, let patience):
      say(
        "confirm the login on your device"
          + (message.map { "; confirm it only if the device shows \(quoted($0))" } ?? ""))
      sayLimit(of: "the question", validity, patience)
    case .awaitingConsent(let time):
      let left = "\(countdown(time)) left; Ctrl-C stops"
      count(["waiting for the browser; " + left, left, countdown(time)])
    case .waiting(let time, let process):
      if time >= .seconds(1), !isWaitingTold {
        let which = process.map { " (process \($0))" } ?? ""
        say("waiting for another login to \(context.titled(provider))\(which); Ctrl-C stops")
      }
      isWaitingTold = isWaitingTold || time >= .seconds(1)
    case .strayPaste(let error):
      // If the user cannot paste again, the final error says the same.
      guard terminal != nil || Terminal.isTerminal(0) else { return }
      say(error.message(titled: context.titled).text)
      say("paste the whole address here and press Enter; Ctrl-C stops")
    case .strayRedirect(let count):
      // Any local program or web page can send one, a thousand times.
      if count == 1 { say("ignored a redirect that does not belong to this login") }
      strayRedirects = count
    case .intruder(let user):
      say("refused a request for the login page from another user of this machine (uid \(user))")
    case .tooLong: say("refused an answer in the browser that is longer than 64 KiB")
    case .reopened:
      say("the browser opened the login page twice; if it shows no login, open the address above yourself")
    }
  }

  func end() {
    silence = nil
    StandardError.endCount()
    if strayRedirects > 1 { say("ignored \(strayRedirects) redirects that do not belong to this login") }
    strayRedirects = 0
  }

  private func say(_ text: String) { context.tell(text) }

  private func show(_ url: String) { Terminal.writeError("  " + Message.visible(url) + "\n") }

  private func sayLimit(of thing: String, _ validity: Duration, _ patience: Duration) {
    say(
      patience < validity
        ? "waiting for at most \(exactDuration(patience)); Ctrl-C stops"
        : "\(thing) is valid for \(duration(validity)); Ctrl-C stops")
  }

  private func countdown(_ time: Duration) -> String {
    let seconds = max(time.wholeSeconds, 0)
    return "\(seconds / 60):" + (seconds % 60 < 10 ? "0" : "") + "\(seconds % 60)"
  }

  private func count(_ texts: [String]) {
    let lines = texts.lazy.map { "credmgr: " + $0 }
    guard canDraw, let line = lines.first(where: { $0.count < Terminal.width }) else { return }
    StandardError.count(line)
  }

  private var canDraw: Bool { Terminal.isTerminal(2) && ![nil, "", "dumb"].contains(context.environment("TERM")) }

  private func showQRCode(_ url: String) {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap(context.environment).first { !$0.isEmpty } ?? ""
    let isUTF8 = ["utf-8", "utf8"].contains { locale.lowercased().hasSuffix($0) }
    guard canDraw, isUTF8, let modules = context.online?.qrCode(url) else { return }
    let drawing = QRCodeDrawing(modules: modules)
    guard drawing.width <= Terminal.width else { return }
    Terminal.writeError(drawing.lines.joined(separator: "\n") + "\n")
  }

  package func open(_ url: String) -> Bool {
    let opening = (try? Browser.open(url, patience: .milliseconds(300))) ?? .failed
    if case .running(let command, let program) = opening {
      // A browser that exits later was closed by the user.
      browser = (command, program, context.clock.monotonic() + .seconds(10))
    }
    isUnread = needsReader && !opening.isOpen
    return opening.isOpen
  }

  /// Reports a browser that failed, because its window will never appear.
  package func poll() {
    guard let (command, program, end) = browser else { return }
    let status = context.clock.monotonic() > end ? 0 : (try? program.status(within: .zero))
    guard let status else { return }
    browser = nil
    if status != 0 {
      isUnread = needsReader
      say("\"\(command)\" failed with status \(status); open the address above yourself" + otherwise)
    }
  }

  private var otherwise: String {
    offersDevice ? "; \"credmgr login \(provider) --grant device_code\" works without one" : ""
  }

  package func pastedLine(within time: Duration) -> String? {
    let end = context.clock.monotonic() + time
    while let line = try? Terminal.readLine(terminal?.number ?? 0, until: (end, context.clock)) {
      if !line.isEmpty { return line }
    }
    return nil
  }

  package func texts(for prompt: Step.Prompt) throws(CredentialError) -> [String]? {
    if readsInput { return try lines(for: prompt.fields) }
    if !values.isEmpty { return prompt.fields.map { values[$0.name]?.reveal() ?? "" } }
    let asked = prompt.fields.filter { $0.content != .keyFile || keyFile == nil }
    let canAsk = ControllingTerminal() != nil && Terminal.isTerminal(2)
    guard canAsk || keyFile != nil && asked.allSatisfy(\.isOptional) else { return nil }
    let made = asked.filter(\.isSecret)
    if canAsk, !made.isEmpty, let page = prompt.page {
      say("create the \(made.map(\.label).joined(separator: " and the ")) at \(page)")
    }
    var texts: [String] = []
    for field in prompt.fields {
      if field.content == .keyFile, let keyFile {
        texts.append(keyFile)
        continue
      }
      do throws(POSIXError) {
        let question = StandardError.prompt("\(field.label) of \(context.titled(provider)):")
        if !canAsk {
          texts.append("")
        } else if field.content == .keyFile {
          let path = try shown(question) ?? ""
          // The other lines of a pasted key must not reach the shell.
          Terminal.discardInput(terminal?.number ?? 0)
          texts.append(try Context.keyFile(at: path))
        } else {
          texts.append(field.isSecret ? try typed(question) : try shown(question) ?? "")
        }
      } catch {
        throw error == .interrupted || error == .endOfInput ? .interrupted : .system(error)
      }
      // The login fails at this text, so the user need not type the others.
      if !prompt.accepts(texts) { break }
    }
    return texts
  }

  private func typed(_ question: String) throws(POSIXError) -> String {
    String(decoding: try Terminal.readPassword(prompt: question, limit: 1 << 16), as: UTF8.self)
  }

  private func shown(_ question: String) throws(POSIXError) -> String? {
    Signals.installInterruptFlag()
    Terminal.writeError(question)
    return try Terminal.readLine(terminal?.number ?? 0)
  }

  /// Reads all values from standard input. A single value with several lines must be a mistake.
  func lines(for fields: [Step.Prompt.Field]) throws(CredentialError) -> [String] {
    let bytes: [UInt8]
    do throws(POSIXError) {
      if Terminal.isTerminal(0) { return try fields.map { field throws(POSIXError) in try typed(field.label + ": ") } }
      bytes = try File.readStandardInput(limit: 1 << 21)
    } catch {
      throw error == .interrupted ? .interrupted : .system(error)
    }
    let text = String(decoding: bytes, as: UTF8.self)
    if fields.count == 1 { return [text] }
    var lines = text.linesByScalars.map { $0.hasSuffix("\r") ? String($0.dropLast()) : $0 }
    while lines.last?.isEmpty == true { lines.removeLast() }
    let missing = fields.dropFirst(lines.count)
    if missing.allSatisfy(\.isOptional) { lines += missing.map { _ in "" } }
    guard lines.count == fields.count else {
      throw .wrongPaste(provider: provider, .count(expected: fields.map(\.label)))
    }
    return lines
  }

  package func choice(among labels: [String], of provider: String) throws(CredentialError) -> Int? {
    guard terminal != nil || Terminal.isTerminal(0), Terminal.isTerminal(2) else { return nil }
    say("\(context.titled(provider)) offers \(labels.count) entries:")
    for (place, label) in labels.enumerated().prefix(99) {
      Terminal.writeError("  \(place + 1)  \(Message.visible(label))\n")
    }
    while true {
      let answer: String?
      do throws(POSIXError) { answer = try shown(StandardError.prompt("Number of the entry:")) } catch {
        throw error == .interrupted || error == .endOfInput ? .interrupted : .system(error)
      }
      guard let answer, !Signals.isInterrupted else { throw .interrupted }
      if let number = Int(answer.filter { $0 != " " }), labels.indices.contains(number - 1) { return number - 1 }
      say("type a number from 1 to \(labels.count), or press Ctrl-C to stop")
    }
  }

  package func confirmStoring(unverified error: CredentialError) -> Bool? {
    guard Terminal.isTerminal(0), Terminal.isTerminal(2) else { return nil }
    say("cannot verify the credential: " + error.message(titled: context.titled).text)
    return (try? Question.confirm("Store it without verification?")) ?? false
  }

  package var canAnswer: Bool { Terminal.isTerminal(2) && (terminal != nil || Terminal.isTerminal(0)) }

  package func givesAway(_ account: String, of expected: String, to found: String?) -> Bool {
    say("you signed in as \(found.map(quoted) ?? "another user") instead of \(quoted(expected))")
    let question = "Use the account \(quoted(account)) for this user from now on?"
    return (try? Question.confirm(question, on: terminal?.number ?? 0, reading: answer)) ?? false
  }

  /// Waits for a line for five minutes, or until no program waits for this login.
  private func answer(on terminal: Int32) -> String? {
    let end = context.clock.monotonic() + .seconds(300)
    while !isCancelled, context.clock.monotonic() < end {
      let pause = (context.clock.monotonic() + .milliseconds(500), context.clock)
      do throws(POSIXError) { return try Terminal.readLine(terminal, until: pause) } catch {
        if error != .timedOut { return nil }
      }
    }
    return nil
  }

  package var pasteDescriptor: Int32? { terminal?.number ?? (Terminal.isTerminal(0) ? 0 : nil) }

  package var isCancelled: Bool { Signals.isInterrupted || isUnread || waiting?.haveEnded == true }
}

extension Context {
  /// Returns the user for a login.
  func user(_ user: TerminalUser) throws(CredentialError) -> any User {
    guard let online else { throw .networkNeeded }
    return online.user(user)
  }
}
