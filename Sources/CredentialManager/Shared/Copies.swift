import CredmgrDescriptors
import CredmgrOAuth
import CredmgrText

extension CredentialSource {
  /// Returns the copy of a credential that this machine keeps, without the secrets that only a refresh needs. It is
  /// refreshed up to 10 % of its life earlier, but at most 5 minutes, by chance. Its moments are those of this
  /// machine's clock.
  func copy(
    of credential: Credential, from vault: String, for descriptor: Descriptor?
  ) throws(CredentialError) -> Credential {
    let offset = try joined(vault).shared?.clockOffset ?? .zero
    let life = credential.expiresAt.map { max($0 - credential.obtainedAt, .zero) } ?? .zero
    let longest = min(life / 10, .minutes(5))
    let chance = random.bytes(2).reduce(0) { $0 << 8 | Int($1) }
    var copy = credential.shifted(by: .zero - offset)
      .copied(from: vault, spread: .seconds(longest.wholeSeconds * Int64(chance) / 65536))
    if let descriptor, credential.grant.traits.typed == nil {
      let needed = descriptor.namesInRequests
      copy.variables = copy.variables.filter { name, _ in
        descriptor.variable(name)?.isSecret != true || needed.contains(name)
      }
    }
    return copy
  }

  /// The place of a token of another issuer is a file or a variable of one machine. Taken from a shared vault, it would
  /// let the other members choose what this machine reads and sends.
  func requireShareable(_ variables: [String: String], of descriptor: Descriptor) throws(CredentialError) {
    for variable in descriptor.variables where variable.isAtExchange && variables[variable.name] != nil {
      throw .notShareable(provider: descriptor.identifier, variable: variable.name)
    }
  }
}

extension Descriptor {
  /// The names whose values a use of a token needs: for requests with it, about it and to revoke it, and for programs.
  fileprivate var namesInRequests: Set<String> {
    var templates = [headerStyle.path, headerStyle.username, headerStyle.password].compactMap(\.self)
    templates += (headerStyle.parameters + extraHeaders).map(\.value) + extraQuery.compactMap(\.value)
    templates += hosts + (git?.hosts ?? []) + (docker?.hosts ?? []) + (kubectl?.hosts ?? [])
    templates += [git?.username, docker?.username].compactMap(\.self)
    for (kind, endpoint) in endpoints where !kind.leg.issuesCredentials && kind != .registration {
      templates += [endpoint.url.template] + endpoint.headers.map(\.value) + endpoint.parameters.compactMap(\.value)
    }
    // A signature may use any value.
    let signed = aws4 == nil ? [] : variables.map(\.name)
    return Set(templates.flatMap(\.names) + environment.keys + signed)
  }
}
