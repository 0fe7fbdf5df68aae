import CredmgrCredentialManager
import CredmgrPlatform

/// The hosts for which an installed git or docker does not ask credmgr yet.
struct UnsetHelpers {
  let git: [String]
  let docker: [String]

  /// Looks up the hosts of one provider, or of all added ones.
  init(of provider: String?, _ context: Context) throws(CommandError) {
    let claims = try manager(context.source.hostClaims()).filter { provider == nil || $0.provider == provider }
    func hosts(_ helper: HostClaim.Helper, of program: String, unless isSetUp: (String) -> Bool) -> [String] {
      let hosts = Set(claims.filter { $0.helper == helper }.map(\.host)).sorted()
      guard !hosts.isEmpty, (try? Launcher.find(program)) != nil else { return [] }
      return hosts.filter { !isSetUp($0) }
    }
    git = hosts(.git, of: "git") { host in
      let told = GitHelperEntry.told(GitHelperEntry.all() ?? [], at: host)
      return !told.isEmpty && told.allSatisfy(\.isOurs)
    }
    let bytes = DockerConfiguration.path(context).flatMap { try? File.read($0, limit: 1 << 20) }
    let configuration = bytes.flatMap { DockerConfiguration($0) }
    docker = hosts(.docker, of: "docker") { configuration?.helper(of: $0) == DockerConfiguration.own }
  }
}
