import CredmgrText
import CredmgrYAML

extension Notation<[KeyFileField]> {
  static var keyFile: Self {
    Notation(
      .either(.text, .mapping(of: .text, names: nil)),
      read: { decoder, node in
        guard node.entries != nil else { return decoder.text(node).map { [KeyFileField(variable: $0)] } }
        return decoder.entries(of: node)?.compactMap { entry in
          decoder.text(entry.value).map { KeyFileField(variable: entry.key, path: FieldPath($0)) }
        }
      },
      write: { fields in
        if let field = fields.first, field.path == nil { return .text(field.variable) }
        return .mapping(fields.map { ($0.variable, .text($0.path?.text ?? "")) })
      })
  }
}

extension DescriptorDecoder {
  /// Checks that each value in a key file belongs to a variable of the login, and that none chooses a host. Otherwise,
  /// a forged file could send the assertion elsewhere.
  mutating func checkKeyFile(_ descriptor: Descriptor) {
    guard let fields = descriptor.key?.file, let place = root["key"]?["file"]?.place else { return }
    // A key file must not name what credmgr reads, and a token of another issuer is never stored.
    let known = variables.filter { $0.isAtLogin && !$0.isAtExchange }.map(\.name)
    let hosts = [descriptor.hosts, descriptor.git?.hosts, descriptor.docker?.hosts, descriptor.kubectl?.hosts]
      .flatMap { $0 ?? [] }
    let places = descriptor.endpoints.values.flatMap(\.url.hostPlaces) + hosts.flatMap(\.hostPlaces)
    for field in fields {
      if !known.contains(field.variable) {
        add(.unknownTemplateName(field.variable, suggestion: nearMiss(field.variable, among: known)), at: place)
      }
      if places.contains(where: { $0.names.contains(field.variable) }) { add(.keyFileHost(field.variable), at: place) }
    }
  }
}
