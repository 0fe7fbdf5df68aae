import HTTP
import Messages
import OAuth
import Testing

@testable import CredentialManager
@testable import Commands

/// What a hint says to run is what helps.
@Suite struct HintTests {
  private static let failures: [CredentialError] = [
    .http(.unreachable(host: "notes.example", reason: .nameNotResolved), provider: "notes"),
    .http(.unreachable(host: "notes.example", reason: .connectionRefused), provider: "notes"),
    .http(.unreachable(host: "notes.example", reason: .timedOut), provider: "notes"),
    .http(.unreachable(host: "notes.example", reason: .tls(detail: "no")), provider: "notes"),
    .http(.unreachable(host: "notes.example", reason: .proxy), provider: "notes"),
    .http(.unreachable(host: "notes.example", reason: .broken), provider: "notes"),
    .http(.bodyTooLarge(limit: 1 << 20), provider: "notes"),
    .oauth(.unreadable(.token, expected: .json, mediaType: nil), provider: "notes"),
    .oauth(.missingField(.token, .accessToken), provider: "notes"),
    .oauth(.malformedField(.deviceAuthorization, .expiresIn), provider: "notes"),
  ]

  @Test(arguments: failures) func whoIsNotReachedIsExamined(_ error: CredentialError) {
    #expect(error.message.hint == "run \"credmgr doctor notes\"")
  }

  /// An issuer that is being added is no provider yet.
  @Test func anIssuerIsNoProvider() {
    let error = CredentialError.http(
      .unreachable(host: "notes.example", reason: .proxy), provider: "https://notes.example/")
    #expect(error.message.hint?.hasPrefix("run \"credmgr doctor\" ") == true)
  }

  @Test(arguments: [
    (["credmgr", "tken", "github"], "tken", "token", "credmgr token github"),
    (["credmgr", "token", "github", "--account=ad"], "ad", "ada", "credmgr token github --account=ada"),
    (["credmgr", "exec", "gitlb:ad=A", "--", "gitlb"], "gitlb", "gitlab", "credmgr exec gitlab:ad=A -- gitlb"),
    (["credmgr", "exec", "gitlab:ad=A", "--", "ad"], "ad", "ada", "credmgr exec gitlab:ada=A -- ad"),
    (
      ["credmgr", "token", "githb", "--account", "it's me"], "githb", "github",
      "credmgr token github --account 'it'\\''s me'"
    ),
  ])
  func aCommandIsCorrected(_ arguments: [String], _ wrong: String, _ meant: String, _ command: String) {
    let message = Message("no", hint: "other", status: .usage, mistyped: .init(wrong, meant: meant))
    #expect(message.correcting(arguments).hints == ["run \"\(command)\"", "other"])
  }

  /// Neither another program's command nor what may be a secret is repeated.
  @Test(arguments: [
    ["credmgr", "request", "githb", "https://a.example", "-d", "password=1"],
    ["credmgr", "exec", "gitlab", "--", "githb"], ["credmgr", "login", "githb", "--set=a=b"],
    ["credmgr", "exec", "githb", "--", String(repeating: "x", count: 200)],
  ])
  func whatIsNotRepeated(_ arguments: [String]) {
    let message = Message("no", hint: "other", status: .usage, mistyped: .init("githb", meant: "github"))
    #expect(message.correcting(arguments).hints == ["other"])
  }
}
