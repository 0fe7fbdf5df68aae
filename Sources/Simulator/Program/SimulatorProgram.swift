import CredentialManager
import Cryptography
import Descriptors
import HTTP
import Commands
import Platform
import Text

/// `credmgr-simulator`: plays a provider on loopback until it is told to end.
public enum SimulatorProgram {
  /// Runs the program; `arguments` begin with its name.
  ///
  /// - Returns: the exit status: 0 when it was told to end, 2 for what is wrong with the arguments or the descriptor.
  public static func run(_ arguments: [String]) -> Int32 {
    do throws(SimulatorError) {
      switch try SimulatorArguments.parse(Array(arguments.dropFirst())) {
      case .help: try write(SimulatorWords.usage)
      case .simulate(let arguments): try simulate(arguments)
      }
      return ExitStatus.done.rawValue
    } catch {
      if case .provider(.invalid(let findings)) = error { StandardError.show(findings) }
      StandardError.show(SimulatorWords.message(error), program: "credmgr-simulator")
      return SimulatorWords.message(error).status.rawValue
    }
  }

  private static func simulate(_ arguments: SimulatorArguments) throws(SimulatorError) {
    Signals.installInterruptFlag()
    Signals.ignoreFailedWrites()
    let descriptor = try descriptor(arguments)
    let random = SystemRandomSource()
    let secret = try secret(arguments, random)
    let listener = try SimulatorListener(port: arguments.port)
    let origin = "http://127.0.0.1:\(listener.port)"
    guard let uri = try? URI(parsing: origin) else { throw .serverFailed }
    let provider = try SimulatedProvider(
      descriptor, at: uri, settings: arguments.settings, clientSecret: secret, clock: millisecondClock(),
      random: random)
    var folder = try TemporaryFolder(random)
    let file = try folder.write(descriptor.identifier + ".yaml", Array(provider.descriptorText.utf8))
    let secretFile = try folder.write("client-secret", secret.revealBytes())
    let server = try SimulatorServer(listener) { provider.answer($0) }
    try write(
      """
      listening on \(origin)
      descriptor \(file)
      client-id \(SimulatedProvider.clientIdentifier)
      client-secret-file \(secretFile)
      ready

      """)
    waitForSignal()
    _ = consume server
    _ = consume folder
  }

  private static func waitForSignal() {
    let clock = SystemClock()
    while (try? clock.sleep(seconds: 3600)) != nil {}
  }

  private static func write(_ text: String) throws(SimulatorError) {
    do { try Terminal.writeOutput(text) } catch { throw .output }
  }

  /// Milliseconds since 1970, which never go back.
  private static func millisecondClock() -> @Sendable () -> Int64 {
    let clock = SystemClock()
    let start = Double(clock.now()) - clock.monotonic()
    return { Int64((start + clock.monotonic()) * 1000) }
  }

  private static func secret(
    _ arguments: SimulatorArguments, _ random: some RandomSource
  ) throws(SimulatorError) -> Secret {
    guard let path = arguments.clientSecretFile else { return Secret(Base64.encodeURL(random.bytes(32))) }
    guard let bytes = try? File.read(path, limit: 64 * 1024) else { throw .unreadable(path: path) }
    // A file made by an editor ends with a line end, which is not part of a secret.
    let text = String(decoding: bytes, as: UTF8.self)
    return Secret(String(text.reversed().drop { $0.isNewline }.reversed()))
  }

  // MARK: The descriptor

  /// The descriptor with an identifier, or in a file.
  private static func descriptor(_ arguments: SimulatorArguments) throws(SimulatorError) -> Descriptor {
    let library = DescriptorLibrary(directories: directories(arguments)) { path throws(UnreadableDescriptor) in
      guard let bytes = try Home.descriptor(at: path) else { return nil }
      // What was added from an earlier start would play itself; the one that it was made from is further along the path.
      return DescriptorText.isOurs(bytes) ? nil : bytes
    }
    let source = arguments.descriptor
    let loaded: DescriptorLibrary.Loaded
    do {
      if DescriptorLibrary.isIdentifier(source), library.path(of: source) != nil {
        loaded = try library.load(source)
      } else if let bytes = try file(source) {
        loaded = try library.load(bytes, name: source)
      } else if DescriptorLibrary.isIdentifier(source) {
        throw ProviderError.unknown(identifier: source, suggestion: nearMiss(source, among: identifiers(library)))
      } else {
        throw SimulatorError.unreadable(path: source)
      }
    } catch let error as ProviderError {
      throw .provider(error)
    } catch let error as SimulatorError {
      throw error
    } catch {
      throw .unreadable(path: source)
    }
    StandardError.show(loaded.warnings)
    return loaded.descriptor
  }

  /// A file; `nil` when there is none that can be read.
  ///
  /// - Throws: `ProviderError.invalid` for one that is longer than any descriptor.
  private static func file(_ path: String) throws(ProviderError) -> [UInt8]? {
    do {
      return try File.read(path, limit: 1 << 20)
    } catch {
      if case .tooLarge = error { throw .invalid([Finding.tooLarge(path)]) }
      return nil
    }
  }

  private static func identifiers(_ library: DescriptorLibrary) -> [String] {
    library.directories.flatMap { (try? File.names(in: $0)) ?? [] }.filter { $0.hasSuffix(".yaml") }
      .map { String($0.dropLast(".yaml".count)) }
  }

  private static func directories(_ arguments: SimulatorArguments) -> [String] {
    if !arguments.directories.isEmpty { return arguments.directories }
    guard let executable = try? Path.executable() else { return [] }
    // Not the person's own: what was added from an earlier start would play itself.
    return Home(withoutFolders: executable).systemProviders
  }
}
