import Commands
import CredentialManager
import Cryptography
import Descriptors
import HTTP
import Platform
import Text

/// `credmgr simulate`: plays a provider on loopback until it is told to end.
package enum SimulateCommand {
  /// Runs the command.
  ///
  /// - Throws: `CommandError` for what is wrong with the arguments or the descriptor, and where there is no port.
  package static func run(_ invocation: Invocation, _ context: Context) throws(CommandError) {
    Signals.installInterruptFlag()
    let settings = try settings(invocation)
    let port = try parsed("--port", invocation.value("--port")) { UInt16($0) } ?? 0
    let descriptor = try descriptor(
      invocation.operands[0], invocation.all("--descriptors") + context.home.library.directories, context)
    let random = SystemRandomSource()
    let secret =
      if let file = invocation.value("--client-secret-file") { try context.secret(file) } else {
        Secret(Base64.encodeURL(random.bytes(32)))
      }
    do throws(SimulatorError) {
      var server: LoopbackServer
      do throws(HTTPError) { server = try LoopbackServer(port: port == 0 ? nil : port) } catch {
        throw .portUnavailable(port)
      }
      let origin = "http://127.0.0.1:\(server.port)"
      guard let uri = try? URI(parsing: origin) else { throw .portUnavailable(port) }
      let provider = try SimulatedProvider(
        descriptor, at: uri, settings: settings, clientSecret: secret, clock: millisecondClock(), random: random)
      var folder = try TemporaryFolder(random)
      let file = try folder.write(descriptor.identifier + ".yaml", Array(provider.descriptorText.utf8))
      let secretFile = try folder.write("client-secret", secret.revealBytes())
      do throws(POSIXError) {
        try Terminal.writeOutput(
          """
          listening on \(origin)
          descriptor \(file)
          client-id \(SimulatedProvider.clientIdentifier)
          client-secret-file \(secretFile)
          ready

          """)
      } catch { throw .system(error) }
      let clock = SystemClock()
      try? server.serve(isCancelled: { Signals.isInterrupted }) { request in
        var answer = provider.answer(request)
        answer.response.fields.set("Date", date(clock.now()))
        return answer
      }
    } catch {
      throw CommandError(error)
    }
  }

  // MARK: Options

  static func settings(_ invocation: Invocation) throws(CommandError) -> SimulationSettings {
    var settings = SimulationSettings()
    for text in invocation.all("--set") {
      let pair = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      guard pair.count == 2, !pair[0].isEmpty else { throw invalid("--set", text) }
      settings.variables[pair[0]] = pair[1]
    }
    settings.lifetime = try parsed("--lifetime", invocation.value("--lifetime")) {
      seconds($0).flatMap { $0 > 0 ? $0 : nil }
    }
    settings.grace = try parsed("--grace", invocation.value("--grace"), seconds) ?? 0
    for name in invocation.all("--fault") {
      guard let fault = Fault(named: name) else {
        throw .usage(
          "unknown fault \(quoted(name))\(didYouMean(nearMiss(name, among: Fault.names))); known are "
            + Fault.names.joined(separator: ", "))
      }
      settings.faults.append(fault)
    }
    settings.gitHosts = invocation.all("--git-host")
    for host in settings.gitHosts where host.isEmpty || host.contains("/") || host.contains("{") {
      throw invalid("--git-host", host)
    }
    settings.keepsRedirect = invocation.has("--keep-redirect")
    return settings
  }

  private static func parsed<Value>(
    _ option: String, _ text: String?, _ parse: (String) -> Value?
  ) throws(CommandError) -> Value? {
    guard let text else { return nil }
    guard let value = parse(text) else { throw invalid(option, text) }
    return value
  }

  private static func invalid(_ option: String, _ value: String) -> CommandError {
    .usage("\(quoted(value)) is no value for \(quoted(option))", hint: "\(credmgr: "help", "simulate")")
  }

  /// A number of seconds, or a duration as elsewhere (`90s`, `8h`).
  private static func seconds(_ text: String) -> Int64? {
    (Int64(text) ?? Text.seconds(ofDuration: text)).flatMap { (0...10_000_000_000).contains($0) ? $0 : nil }
  }

  /// Milliseconds since 1970, which never go back.
  private static func millisecondClock() -> @Sendable () -> Int64 {
    let clock = SystemClock()
    let start = Double(clock.now()) - clock.monotonic()
    return { Int64((start + clock.monotonic()) * 1000) }
  }

  /// A date of HTTP (RFC 9110, 5.6.7); clients set their clocks by it.
  static func date(_ seconds: Int64) -> String {
    let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let parts = Moment.format(seconds).split { "-T:Z".contains($0) }
    let month = months[(Int(parts[1]) ?? 1) - 1]
    let time = parts[3...].joined(separator: ":")
    return "\(days[Int(seconds / 86_400 % 7)]), \(parts[2]) \(month) \(parts[0]) \(time) GMT"
  }

  // MARK: The descriptor

  /// The descriptor with an identifier, or in a file.
  private static func descriptor(
    _ source: String, _ directories: [String], _ context: Context
  ) throws(CommandError) -> Descriptor {
    let library = DescriptorLibrary(directories: directories) { path throws(UnreadableDescriptor) in
      guard let bytes = try Home.descriptor(at: path) else { return nil }
      // What was added from an earlier start would play itself; the one that it was made from is further along the
      // path.
      return SimulatedProvider.isOurs(bytes) ? nil : bytes
    }
    let isIdentifier = DescriptorLibrary.isIdentifier(source)
    let isFile = Context.isDescriptorFile(source) || library.path(of: source) == nil && File.exists(source)
    let bytes = isFile ? try context.descriptor(source) : nil
    do throws(ProviderError) {
      let provider = if let bytes { try library.load(bytes, name: source) } else { try library.load(source) }
      StandardError.show(provider.warnings)
      return provider.descriptor
    } catch .unknown where isIdentifier {
      let near = nearMiss(source, among: context.source.knownProviders())
      throw CommandError(.provider(.unknown(identifier: source, suggestion: near)))
    } catch {
      throw CommandError(.provider(error))
    }
  }
}

