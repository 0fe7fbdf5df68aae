import Testing

@testable import CredmgrDescriptors

/// Tests which parts of a descriptor may change without consent.
struct AgreedValueTests {
  /// The keys that say so in the table, each with the keys around it.
  private static func keys(_ rule: ChangeRule, _ table: TableDescription, _ path: String = "") -> Set<String> {
    table.keys.reduce(into: []) { found, key in
      let name = path + key.name
      if key.change == rule { found.insert(name) }
      if key.change == .needsConsent, let inner = key.inner { found.formUnion(keys(rule, inner, name + ".")) }
    }
  }

  private static func all(_ rule: ChangeRule) -> Set<String> {
    // All legs except the page have the same keys, and so has the `response` of all legs.
    keys(rule, Descriptor.keys.description).filter { key in
      !["endpoints.", "response."].contains(where: key.hasPrefix) || key.hasPrefix("endpoints.token.")
    }
  }

  /// A new key needs a reason here before its value may change without consent.
  @Test func otherKeysNeedConsent() {
    let field = "endpoints.token.response.fields."
    #expect(
      Self.all(.harmless) == [
        "title", "aliases", "verified", "group", "scope", "scope_sets", "authorization_details", "expiry", "account",
        "subject",
        "variables.format",
        "variables.pattern",
        "variables.choices",
        "variables.help", "variables.optional", "client.metadata_document", "client.register",
        "client.id_pattern", "client.secret_pattern", "client.other_shapes", "key.page", "key.pattern", "key.lifetime",
        "endpoints.token.response.format",
        field + "expires_in", field + "expires_at", field + "refresh_token_expires_in",
        field + "refresh_token_expires_at", field + "scope", field + "interval", field + "client_secret_expires_at",
        field + "authorization_details",
      ])
    #expect(
      Self.all(.compared) == [
        "provider", "profile", "grant", "extra_headers", "redirect", "state", "pkce", "issuer", "iss", "nonce",
        "device", "token_binding", "hosts", "git",
        "docker", "kubectl", "variables.default", "variables.secret", "header_style.scheme",
        "header_style.header", "header_style.query", "header_style.parameters", "client.authentication", "client.id",
        "assertion.lifetime", "oauth1.signature_method", "oauth1.callback_confirmed", "oauth1.verifier",
        "endpoints.token.url", "endpoints.token.send", "endpoints.token.authentication",
        "endpoints.token.response.within", "endpoints.token.response.keep.pattern", field + "access_token",
        field + "refresh_token", field + "id_token", field + "code", field + "state", field + "iss",
        field + "device_code", field + "auth_req_id", field + "oauth_token", field + "oauth_token_secret",
        field + "oauth_session_handle",
      ])
  }

  /// The same descriptor in other words has the same values, so credmgr does not ask about them.
  @Test(arguments: PackageFiles.shipped) func agreedValuesMatchTheirMeaning(_ identifier: String) throws {
    let descriptor = try ShippedDescriptorTests.load(identifier)
    let other = try DescriptorLibrary(directories: []) { _ in nil }
      .load(Array(descriptor.yaml.utf8), name: identifier + ".yaml").descriptor
    #expect(other.agreedValues == descriptor.agreedValues)
  }
}

extension KeyDescription {
  fileprivate var inner: TableDescription? {
    switch shape {
    case .mapping(of: let element, _), .either(_, .mapping(of: let element, _)): element.table
    default: shape.table
    }
  }
}
