import CredentialManager
import JSON
import Messages
import OAuth
import Providers
import Vault

extension Command {
  static let vault = Command(
    name: "vault", operands: "status|verify", operandCount: 1...1, summary: "Show the vault, or check every byte of it",
    options: [json]
  ) { invocation, context throws(CommandError) in
    let name = invocation.operands[0]
    guard ["status", "verify"].contains(name) else {
      let near = didYouMean(nearMiss(name, among: ["status", "verify"]))
      throw .usage("there is no \"vault \(name)\"\(near)", hint: "run \"credmgr help vault\"")
    }
    let accounts: Accounts
    do throws(CredentialError) {
      accounts = try context.source.accounts()
    } catch .vault(.damaged(let path, let part)) where name == "verify" {
      throw .failed(VaultError.damaged(path: path, part).message.with(hint: "put it back from a backup"))
    } catch {
      throw CommandError(error)
    }
    if name == "verify" { return try verify(accounts, invocation, context) }
    let vault = try manager { () throws(CredentialError) in try accounts.vaultStatus() }
    return try status(vault, invocation, context)
  }

  private static func status(
    _ status: VaultStatus, _ invocation: Invocation, _ context: Context
  ) throws(CommandError) -> ExitStatus {
    if invocation.has("--json") {
      let slots = status.slots.map { slot -> JSONValue in
        ["kind": .optional(slot.kind?.words), "created_at": .string(Moment.format(slot.created))]
      }
      try context.output([
        "file": .string(status.path), "format": .integer(status.formatVersion), "slots": .array(slots),
        "records": .integer(status.recordCount),
      ])
      return .done
    }
    var rows = [("file", status.path), ("format", "\(status.formatVersion)"), ("records", "\(status.recordCount)")]
    for slot in status.slots {
      rows.append(("slot", "\(slot.kind?.words ?? "of a newer credmgr"), since \(Moment.format(slot.created))"))
    }
    try context.output(table(rows.map { ($0.0, $0.1) }))
    if status.slots.allSatisfy({ $0.kind == .keyFile }) {
      context.tell("a key file protects a copied vault, and nothing against programs that run as you")
    }
    return .done
  }

  private static func verify(
    _ accounts: Accounts, _ invocation: Invocation, _ context: Context
  ) throws(CommandError) -> ExitStatus {
    let findings = try manager { () throws(CredentialError) in try accounts.verify() }
    if invocation.has("--json") {
      try context.output(["findings": .array(findings.map { .string($0.sentence) })])
    } else {
      try context.output(findings.map { Message.visible($0.sentence) + "\n" }.joined())
    }
    guard findings.isEmpty else {
      let count = findings.count == 1 ? "one finding" : "\(findings.count) findings"
      throw .failed(
        Message("the vault is not as it was written: \(count)", hint: "put it back from a backup", status: .vault))
    }
    if !invocation.has("--json") { context.tell("the vault is as it was written") }
    return .done
  }
}
