import CredentialManager
import Platform
import Text

extension Command {
  /// Enters credmgr into docker's configuration, or takes it out.
  static func setUpDocker(_ invocation: Invocation, _ context: Context) throws(CommandError) -> ExitStatus {
    guard let path = DockerConfiguration.path(context) else { throw CommandError(CredentialError.noHome) }
    var configuration = DockerConfiguration()
    if File.exists(path) {
      if File.isDirectory(path) {
        throw .failed(Message("\"\(path)\" is a folder", hint: .settingAside(path), status: .usage))
      }
      let bytes = try system(File.read(path, limit: 1 << 20))
      guard let read = DockerConfiguration(bytes) else { throw .failed(DockerConfiguration.unreadable(path)) }
      configuration = read
    }
    let before = configuration.text
    let what: String
    if invocation.has("--remove") {
      configuration.forget()
      what =
        configuration.text == before
        ? "docker's configuration has no entry of ours" : "docker does not ask credmgr any more"
    } else if invocation.has("--all") {
      configuration.askForAll()
      what = "docker asks credmgr for every registry for which it asks nobody else"
    } else {
      var registries: [String] = []
      for text in invocation.operands.dropFirst() {
        // The one of docker itself is named by its whole address.
        let host = try RegistryAddress(text).host
        registries.append(text.firstPlace(of: "://") == nil ? host : text)
      }
      if registries.isEmpty { registries = try Set(context.dockerClaims().map(\.host)).sorted() }
      guard !registries.isEmpty else {
        throw .usage(
          "no provider that was added has a registry",
          hint: "\(credmgr: "docker-credential", "setup", "--all"), which stores what \"docker login\" is given")
      }
      configuration.ask(for: registries)
      what = "docker asks credmgr for " + some(registries)
    }
    if configuration.text != before {
      let text = configuration.text
      try system { () throws(POSIXError) in
        if let folder = Path.directory(of: path) { try File.createDirectory(folder) }
        // A link, such as into a folder of configurations, stays one.
        try PrivateFile.replace(Path.resolved(path) ?? path, Array(text.utf8))
      }
    }
    context.tell(what)
    if !invocation.has("--remove") {
      var doctor = Doctor(context)
      doctor.checkDocker([])
      doctor.tellAll()
    }
    return .done
  }
}
