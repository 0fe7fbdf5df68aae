import CredentialManager
import Descriptors
import Platform
import Store
import Text

extension Doctor {
  mutating func checkDescriptors(_ vault: Accounts?) {
    let (library, before) = (context.home.library, diagnostics.count)
    var mistakes: [(key: String, values: [Finding])] = []
    for identifier in context.source.knownProviders() {
      guard let path = library.path(of: identifier) else { continue }
      do throws(ProviderError) {
        let loaded = try library.load(identifier)
        if isOwn(path), isHiding(identifier, loaded) {
          note(
            .descriptors, "\(quoted(path)) stands in the place of the shipped one, and takes nothing over from it",
            hint: "\(Remedy.settingAside(path)) to take the shipped one")
        }
      } catch .invalid(let faults) {
        for fault in faults where fault.severity == .error && !(isForeign && fault.isUnreadable) {
          if let folder = fault.closedFolder {
            tellClosed(folder)
            continue
          }
          // The mistakes of what a descriptor extends are that one's.
          mistakes.note(fault, of: fault.file)
        }
      } catch { problem(.descriptors, error.message.text, hints: "\(credmgr: "check", path)") }
    }
    let hasOwn = mistakes.contains { isOwn($0.key) }
    // What came with the program has none, but through what it extends.
    for (file, faults) in mistakes where isOwn(file) || !hasOwn { tell(faults, in: file) }
    for provider in (try? vault?.addedProviders()) ?? [] { checkRegistration(provider, vault) }
    if diagnostics.count == before { ok(.descriptors, "all of them can be read") }
  }

  private mutating func tell(_ faults: [Finding], in file: String) {
    let text = listed(faults)
    guard isOwn(file) else { return problem(.descriptors, text, hints: "\(credmgr: "check", file)") }
    let without: Remedy = "to do without it, \(Remedy.settingAside(file))"
    // Where it cannot be read there is nothing to correct in it.
    if faults.contains(where: \.isUnreadable) { return problem(.descriptors, text, hints: without) }
    problem(.descriptors, text, hints: "\(credmgr: "check", file), and correct it", without)
  }

  /// Whether what was given when a provider was added still fits its descriptor.
  private mutating func checkRegistration(_ provider: String, _ vault: Accounts?) {
    do throws(CredentialError) { _ = try context.source.permit(.validate, provider) } catch .provider(.invalid) {
      // Told already.
    } catch .provider(.unknown) {
      let hasAccounts = !((try? vault?.accounts(of: provider)) ?? []).isEmpty
      let logout = hasAccounts ? [["credmgr", "logout", provider, "--all", "--keep-remote"]] : []
      problem(
        .descriptors, "the provider \(quoted(provider)) was added, and its descriptor is gone",
        hints: "put it back with \(command: "credmgr", "add-provider", "FILE", "--as", provider, "--replace"), "
          + "or \(all: logout + [["credmgr", "remove-provider", provider, "--keep-remote"]]) to forget the provider")
    } catch {
      if case .descriptorChanged = error { return problem(.descriptors, error.message) }
      var set: [String] = []
      if case .provider(.missingVariable(let variable)) = error {
        set = ["--set", "\(variable.name)=\(variable.isSecret ? "@FILE" : "VALUE")"]
      }
      problem(
        .descriptors, "\(quoted(provider)) was added with other variables: " + error.message.text,
        hints: "\(credmgr: ["add-provider", provider, "--replace"] + set)")
    }
  }

  private func isOwn(_ path: String) -> Bool { path.hasPrefix(context.home.userProviders + "/") }

  private func isHiding(_ identifier: String, _ loaded: DescriptorLibrary.Loaded) -> Bool {
    context.home.systemProviders.contains { folder in
      let other = folder + "/" + identifier + ".yaml"
      return File.exists(other) && !loaded.bases.contains(other)
    }
  }

