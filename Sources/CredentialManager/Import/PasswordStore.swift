import CredmgrCryptography
import CredmgrPlatform

extension ImportSource {
  /// pass (passwordstore.org): one encrypted file for each entry, below a directory that names a host. The first line
  /// is the secret. Most entries are a person's passwords for web sites, so only those of a provider count.
  static let pass: ImportSource = {
    var source = ImportSource(name: "pass", title: "pass")
    source.needsProvider = true
    source.ask = { places throws(ImportFault) in
      guard let folder = places.path("PASSWORD_STORE_DIR") ?? places.inHome(".password-store"),
        File.exists(folder + "/.gpg-id")
      else { return [] }
      do throws(POSIXError) { try PrivateFile.checkOurs(folder) } catch { throw .file(error) }
      return files(in: folder, endingWith: ".gpg").compactMap { entry($0, in: folder) }
    }
    return source
  }()

  private static let mostFiles = 10_000

  /// Returns the paths of the files below a directory, without this ending.
  static func files(in folder: String, endingWith ending: String) -> [String] {
    var names: [String] = []
    collect(endingWith: ending, in: folder, below: "", depth: 0, &names)
    return names
  }

  private static func collect(
    endingWith ending: String, in folder: String, below prefix: String, depth: Int, _ names: inout [String]
  ) {
    for name in (try? File.names(in: folder)) ?? [] where !name.hasPrefix(".") && names.count < mostFiles {
      let path = folder + "/" + name
      // A link could form a cycle.
      if File.isLink(path) { continue }
      if name.hasSuffix(ending) {
        names.append(prefix + name.dropLast(ending.count))
      } else if depth < 8, File.isDirectory(path) {
        collect(endingWith: ending, in: path, below: prefix + name + "/", depth: depth + 1, &names)
      }
    }
  }

  private static func entry(_ name: String, in folder: String) -> ImportEntry? {
    let parts = name.split(separator: "/").map(String.init)
    let secret = ImportEntry.Held.command(ImportCommand(program: "pass", arguments: ["show", name]))
    let removal = ImportEntry.Removal.command(ImportCommand(program: "pass", arguments: ["rm", "--force", name]))
    // docker-credential-pass encodes the registry's address.
    if parts.count == 3, parts[0] == "docker-credential-helpers",
      let address = (Base64.decode(parts[1]) ?? Base64.decodeURL(parts[1])).flatMap({
        String(validating: $0, as: UTF8.self)
      }), case let host = importedHost(address), !host.isEmpty
    {
      var entry = ImportEntry(
        name, host: host, user: parts[2], kind: .password, use: .docker, held: secret, removal: removal)
      (entry.address, entry.place) = (address, folder)
      return entry
    }
    guard let index = parts.lastIndex(where: { $0.contains(".") && !importedHost($0).isEmpty }) else { return nil }
    let user = index + 1 < parts.count ? parts.last : nil
    var entry = ImportEntry(
      name, host: importedHost(parts[index]), user: user, kind: .password, use: .git, held: secret, removal: removal)
    entry.place = folder
    return entry
  }
}
