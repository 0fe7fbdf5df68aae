import CredmgrCredentialManager
import CredmgrDescriptors
import CredmgrMessages
import CredmgrOAuth
import CredmgrPlatform
import CredmgrStore
import CredmgrText

extension Doctor {
  mutating func checkDescriptors(_ vault: Accounts?) {
    let (library, before) = (context.home.library, diagnostics.count)
    var mistakes: [(key: String, values: [Finding])] = []
    let added = (try? vault?.addedProviders()) ?? []
    let known = context.source.knownProviders()
    let shipped = (library.directories.last ?? "") + "/"
    let others = known.filter { library.path(of: $0)?.hasPrefix(shipped) == false }
    for identifier in known {
      guard let path = library.path(of: identifier) else { continue }
      // The shipped files have been checked. Only a base from another directory can give them a fault.
      guard !path.hasPrefix(shipped) || added.contains(identifier) || extends(path, others) else { continue }
      do throws(ProviderError) {
        let loaded = try library.load(identifier)
        if isOwn(path), isHiding(identifier, loaded) {
          note(
            .descriptors, "\(quoted(path)) replaces the built-in descriptor and does not extend it",
            hint: "\(Remedy.settingAside(path)) to use the built-in descriptor")
        }
      } catch .invalid(let faults) {
        for fault in faults where fault.severity == .error && !(isForeign && fault.isUnreadable) {
          if let folder = fault.closedFolder {
            tellClosed(folder)
            continue
          }
          // Report a fault in a base descriptor as that file's.
          mistakes.note(fault, of: fault.file)
        }
      } catch { problem(.descriptors, error.message.text, hints: "\(credmgr: "check", path)") }
    }
    let hasOwn = mistakes.contains { isOwn($0.key) }
    // Shipped descriptors have no faults of their own, only those of a base.
    for (file, faults) in mistakes where isOwn(file) || !hasOwn { tell(faults, in: file) }
    for provider in added { checkRegistration(provider, vault) }
    if diagnostics.count == before { ok(.descriptors, "all descriptors are valid") }
  }

  private mutating func tell(_ faults: [Finding], in file: String) {
    let (text, items) = listed(faults)
    guard isOwn(file) else { return problem(.descriptors, text, items: items, hints: "\(credmgr: "check", file)") }
    let without: Remedy = "\(Remedy.settingAside(file)) to disable it"
    // An unreadable descriptor has no content to correct.
    if faults.contains(where: \.isUnreadable) {
      return problem(.descriptors, text, items: items, hints: without)
    }
    problem(.descriptors, text, items: items, hints: "\(credmgr: "check", file) and correct the file", without)
  }

  /// Checks that a provider's registration still fits its descriptor.
  private mutating func checkRegistration(_ provider: String, _ vault: Accounts?) {
    do throws(CredentialError) {
      checkCertificate(of: try context.source.permit(.validate, provider).client, at: provider)
    } catch .provider(.invalid) {
      // Already reported.
    } catch .provider(.unknown) {
      let hasAccounts = !((try? vault?.accounts(of: provider)) ?? []).isEmpty
      let logout = hasAccounts ? [["credmgr", "logout", provider, "--all", "--keep-remote"]] : []
      problem(
        .descriptors, "the descriptor of the added provider \(quoted(provider)) is missing",
        hints: "restore it with \(command: "credmgr", "add-provider", "FILE", "--as", provider, "--replace"), "
          + "or \(all: logout + [["credmgr", "remove-provider", provider, "--keep-remote"]]) to remove the provider")
    } catch {
      if case .descriptorChanged = error { return problem(.descriptors, error.message) }
      var set: [String] = []
      if case .provider(.missingVariable(let variable)) = error {
        set = ["--set", "\(variable.name)=\(variable.isSecret ? "@FILE" : "VALUE")"]
      }
      problem(
        .descriptors,
        "\(quoted(provider)) was added with other variables: " + error.message(titled: context.titled).text,
        hints: "\(credmgr: ["add-provider", provider, "--replace"] + set)")
    }
  }

  /// Checks the client's certificate, which only the user can replace.
  private mutating func checkCertificate(of client: Client, at provider: String) {
    let now = context.clock.now()
    guard let end = client.certificateEnd else { return }
    let whose = "the client certificate of \(context.titled(provider))"
    let remedy = Remedy.replacingCertificate(of: provider)
    if let fault = client.certificateFault(at: now) {
      problem(.descriptors, "servers will refuse \(whose): \(fault.sentence)", hints: remedy, status: .loginNeeded)
    } else if end - now <= .days(14) {
      note(.descriptors, "\(whose) expires in \(duration(end - now))", hint: remedy)
    }
  }

  /// Whether a file may extend one of these descriptors, by its text. Decoding it would take a hundred times longer.
  private func extends(_ path: String, _ bases: [String]) -> Bool {
    guard !bases.isEmpty else { return false }
    guard let bytes = try? Home.descriptor(at: path) else { return true }
    guard bytes.firstPlace(of: "extends:".utf8) != nil else { return false }
    return bases.contains { bytes.firstPlace(of: $0.utf8) != nil }
  }

  private func isOwn(_ path: String) -> Bool { path.hasPrefix(context.home.userProviders + "/") }

