import CredmgrDescriptors
import CredmgrText

extension Home {
  /// Returns the name by which the user knows a provider: its title, or the identifier in quotes without a title.
  ///
  /// Strangers may have written the user's own descriptors, so their titles do not replace the identifier.
  package func title(of provider: String) -> String {
    guard let loaded = try? library.load(provider) else { return quoted(provider) }
    let title = loaded.descriptor.title
    if title == provider { return quoted(provider) }
    let isOwn = loaded.path.hasPrefix(userProviders + "/")
    let isUnique = title.lowercased() == provider && shippedLibrary.path(of: provider) == nil
    if !isOwn || isUnique { return title }
    return title.count <= 48 && !title.utf8.contains(UInt8(ascii: "\"")) ? "\(title) (\(provider))" : quoted(provider)
  }
}
