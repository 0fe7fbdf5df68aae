import CredmgrCredentialManager
import CredmgrDescriptors
import CredmgrMessages
import CredmgrOAuth
import CredmgrPlatform
import CredmgrText

/// The values of an account by name: the token, the values that the user typed at the login, the values that answers
/// contained, and the variables of the provider that are not secret.
struct CredentialFields {
  static let token = "access_token"

  private let account: Account
  private let ofProvider: [String: String]
  let environment: [String: [String]]  // The descriptor's variables, by field.
  /// Whether the names in the descriptor may become any variable. A stranger's names could change how a program runs.
  private let choosesVariables: Bool

  /// Asks the agreement, because the descriptor says which variables are secret and which program reads the token.
  /// Without a readable descriptor, the account has only its own values.
  init(of account: Account, by route: Route, _ context: Context) throws(CommandError) {
    self.account = account
    let permit: Permit?
    do throws(CredentialError) {
      permit = try context.source.permit(route, account.provider, variables: account.credential.variables)
    } catch .provider { permit = nil } catch { throw CommandError(error) }
    let client = permit?.client
    choosesVariables = permit?.isShipped == true
    let registered = (try? context.source.accountsIfAny()?.registration(of: account.provider))?.variables ?? [:]
    let variables = (client?.descriptor.variables ?? []).filter { !$0.isSecret }
    ofProvider = variables.reduce(into: [:]) { $0[$1.name] = registered[$1.name] ?? $1.defaultValue }
    environment = client?.descriptor.environment ?? [:]
  }

  /// The names of the values that belong to this account alone.
  var names: [String] {
    [Self.token]
      + Set(account.credential.variables.keys).union(account.credential.kept.keys)
      .union(account.credential.keptSecrets.keys).sorted()
  }

  subscript(name: String) -> [UInt8]? {
    let credential = account.credential
    if name == Self.token { return credential.accessToken.revealBytes() }
    if let token = credential.keptSecrets[name] { return token.revealBytes() }
    return (credential.variables[name] ?? credential.kept[name] ?? ofProvider[name]).map { Array($0.utf8) }
  }

  func value(_ name: String) throws(CommandError) -> [UInt8] {
    if let value = self[name] { return value }
    throw .usage(
      "the account \(quoted(account.name)) has no field \(quoted(name)); it has \(names.joined(separator: ", "))")
  }

  /// Returns each variable of the environment with its field: those of the descriptor, or else `ID_TOKEN` and one for
  /// each value that the user typed.
  func assignments() -> [(variable: String, field: String)] {
    if !environment.isEmpty {
      let pairs = environment.flatMap { field, names in names.map { (variable: $0, field: field) } }
      return pairs.filter { self[$0.field] != nil }.sorted { $0.variable < $1.variable }
    }
    let typed = account.credential.grant.traits.typed == nil ? [] : account.credential.variables.keys.sorted()
    return ([Self.token] + typed).compactMap { field in variable(of: field).map { ($0, field) } }
  }

  /// Returns the variable of one field; `nil` if the user has to name it.
  func variable(of field: String) -> String? {
    if let name = environment[field]?.first { return name }
    let word = field == Self.token ? "token" : field
    let text = account.provider + "_" + word
    let name = String(text.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
    guard choosesVariables || Descriptor.isVariable("X" + name) else { return nil }
    return name.first?.isNumber == true ? "_" + name : name
  }
}
