import CredmgrCredentialManager
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

extension Doctor {
  mutating func checkDocker(_ claimed: [HostClaim]) {
    guard let path = DockerConfiguration.path(context) else { return ok(.docker, "docker is not set up") }
    let stored = (try? StoredLogin.all(of: nil, context))?.filter(\.isDocker).map(\.place) ?? []
    let bytes: [UInt8]
    do throws(POSIXError) { bytes = try File.read(path, limit: 1 << 20, ordinary: true) } catch .notRegularFile {
      return tell(.notFile(path), of: path, as: .docker)
    } catch .permissionDenied where File.isOwn(path) == true {
      return problem(.docker, POSIXError.permissionDenied(path: path).message)
    } catch .notFound where !File.isLink(path) && !stored.isEmpty && (try? Launcher.find("docker")) != nil {
      bytes = Array("{}".utf8)
    } catch {
      if File.isLink(path), let fault = context.obstacle(to: path) { return tell(fault, of: path, as: .docker) }
      return ok(.docker, "docker is not set up")
    }
    guard let configuration = DockerConfiguration(bytes) else {
      return problem(.docker, DockerConfiguration.unreadable(path))
    }
    let before = diagnostics.count
    if configuration.asksUs { checkDockerProgram() }
    for (name, registries) in configuration.others where (try? Launcher.find("docker-credential-" + name)) == nil {
      let setup = ["docker-credential", "setup"] + (registries.isEmpty ? ["--all"] : registries)
      problem(
        .docker,
        "docker cannot find \(quoted("docker-credential-" + name)) in PATH"
          + (registries.isEmpty ? "" : " for " + some(registries)),
        hints: "install the program, or \(credmgr: setup) to let docker ask credmgr")
    }
    let missing = Set(stored).sorted().filter { configuration.helper(of: $0) != DockerConfiguration.own }
    let others = Set(claimed.map(\.host)).sorted().filter { configuration.helper(of: $0) != DockerConfiguration.own }
    if !others.isEmpty || !missing.isEmpty {
      if let fault = context.obstacle(to: path) { return tell(fault, of: path, as: .docker) }
      // Without operands, the command takes only the registries of the providers.
      let registries = missing.isEmpty ? [] : Set(others + missing).sorted()
      note(
        .docker, "docker does not ask credmgr for " + some(Set(others + missing).sorted()),
        hint: "\(credmgr: ["docker-credential", "setup"] + registries)")
    }
    let readable = configuration.readablePasswords
    if !readable.isEmpty {
      note(
        .docker, "\(quoted(path)) contains unencrypted passwords for " + some(readable),
        hint: "\(all: readable.prefix(Self.shown).map { ["docker", "logout", $0] })")
    }
    guard diagnostics.count == before else { return }
    ok(
      .docker,
      configuration.asksUs ? "docker asks credmgr" : "docker does not ask credmgr; no provider has a registry")
  }

  private mutating func checkDockerProgram() {
    let name = "docker-credential-credmgr"
    guard (try? Launcher.find(name)) == nil else { return }
    let places = (context.environment("PATH") ?? "").split(separator: ":").map(String.init)
    let own = places.first { place in context.home.person.map { place.hasPrefix($0 + "/") } ?? false }
    let place = own ?? "/usr/local/bin"
    let sudo = File.exists(place) && !File.isWritable(place) ? ["sudo"] : []
    problem(
      .docker, "docker cannot find \(quoted(name)) in PATH",
      hints: "\(run: sudo + ["ln", "-s", context.program, place + "/" + name])")
  }
}

extension DockerConfiguration {
  static func unreadable(_ path: String) -> Message {
    .usage("\(quoted(path)) is not a JSON object; docker cannot read it either")
      .hint("correct the file, or \(Remedy.settingAside(path))")
  }
}