extension CommandError {
  /// The same for a person.
  init(_ error: SimulatorError) {
    switch error {
    case .provider(let error): self = .failed(error.message)
    case .variableNeeded(let variable):
      self = .usage(
        "the variable \(quoted(variable.name)) has no value" + (variable.help.map { ": " + $0 } ?? ""),
        hint: "\(add: "--set", "\(variable.name)=VALUE")")
    case .unknownSignature(let text):
      self = .usage("\(quoted(text)) is no signature method or transport of OAuth 1.0a")
    case .keyNeeded(let method):
      self = .usage(
        "\(method.rawValue) needs the client's RSA key",
        hint: "make one with \"openssl genrsa -out key.pem 2048\", and \(add: "--client-secret-file", "key.pem")")
    case .portUnavailable(let port):
      self = .usage("the port \(port) is not free", hint: "leave \"--port\" out to get a free one")
    case .system(let error): self.init(error)
    }
  }
}

/// A folder that nobody else reads, and that goes away with the value.
private struct TemporaryFolder: ~Copyable {
  private let path: String
  private var files: [String] = []

  init(_ random: some RandomSource) throws(SimulatorError) {
    let parent = Environment.value("TMPDIR").flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/tmp"
    path = Path.joining(parent, "credmgr-simulator-" + Hexadecimal.encode(random.bytes(8)))
    do { try PrivateFile.createDirectory(path) } catch { throw .system(error) }
  }

  /// Writes a file, and returns its path.
  mutating func write(_ name: String, _ bytes: [UInt8]) throws(SimulatorError) -> String {
    let file = Path.joining(path, name)
    do { try PrivateFile.create(file, bytes) } catch { throw .system(error) }
    files.append(file)
    return file
  }

  deinit {
    for file in files { _ = try? File.remove(file) }
    File.removeDirectory(path)
  }
}
