import CredentialManager
import Platform
import Text

extension Doctor {
  mutating func checkDocker(_ claimed: [HostClaim]) {
    guard let path = DockerConfiguration.path(context) else { return ok(.docker, "docker is not set up") }
    let bytes: [UInt8]
    do throws(POSIXError) {
      bytes = try File.read(path, limit: 1 << 20, ordinary: true)
    } catch .notRegularFile {
      return tellDockerFile(path, .notFile(path))
    } catch .permissionDenied where File.isOwn(path) == true {
      return tellDockerFile(path, .unreadable(path))
    } catch {
      if case .notFound = error, File.isLink(path), let fault = FileFault.obstacle(to: path) {
        return tellDockerFile(path, fault)
      }
      return ok(.docker, "docker is not set up")
    }
    guard let configuration = DockerConfiguration(bytes) else {
      return problem(.docker, DockerConfiguration.unreadable(path))
    }
    let before = diagnostics.count
    if configuration.asksUs { checkDockerProgram() }
    for (name, registries) in configuration.others
    where (try? Launcher.find("docker-credential-" + name)) == nil {
      let setup = ["docker-credential", "setup"] + (registries.isEmpty ? ["--all"] : registries)
      problem(
        .docker,
        "docker looks for \(quoted("docker-credential-" + name)) in PATH"
          + (registries.isEmpty ? "" : " for " + some(registries)) + ", and there is none",
        "install it, or \(credmgr: setup) to let docker ask credmgr instead")
    }
    let others = Set(claimed.map(\.host)).sorted().filter { configuration.helper(of: $0) != "credmgr" }
    if !others.isEmpty {
      if let fault = FileFault.obstacle(to: path) { return tellDockerFile(path, fault) }
      note(
        .docker, "docker does not ask credmgr for " + some(others), "\(credmgr: "docker-credential", "setup")")
    }
    let readable = configuration.readablePasswords
    if !readable.isEmpty {
      note(
        .docker, "\(quoted(path)) has passwords that can be read, for " + some(readable),
        remedies: readable.prefix(5).map { "\(run: "docker", "logout", $0)" })
    }
    guard diagnostics.count == before else { return }
    ok(
      .docker,
      configuration.asksUs ? "docker asks credmgr" : "docker does not ask credmgr, and no provider has a registry")
  }

  private mutating func tellDockerFile(_ path: String, _ fault: FileFault) {
    problem(.docker, "docker cannot use \(quoted(path)): \(fault.words)", fault.remedy)
  }

  private mutating func checkDockerProgram() {
    let name = "docker-credential-credmgr"
    guard let file = try? Launcher.find(name) else {
      let folder = folderInPath
      let sudo = sudo(File.exists(folder) && !File.isWritable(folder))
      return problem(
        .docker, "docker looks for \(quoted(name)) in PATH, and there is none",
        "\(run: sudo + ["ln", "-s", program, folder + "/" + name])")
    }
    if isAnother(file) {
      let sudo = sudo(!File.isWritable(Path.directory(of: file) ?? "/"))
      note(
        .docker, "docker asks \(quoted(file)), which is another credmgr than \(quoted(program))",
        "\(run: sudo + ["ln", "-sf", program, file])")
    }
  }

  /// A folder in which a person can put a program, where there is one.
  private var folderInPath: String {
    let folders = (context.environment("PATH") ?? "").split(separator: ":").map(String.init)
    let own = folders.first { folder in context.home.person.map { folder.hasPrefix($0 + "/") } ?? false }
    return own ?? "/usr/local/bin"
  }
}

extension DockerConfiguration {
  static func unreadable(_ path: String) -> Message {
    Message(
      "\(quoted(path)) is no JSON object, and docker cannot read it, either",
      hint: "correct it, or \(Remedy.settingAside(path))", status: .usage)
  }
}
