import Glibc
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

extension Doctor {
  mutating func checkHome() {
    if let fault = context.homeFault { return problem(.home, fault.message) }
    let (home, before) = (context.home, diagnostics.count)
    var foreign: [String] = []
    if File.exists(home.vault) || File.isLink(home.vault) {
      check(&foreign) { () throws(POSIXError) in try PrivateFile.checkDirectory(home.vault) }
    } else {
      // If another user owns a parent directory, the check below reports whether files can be created.
      do throws(POSIXError) {
        try PrivateFile.checkParents(of: home.vault)
      } catch { if case .writableByOthers = error { problem(.home, error.message) } }
    }
    for file in [home.configuration, home.userProviders, home.accountRules] + ownDescriptors where File.exists(file) {
      check(&foreign) { () throws(POSIXError) in try PrivateFile.checkUnchangeable(file) }
    }
    if !foreign.isEmpty {
      isForeign = true
      problem(
        .home, "\(some(foreign)) \(foreign.count == 1 ? "belongs" : "belong") to another user",
        hints: context.ownership(foreign))
    }
    let closed = File.closedFolder(above: Path.joining(home.userProviders, "x"))
    if let closed, File.isOwn(closed) == true { tellClosed(closed) }
    for folder in [home.configuration, home.userProviders] where File.exists(folder) {
      if !File.isDirectory(folder) {
        problem(.home, POSIXError.notDirectory(path: folder).message)
      } else if !File.isReadable(folder), File.isOwn(folder) == true {
        tellClosed(folder)
      }
    }
    for path in [home.vault, home.configuration, home.vaultLocation.file] where diagnostics.count == before {
      checkWritable(path)
    }
    guard diagnostics.count == before else { return }
    ok(
      .home,
      File.exists(home.vault)
        ? "only you can use \"\(home.configuration)\" and \"\(home.vault)\"" : "\"\(home.vault)\" does not exist yet")
  }

  mutating func tellClosed(_ folder: String) { problem(.home, POSIXError.permissionDenied(path: folder).message) }

  private mutating func check(_ foreign: inout [String], _ body: () throws(POSIXError) -> Void) {
    do throws(POSIXError) { try body() } catch .otherOwner(let place) {
      if !foreign.contains(place) { foreign.append(place) }
    } catch { problem(.home, error.message) }
  }

  private mutating func checkWritable(_ path: String) {
    // A missing path will be created in the nearest existing parent.
    let place = File.existing(path)
    if path == context.home.vaultLocation.file {
      guard place == path else { return }
    } else if !File.isDirectory(place) {
      return problem(.home, POSIXError.notDirectory(path: place).message)
    }
    if File.isOnReadOnlyFileSystem(place) { return problem(.home, POSIXError.readOnlyFileSystem(path: path).message) }
    guard File.isWritable(place) else {
      isForeign = File.isOwn(place) != true
      return problem(.home, POSIXError.permissionDenied(path: place).message)
    }
    if let free = File.freeBytes(at: place), free < Self.neededBytes {
      problem(.home, POSIXError.system(call: "write", path: place, code: ENOSPC).message)
    }
  }

  /// The bytes written for the smallest change of a vault, including its journal.
  private static let neededBytes: UInt64 = 128 << 10

  private var ownDescriptors: [String] {
    let folder = context.home.userProviders
    return ((try? File.names(in: folder)) ?? []).filter { $0.hasSuffix(".yaml") }.map { Path.joining(folder, $0) }
  }
}
