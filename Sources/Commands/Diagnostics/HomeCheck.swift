import CredentialManager
import Platform
import Text

extension Doctor {
  mutating func checkHome() {
    if let fault = context.homeFault { return problem(.home, fault.message) }
    let (home, before) = (context.home, diagnostics.count)
    var foreign: [String] = []
    if File.exists(home.vault) || File.isLink(home.vault) {
      check(home.vault, &foreign) { () throws(POSIXError) in try PrivateFile.checkDirectory(home.vault) }
    } else {
      // Where the folders above are another's, it is said below whether anything can be made there.
      do throws(POSIXError) {
        try PrivateFile.checkParents(of: home.vault)
      } catch .writableByOthers(let folder, let mode) {
        tell(.writableByOthers(path: folder, mode: mode), at: folder)
      } catch {}
    }
    let files = [home.configuration, home.userProviders, home.accountRules] + ownDescriptors
    for file in files where File.exists(file) {
      check(file, &foreign) { () throws(POSIXError) in try PrivateFile.checkUnchangeable(file) }
    }
    if !foreign.isEmpty {
      isForeign = true
      problem(
        .home, "\(some(foreign)) \(foreign.count == 1 ? "belongs" : "belong") to another user", ownership(foreign))
    }
    let closed = File.closedFolder(above: Path.joining(home.userProviders, "x"))
    if let closed, File.isOwn(closed) == true { tellClosed(closed) }
    for folder in [home.configuration, home.userProviders] where File.exists(folder) {
      if !File.isDirectory(folder) {
        tellBlocked(folder)
      } else if !File.isReadable(folder), File.isOwn(folder) == true {
        tellClosed(folder)
      }
    }
    // What is not there yet is made in the first folder above it that is.
    for path in [home.vault, home.configuration, home.vaultLocation.file] where diagnostics.count == before {
      checkWritable(path)
    }
    guard diagnostics.count == before else { return }
    ok(
      .home,
      File.exists(home.vault)
        ? "\"\(home.configuration)\" and \"\(home.vault)\" are yours alone" : "\"\(home.vault)\" is not there yet")
  }

  private mutating func check(
    _ path: String, _ foreign: inout [String], _ body: () throws(POSIXError) -> Void
  ) {
    do throws(POSIXError) {
      try body()
    } catch .otherOwner(let place) {
      // A folder above is not to be changed for it: then it is the home that is the wrong one.
      if !foreign.contains(place) { foreign.append(place) }
    } catch .symbolicLink(let link) {
      tellLink(link)
    } catch {
      switch error {
      case .readableByOthers(let place, _), .writableByOthers(let place, _): tell(error, at: place)
      default: tell(error, at: nil)
      }
    }
  }

  /// Something of ours that others can read or write, or that is no folder.
  private mutating func tell(_ error: POSIXError, at place: String?) {
    let needsRoot = place.map { File.isOwn($0) == false } ?? false
    problem(.home, error.message.with(hints: error.remedies(needsRoot: needsRoot && !isRoot)))
  }

  /// A link in the place of the vault. Only what it leads to can be put there that is the same kind of thing.
  mutating func tellLink(_ link: String) {
    var target = Path.resolved(link)
    if let found = target, File.isOwn(found) != true || File.isDirectory(found) != (link == context.home.vault) {
      target = nil
    }
    problem(.home, POSIXError.symbolicLink(path: link).message.with(hints: [.replacingLink(link, by: target)]))
  }

  private mutating func tellBlocked(_ path: String, _ remedy: Remedy? = nil) {
    problem(.home, "\(quoted(path)) is not a folder", remedy ?? .settingAside(path))
  }

  private mutating func checkWritable(_ path: String) {
    var place = path
    while !File.exists(place), let above = Path.directory(of: place) { place = above }
    // The first is there in any case, or its folder is looked at before.
    let isFile = path == context.home.vaultLocation.file
    if isFile, place != path { return }
    if !isFile, !File.isDirectory(place) {
      let isOwnHome = place == context.environment("CREDMGR_HOME")
      return tellBlocked(place, isOwnHome ? "\(run: "unset", "CREDMGR_HOME")" : nil)
    }
    if File.isOnReadOnlyFileSystem(place) {
      return problem(.home, POSIXError.readOnlyFileSystem(path: path).message.with(hints: [elsewhere]))
    }
    guard File.isWritable(place) else {
      let (isOwn, isItself) = (File.isOwn(place) == true, place == path)
      isForeign = !isOwn
      let reason =
        isOwn
        ? (isItself ? "its mode" : "the mode of \(quoted(place))") + " does not let you"
        : (isItself ? "it" : quoted(place)) + " is not yours to write"
      return problem(
        .home, "\(quoted(path)) cannot be \(isItself ? "written" : "made"): \(reason)",
        isOwn ? .opening(place) : ownership([place]))
    }
    if let free = File.freeBytes(at: place), free < Self.neededBytes {
      problem(
        .home, "there is no room on the disk of \(quoted(place))",
        "make room there; \(command: "df", "-h", place) shows how much there is")
    }
  }

  /// What the smallest change of a vault writes, its journal included.
  private static let neededBytes: UInt64 = 128 << 10

  /// Gives us files of another user: they get another owner where they are in a home of ours; else it is the wrong
  /// home.
  private func ownership(_ paths: [String]) -> Remedy {
    let own = [context.environment("CREDMGR_HOME"), context.home.person].compactMap { $0 }
    let isOurs = paths.allSatisfy { path in own.contains { path.hasPrefix($0 + "/") && File.isOwn($0) == true } }
    guard isOurs else { return elsewhere }
    let tops = paths.filter { path in !paths.contains { path.hasPrefix($0 + "/") } }
    return "\(run: sudo(!isRoot) + ["chown", "-R", UserEntry.ownName] + tops)"
  }

  /// A home that we can write.
  private var elsewhere: Remedy {
    if value("CREDMGR_HOME") != nil, let person = context.home.person, isUsable(person) {
      return "\(run: "unset", "CREDMGR_HOME")"
    }
    if let own = UserEntry.current(elsewhere: true)?.home, own != context.home.person, isUsable(own) {
      return "\(export: "HOME", own)"
    }
    return .anotherHome
  }

  private func isUsable(_ home: String) -> Bool { File.isOwn(home) == true && File.isWritable(home) }

  private var ownDescriptors: [String] {
    let folder = context.home.userProviders
    return ((try? File.names(in: folder)) ?? []).filter { $0.hasSuffix(".yaml") }.map { Path.joining(folder, $0) }
  }
}
