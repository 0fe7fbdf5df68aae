import CredmgrHTTP
import CredmgrText

/// The position of a placeholder in the host of a URL or of an entry of `hosts`, which decides on its possible values.
package enum HostPlace: Sendable, Equatable {
  case base  // At the beginning of a URL, or the whole entry: a URL, whose host counts, or a host.
  case host  // The whole host, with an optional port.
  case piece  // One or more labels of a host, without a port.
  case port
  case subdomains  // In an entry that begins with `*.`.

  package func takes(_ value: String) -> Bool {
    switch self {
    case .base: Self.authority(ofURL: value) != nil || Self.isHost(value)
    case .host: Self.isHost(value)
    case .piece: Self.areLabels(value)
    case .port: UInt16(value).map { $0 > 0 } ?? false
    // One label would allow everything that ends in `.com`.
    case .subdomains: Self.areLabels(value) && value.contains(".")
    }
  }

  /// The host of a base URL, with its port unless that is the default.
  fileprivate static func authority(ofURL text: String) -> String? {
    guard let uri = try? URI(parsing: text), uri.isSecure || (uri.scheme == "http" && uri.isLoopback),
      uri.query == nil, uri.fragment == nil, let host = uri.host
    else { return nil }
    let isOrdinary = uri.port == nil || uri.port == (uri.isSecure ? 443 : 80)
    return isOrdinary ? host : host + ":" + String(uri.effectivePort ?? 0)
  }

  fileprivate static func isHost(_ value: String) -> Bool {
    URLTemplate.isAuthority(value) && (try? URI(parsing: "https://" + value)) != nil
  }

  private static func areLabels(_ value: String) -> Bool {
    value.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
      guard let first = label.utf8.first, let last = label.utf8.last else { return false }
      return first.isLetterOrDigit && last.isLetterOrDigit
        && label.utf8.allSatisfy { $0.isLetterOrDigit || $0 == UInt8(ascii: "-") }
    }
  }

  fileprivate static func all(in template: Template, isEntry: Bool) -> [(place: HostPlace, names: [String])] {
    var text = isEntry && template.parts.count > 1 ? "https://" : ""
    var found: [(place: HostPlace, names: [String])] = []
    for (index, part) in template.parts.enumerated() {
      switch part {
      case .literal(let piece): text += piece
      case .place(let terms):
        let position = URLTemplate.position(after: text)
        if position == .behindAuthority { return found }
        var next: Character?
        switch template.parts.dropFirst(index + 1).first {
        case .literal(let piece)?: next = piece.first
        case .place?: next = "{"
        case nil: break
        }
        let place: HostPlace =
          if position == .beginning { .base } else if text.hasPrefix("https://*.") {
            .subdomains
          } else if text.hasSuffix(":") {
            .port
          } else if text.hasSuffix("://"), next.map({ "/?#".contains($0) }) ?? true { .host } else { .piece }
        found.append((place, terms.flatMap(\.names)))
        text += position == .beginning ? "https://sample.example" : place == .port ? "1" : "sample"
      }
    }
    return found
  }
}

extension URLTemplate {
  /// The placeholders in the host with their names.
  package var hostPlaces: [(place: HostPlace, names: [String])] { HostPlace.all(in: template, isEntry: false) }
}

/// Templates as entries of `hosts`, whose values cannot change the author's choice of a host.
extension Template {
  package var hostPlaces: [(place: HostPlace, names: [String])] { HostPlace.all(in: self, isEntry: true) }

  /// The host in lower case, with `*.` and the port if the entry has them.
  package func host(_ values: (String) -> String?) throws(URLTemplateError) -> String {
    let places = hostPlaces.map(\.place)
    var text = ""
    var index = 0
    for part in parts {
      switch part {
      case .literal(let piece): text += piece
      case .place(let terms):
        let value: String
        do { value = try Self.value(of: terms, values) } catch { throw .template(error) }
        guard index < places.count else { throw .url(self.text) }
        let isLast = index == places.count - 1
        // A variable at the end may include a port.
        let place = places[index] == .piece && isLast && parts.last == part ? .host : places[index]
        guard place.takes(value) else { throw .authority(value) }
        text += place == .base ? HostPlace.authority(ofURL: value) ?? value : value
        index += 1
      }
    }
    let host = text.hasPrefix("*.") ? String(text.dropFirst(2)) : text
    guard (try? URI(parsing: "https://" + host))?.path == "" else { throw .url(self.text) }
    return text.lowercased()
  }
}

extension Descriptor {
  /// Whether a response may supply this value for a kept name: it matches every `pattern` and fits every placeholder in
  /// a host. It can be several labels of a host only with a `pattern`.
  package func accepts(_ value: String, keptAs name: String) -> Bool {
    let patterns = patterns(ofKept: name)
    return patterns.allSatisfy { Pattern($0)?.matches(value) == true }
      && (endpoints.values.flatMap(\.url.hostPlaces) + hosts.flatMap(\.hostPlaces)).allSatisfy { place, names in
        !names.contains(name)
          || (place.takes(value) && (place != .piece || !patterns.isEmpty || !value.contains(".")))
      }
  }

  /// The patterns of a kept name, which together limit the values that a response may put into a URL or a host.
  package func patterns(ofKept name: String) -> [String] {
    Set(endpoints.values.flatMap(\.response.keep).filter { $0.name == name }.compactMap(\.pattern)).sorted()
  }
}