  private func listed(_ findings: [Finding]) -> String {
    let shown = findings.prefix(5).map { finding in
      let place = finding.place
      return finding.isUnreadable
        ? finding.sentence : "\(place.source.name):\(place.line):\(place.column): \(finding.sentence)"
    }
    let rest = findings.count - shown.count
    return shown.joined(separator: "; ") + (rest > 0 ? "; and \(rest) more" : "")
  }

  mutating func checkHosts(_ claims: [HostClaim]) {
    let before = diagnostics.count
    for helper in HostClaim.Helper.allCases {
      let hosts = claims.filter { $0.helper == helper }
      for (index, host) in hosts.enumerated() {
        guard let first = hosts[..<index].first(where: { $0.host == host.host }) else { continue }
        let providers = "\(quoted(first.provider)) and of \(quoted(host.provider))"
        note(
          .hosts,
          "\(quoted(host.host)) is of \(providers); a user name or a rule chooses, else the first one with an account"
        )
      }
    }
    guard diagnostics.count == before else { return }
    switch claims.count {
    case 0: ok(.hosts, "no provider claims any for git or docker")
    case 1: ok(.hosts, "one is claimed for git or docker")
    default: ok(.hosts, "\(claims.count) are claimed for git and docker, each once")
    }
  }

  mutating func checkRules(_ vault: Accounts?) {
    let file = context.home.accountRules
    let without: Remedy = "\(Remedy.settingAside(file)) to do without rules"
    let rules: AccountRules
    do throws(CredentialError) { rules = try context.source.accountRules() } catch .malformedRules(let findings) {
      return problem(.rules, listed(findings), hints: "correct it, or \(without)")
    } catch {
      if isForeign { return }
      if let folder = File.closedFolder(above: file) { return tellClosed(folder) }
      return problem(.rules, error.message.text, hints: without)
    }
    let before = diagnostics.count
    // One that was added and is gone is told where it is.
    let known = context.source.knownProviders() + ((try? vault?.addedProviders()) ?? [])
    for rule in rules.rules {
      let path = quoted(rules.path)
      if !known.contains(rule.provider) {
        let (line, near) = (rule.providerPlace.line, nearMiss(rule.provider, among: known))
        problem(
          .rules,
          "line \(line) of \(path) names the provider \(quoted(rule.provider)), and there is none" + didYouMean(near),
          hints: near.map { "\(run: "sed", "-i.old", "\(line)s/\(rule.provider)/\($0)/", rules.path)" }
            ?? "correct it, or \(without)")
      } else if let vault, (try? vault.account(AccountID(rule.provider, rule.account)) == nil) ?? false {
        problem(
          .rules, "line \(rule.place.line) of \(path) names \(quoted(rule.account)), who is not logged in",
          hints: "\(credmgr: "login", rule.provider, "--account", rule.account)", status: .loginNeeded)
      } else if let hosts = try? context.source.hostsElsewhere(rule.remote, of: rule.provider) {
        problem(
          .rules,
          "line \(rule.place.line) of \(path) never counts for git: the git hosts of \(quoted(rule.provider)) are "
            + hosts.joined(separator: ", "),
          hints: "\(credmgr: ["use", rule.provider, rule.account, "--remove"] + rule.options)")
      } else if let first = rules.cover(of: rule) {
        let removal = ["credmgr", "use", rule.provider, rule.account, "--remove"] + rule.options
        // The same rule twice: both are removed.
        let isTwice = first.account == rule.account && first.options == rule.options
        problem(
          .rules, "line \(rule.place.line) of \(path) never counts: line \(first.place.line) covers it",
          hints: "\(all: [removal] + (isTwice ? [removal.filter { $0 != "--remove" }] : []))")
      }
    }
    if diagnostics.count == before, !rules.rules.isEmpty {
      ok(.rules, rules.rules.count == 1 ? "one rule" : "\(rules.rules.count) rules")
    }
  }
}