  private func isHiding(_ identifier: String, _ loaded: DescriptorLibrary.Loaded) -> Bool {
    context.home.systemProviders.contains { folder in
      let other = folder + "/" + identifier + ".yaml"
      return File.exists(other) && !loaded.bases.contains(other)
    }
  }

  /// Returns a sentence about the findings in one file, and a list of several findings.
  private func listed(_ findings: [Finding]) -> (sentence: String, items: [String]) {
    func words(_ finding: Finding, in name: String) -> String {
      let place = finding.place
      return finding.isUnreadable ? finding.sentence : "\(name)\(place.line):\(place.column): \(finding.sentence)"
    }
    // Each descriptor that extends a file has its faults.
    let all = findings.reduce(into: [String]()) { all, finding in
      let text = words(finding, in: "")
      if !all.contains(text) { all.append(text) }
    }
    guard all.count > 1, let file = findings.first?.file else {
      return (findings.map { words($0, in: $0.place.source.name + ":") }.first ?? "", [])
    }
    let shown = Array(all.prefix(Self.shown))
    let rest = all.count - shown.count
    return ("\(quoted(file)) has \(all.count) errors", shown + (rest > 0 ? ["and \(rest) more"] : []))
  }

  mutating func checkHosts(_ claims: [HostClaim]) {
    let before = diagnostics.count
    for helper in HostClaim.Helper.allCases {
      let hosts = claims.filter { $0.helper == helper }
      for (index, host) in hosts.enumerated() {
        guard let first = hosts[..<index].first(where: { $0.host == host.host }) else { continue }
        let providers = "\(quoted(first.provider)) and \(quoted(host.provider))"
        note(
          .hosts,
          "\(quoted(host.host)) belongs to \(providers); a user name or a rule selects one, else the first account"
        )
      }
    }
    guard diagnostics.count == before else { return }
    switch claims.count {
    case 0: ok(.hosts, "no hosts for git or docker")
    case 1: ok(.hosts, "1 host for git or docker")
    default: ok(.hosts, "\(claims.count) hosts for git and docker, none shared by two providers")
    }
  }

  mutating func checkRules(_ vault: Accounts?) {
    let file = context.home.accountRules
    let without: Remedy = "\(Remedy.settingAside(file)) to disable all rules"
    let rules: AccountRules
    do throws(CredentialError) { rules = try context.source.accountRules() } catch .malformedRules(let findings) {
      let (text, items) = listed(findings)
      return problem(.rules, text, items: items, hints: "correct the file, or \(without)")
    } catch {
      if isForeign { return }
      if let folder = File.closedFolder(above: file) { return tellClosed(folder) }
      return problem(.rules, error.message.text, hints: without)
    }
    let before = diagnostics.count
    // An added provider without a descriptor is reported elsewhere.
    let known = context.source.knownProviders() + ((try? vault?.addedProviders()) ?? [])
    for rule in rules.rules {
      let path = quoted(rules.path)
      if !known.contains(rule.provider) {
        let (line, near) = (rule.providerPlace.line, nearMiss(rule.provider, among: known))
        problem(
          .rules,
          "line \(line) of \(path) names the unknown provider \(quoted(rule.provider))" + didYouMean(near),
          hints: near.map { "\(run: "sed", "-i.old", "\(line)s/\(rule.provider)/\($0)/", rules.path)" }
            // The command takes a lock in the directory of the vault.
            ?? (vault == nil
              ? "correct the file, or \(without)"
              : "\(credmgr: ["use", rule.provider, rule.account, "--remove"] + rule.options)"))
      } else if let vault, (try? vault.account(AccountID(rule.provider, rule.account)) == nil) ?? false {
        problem(
          .rules, "line \(rule.place.line) of \(path) names \(quoted(rule.account)), which is not logged in",
          hints: "\(credmgr: "login", rule.provider, "--account", rule.account)", status: .loginNeeded)
      } else if let folder = rule.folder, File.exists(folder), !File.isDirectory(folder) {
        problem(
          .rules, "line \(rule.place.line) of \(path) never applies: \(quoted(folder)) is a file, not a directory",
          hints: "\(credmgr: ["use", rule.provider, rule.account, "--remove"] + rule.options)")
      } else if let hosts = try? context.source.hostsElsewhere(rule.remote, of: rule.provider) {
        problem(
          .rules,
          "line \(rule.place.line) of \(path) never applies to git: the git hosts of \(quoted(rule.provider)) are "
            + hosts.joined(separator: ", "),
          hints: "\(credmgr: ["use", rule.provider, rule.account, "--remove"] + rule.options)")
      } else if let first = rules.cover(of: rule) {
        let removal = ["credmgr", "use", rule.provider, rule.account, "--remove"] + rule.options
        // The removal command would remove both copies of a duplicate rule.
        let isTwice = first.account == rule.account && first.options == rule.options
        problem(
          .rules, "line \(rule.place.line) of \(path) never applies, because line \(first.place.line) covers it",
          hints: "\(all: [removal] + (isTwice ? [removal.filter { $0 != "--remove" }] : []))")
      }
    }
    if diagnostics.count == before, !rules.rules.isEmpty {
      ok(.rules, rules.rules.count == 1 ? "1 rule" : "\(rules.rules.count) rules")
    }
  }
}
