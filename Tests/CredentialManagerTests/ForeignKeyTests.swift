import CredmgrDescriptors
import CredmgrOAuth
import CredmgrPlatform
import Testing

@testable import CredmgrCredentialManager

/// Keys of other providers, and each provider's own keys, with the shipped descriptors.
struct ForeignKeyTests {
  private static func source(_ own: String = "/nowhere") throws -> CredentialSource {
    let repository = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined()
    let home = try Home(
      environment: { $0 == "CREDMGR_HOME" ? own : nil }, executable: repository + "/.build/debug/credmgr",
      ownHome: { _ in nil })
    return CredentialSource(home: home, http: nil, clock: ManualClock(), random: KnownRandom())
  }

  private static let described = (try? source())?.describedKeys() ?? []

  private func owners(of key: String, pastedFor name: String) throws -> [String] {
    let own = try Self.source().home.library.load(name).descriptor
    return own.owners(of: key, among: Self.described)
  }

  /// Returns a key: in a form, `{N}` stands for N characters.
  private static func key(_ form: String) -> String {
    let parts = form.split(separator: "{", omittingEmptySubsequences: false)
    var key = String(parts[0])
    for part in parts.dropFirst() {
      let halves = part.split(separator: "}", omittingEmptySubsequences: false)
      key += body.prefix(Int(halves[0]) ?? 0)
      key += halves[1]
    }
    return key
  }

  private static let body = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a7B8c9D0e1F2g3H4i5J6"

  /// Keys in the form that the providers' pages or public client code show.
  static let keys: [(form: String, owners: [String])] = [
    ("sk-proj-{70}", ["openai"]), ("sk-svcacct-{70}", ["openai"]), ("sk-ant-api03-{70}", ["anthropic"]),
    ("sk-ant-admin01-{70}", ["anthropic-admin"]),
    ("hf_{34}", ["hugging-face"]), ("glpat-{20}", ["gitlab"]), ("SG.{22}.{43}", ["sendgrid"]),
    ("AIza{35}", ["gemini", "google-maps"]), ("AKIAIOSFODNN7EXAMPLE", ["aws"]), ("r8_{37}", ["replicate"]),
    ("lin_api_{40}", ["linear-key"]), ("ntn_{46}", ["notion"]), ("dckr_pat_{27}", ["docker-hub"]),
    ("shpat_0123456789abcdef0123456789abcdef", ["shopify"]), ("ghp_{36}", ["github"]), ("npm_{36}", ["npm"]),
    ("figd_{40}", ["figma-token"]), ("hvs.{90}", ["vault"]), ("glsa_{41}", ["grafana"]), ("nfp_{36}", ["netlify"]),
    ("dapi0123456789abcdef0123456789abcdef", ["databricks"]), ("xkeysib-{70}", ["brevo"]),
    ("CCIPAT_{22}_{40}", ["circleci"]), ("ATATT3{70}", ["atlassian-token", "bitbucket-token"]),
    ("re_a1B2c3D4_a1B2c3D4e5F6g7H8i9JAk1L2", ["resend"]),
    ("pat-na1-01234567-89ab-cdef-0123-456789abcdef", ["hubspot-key"]),
    ("EAAA{60}", ["square"]), ("cfut_{40}", ["cloudflare"]), ("cfat_{40}", ["cloudflare"]),
    ("0123456789abcdef0123456789abcdef-us6", ["mailchimp-key"]), ("key-0123456789abcdef0123456789abcdef", ["mailgun"]),
    ("0123456789abcdef0123456789abcdef-us21", ["mailchimp-key"]), ("tgp_v1_{43}", ["together"]),
    ("rnd_{32}", ["render"]), ("fo1_{43}", ["fly"]), ("secret_{43}", ["notion"]),
    ("{14}.atlasv1.{67}", ["hcp-terraform"]),
    ("cio{32}", ["crates-io"]), ("HRKU-AA{58}", ["heroku"]), ("sk-lf-{36}", ["langfuse"]), ("napi_{40}", ["neon"]),
    ("pcsk_{60}", ["pinecone"]), ("pscale_tkn_{40}", ["planetscale"]), ("gldt-{20}", ["gitlab"]),
    ("vcp_{40}", ["vercel"]),
    ("pul-0123456789abcdef0123456789abcdef01234567", ["pulumi"]), ("bkua_{40}", ["buildkite"]),
    ("01234567-89ab-cdef-0123-456789abcdef", []), ("0123456789abcdef0123456789abcdef", []), ("sk-{48}", []),
    ("sntryu_{64}", ["sentry"]), ("glc_{60}", ["grafana-cloud"]),
    ("ghr_{36}", ["github"]), ("dor_v1_{64}", ["digitalocean"]), ("lin_oauth_{64}", ["linear-key"]),
    ("shpss_{32}", ["shopify"]), ("pypi-{70}", ["pypi"]), ("xoxb-1-2-{24}", ["slack"]),
    ("sk_live_{24}", ["clerk", "stripe-api", "workos"]),
    ("PMAK-0123456789abcdef01234567-0123456789abcdef0123456789abcdef01", ["postman"]),
  ]

  @Test(arguments: keys.indices) func theOwnerIsNamed(_ index: Int) throws {
    let (key, owners) = (Self.key(Self.keys[index].form), Self.keys[index].owners)
    // A provider without a pattern stores any other text.
    #expect(try self.owners(of: key, pastedFor: "alpha-vantage") == owners)
    for owner in owners { #expect(try self.owners(of: key, pastedFor: owner) == []) }
  }

  /// Every command shows a name.
  @Test(arguments: keys.indices) func aKeyInAName(_ index: Int) throws {
    let (key, owners) = (Self.key(Self.keys[index].form), Self.keys[index].owners)
    let source = try Self.source()
    #expect(source.ownersOfKey(in: key) == owners)
    #expect(source.ownersOfKey(in: "ada:" + key) == owners)
  }

  @Test(arguments: [
    "", "ada", "ada.lovelace-1815@analytical-engine.example", "work", "01234567-89ab-cdef-0123-456789abcdef",
    "123456789012", "arn:aws:iam::123456789012:user/ada", "did:plc:ewvi7nxzyoun6zhxrhs64oiz", "my-org-2026/ada",
  ]) func aNameIsNoKey(_ name: String) throws { #expect(try Self.source().ownersOfKey(in: name) == []) }

  @Test(arguments: ["key-npm_{36}", "xghp_{36}", "%20AKIAIOSFODNN7EXAMPLE", "khvs.{40}"])
  func aKeyAfterLetters(_ form: String) throws { #expect(try Self.source().ownersOfKey(in: Self.key(form)).count == 1) }

  /// Tokens for providers that document no keys: those of another descriptor for the same hosts are accepted.
  @Test(arguments: [
    ("linkedin", "ghp_{36}", true), ("spotify", "cfut_{40}", true), ("stripe", "sk_live_{24}", false),
    ("cloudflare-oauth", "cfut_{40}", false), ("cloudflare-oauth", "figd_{40}", true),
    ("hubspot", "pat-na1-01234567-89ab-cdef-0123-456789abcdef", false), ("linkedin", "AQX{70}", false),
  ]) func aTokenOfAnotherProvider(_ provider: String, _ form: String, _ isForeign: Bool) throws {
    let source = try Self.source()
    let loaded = try source.home.library.load(provider)
    #expect(loaded.descriptor.key == nil)
    if isForeign {
      #expect(throws: CredentialError.self) { try source.requireOwnKey([Self.key(form)], of: loaded) }
    } else {
      try source.requireOwnKey([Self.key(form)], of: loaded)
    }
  }

  /// A user name and a password of a shipped provider are no keys of another one.
  @Test(arguments: ["quay", "docker-hub", "twilio"]) func aKeyAsAPassword(_ provider: String) throws {
    let source = try Self.source()
    let loaded = try source.home.library.load(provider)
    for texts in [["ada", Self.key("ghp_{36}")], [Self.key("sk-proj-{70}"), "pw"]] {
      #expect(throws: CredentialError.self) { try source.requireOwnKey(texts, of: loaded) }
    }
    try source.requireOwnKey(["ada", "correct horse battery staple"], of: loaded)
  }

  /// A user's own descriptor gets the keys of a shipped provider only for the servers of that provider.
  @Test(arguments: [
    ("hosts: [own.example]", true), ("hosts: [own.example]\nkey: { pattern: \"ghp_.*\" }", true),
    ("hosts: [own.example]\nkey: { pattern: \"ghp_a1.*|ghp_b2.*\" }", true), ("hosts: [api.github.com]", false),
    ("hosts: [api.github.com, own.example]", true),
    ("endpoints: { identity: https://own.example/me }\nhosts: [api.github.com]", true),
    ("endpoints: { identity: https://api.github.com/user }", false), ("", true),
  ]) func aKeyForAnOwnDescriptor(_ more: String, _ isForeign: Bool) throws {
    let fixture = try Fixture()
    let key = try #require(try Self.source().home.library.load("github").contents.first)
    try fixture.ship(String(decoding: key, as: UTF8.self).replacing("provider: github\n", with: ""), "github")
    for name in ["own", "github"] {
      let endpoints = more.contains("endpoints:") ? "" : "endpoints: {}\n"
      try File.createDirectory(fixture.home.userProviders)
      let text = "provider: \(name)\ngrant: api_key\n\(endpoints)\(more)\n"
      try File.replace("\(fixture.home.userProviders)/\(name).yaml", Array(text.utf8))
      let loaded = try fixture.home.library.load(name)
      func check(agrees: Bool) throws {
        try fixture.source.requireOwnKey([Self.key("ghp_{36}")], of: loaded, agrees: agrees)
      }
      if isForeign {
        #expect(throws: CredentialError.foreignKey(provider: name, owners: ["github"], canAgree: true)) {
          try check(agrees: false)
        }
      } else {
        try check(agrees: false)
      }
      try check(agrees: true)
    }
  }

  /// The user's own variant of a shipped provider, also at a host that the user chose.
  @Test(arguments: [
    ("extends: openai", "sk-proj-{70}", [:], false), ("extends: github", "ghp_{36}", [:], false),
    ("extends: github-enterprise", "ghp_{36}", ["host": "git.corp.test"], false),
    ("extends: gitlab", "glpat-{20}", ["host": "git.corp.test"], false),
    ("extends: gitlab\nvariables: { host: { default: git.corp.test } }", "glpat-{20}", [:], true),
    ("extends: openai\nhosts: [own.example]", "sk-proj-{70}", [:], true),
  ]) func aKeyForAVariant(_ text: String, _ form: String, _ variables: [String: String], _ isForeign: Bool) throws {
    let fixture = try Fixture()
    let source = try Self.source(fixture.root + "/home")
    try File.createDirectory(source.home.userProviders)
    try File.replace(source.home.userProviders + "/own.yaml", Array("provider: own\n\(text)\n".utf8))
    let loaded = try source.home.library.load("own")
    let client = try Client(descriptor: loaded.descriptor, identifier: "x", secret: nil, variables: variables)
    if isForeign {
      #expect(throws: CredentialError.self) { try source.requireOwnKey([Self.key(form)], of: loaded, client) }
    } else {
      try source.requireOwnKey([Self.key(form)], of: loaded, client)
    }
  }

  /// A key may have quotes, or the name of a variable before it.
  @Test(arguments: [
    "\"KEY\"", "'KEY'", "GITHUB_TOKEN=KEY", "Authorization: Bearer KEY", "KE Y", "key:KEY", "{\"key\":\"KEY\",\"n\":1}",
    "`KEY`", "<KEY>", "(KEY)", "\u{FEFF}KEY", "\u{200B}KEY", "https://api.example/?key=KEY&a=b", "key-KEY", "my_KEY",
    "xKEY", "%20KEY", "2KEY",
  ])
  func aKeyWithMore(_ form: String) throws {
    let source = try Self.source()
    let loaded = try source.home.library.load("openai")
    let parts = form == "KE Y" ? "ghp_a1B2c3D4e5F6g7H8i9 J0k1L2m3N4o5P6q7R8" : nil
    let text = parts ?? form.replacing("KEY", with: Self.key("ghp_{36}"))
    #expect(throws: CredentialError.self) { try source.requireOwnKey([text], of: loaded) }
  }

  /// A name or a password that the user chose may begin like a key, and S3 stores have keys in the form of AWS.
  @Test(arguments: [
    ("quay", ["ada", "x!npm_word"]), ("quay", ["npm_ci", "the rnd_ and (ghp_1)"]),
    ("zulip", ["pypi-admin@x.org", "k"]),
    ("wasabi", ["AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI"]),
  ]) func aChosenText(_ provider: String, _ texts: [String]) throws {
    let source = try Self.source()
    try source.requireOwnKey(texts, of: source.home.library.load(provider))
  }

  @Test func theUserCanAgreeToAPassword() throws {
    let source = try Self.source()
    let texts = ["ada", Self.key("ghp_{36}")]
    try source.requireOwnKey(texts, of: source.home.library.load("quay"), agrees: true)
    #expect(throws: CredentialError.self) {
      try source.requireOwnKey([texts[1]], of: source.home.library.load("openai"), agrees: true)
    }
  }

  /// A provider's own keys contain none of another one, also with a few characters before them.
  @Test func keysInsideOfKeys() throws {
    let source = try Self.source()
    for form in Self.keys where form.owners.count == 1 {
      let loaded = try source.home.library.load(form.owners[0])
      try source.requireOwnKey([Self.key(form.form)], of: loaded)
    }
    for own in Self.ownKeys {
      let loaded = try source.home.library.load(own.provider)
      try source.requireOwnKey([Self.key(own.form)], of: loaded)
    }
  }

  /// The patterns see no text that is too long for any key.
  @Test func aLongText() throws {
    let source = try Self.source()
    let loaded = try source.home.library.load("openai")
    try source.requireOwnKey(["ghp_" + String(repeating: "a", count: 1 << 20)], of: loaded)
  }

  /// No provider refuses a key that one of its own patterns describes.
  @Test func noOwnKeyIsRefused() throws {
    var count = 0
    for descriptor in Self.described {
      let patterns = [descriptor.key?.pattern].compactMap(\.self) + descriptor.variables.compactMap(\.pattern)
      for way in patterns.flatMap({ $0.split(separator: "|").map(String.init) }) {
        for text in Self.examples(of: way) where Variable.value(text, matches: way) {
          #expect(descriptor.owners(of: text, among: Self.described) == [], "\(text) at \(descriptor.identifier)")
          count += 1
        }
      }
    }
    #expect(count > 200)
  }

  /// Returns texts that a pattern may match.
  private static func examples(of way: String) -> [String] {
    let text = way.replacing("\\", with: "")
    let beginning = String(text.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || "_-.".contains($0)) })
    var ends = ["12345", "EXAMPLE7", key("{22}.{43}"), String(repeating: "0123456789abcdef", count: 4)]
    ends += [32, 40].map { String(ends[3].prefix($0)) }
    ends += [20, 22, 34, 35, 37, 40, 72].map { String(body.prefix($0)) }
    return ends.map { beginning + $0 }
  }

  /// Keys of providers without a pattern, or with the beginning of another provider's keys.
  static let ownKeys: [(provider: String, form: String)] = [
    ("deepseek", "sk-0123456789abcdef0123456789abcdef"), ("moonshot", "sk-{48}"), ("stability", "sk-{48}"),
    ("elevenlabs", "sk_0123456789abcdef0123456789abcdef0123456789abcdef"), ("langfuse", "sk-lf-{36}"),
    ("stripe-api", "sk_live_51{70}"), ("stripe-api", "rk_test_51{70}"), ("clerk", "sk_test_{40}"),
    ("workos", "sk_test_{70}"), ("klaviyo", "pk_0123456789abcdef0123456789abcdef"), ("clickup", "pk_12345_{32}"),
    ("github-enterprise", "ghp_{36}"), ("test-pypi", "pypi-{70}"), ("openrouter", "sk-or-v1-{64}"),
    ("slack-user", "xoxp-1-2-3-{32}"), ("gemini", "AQ.{50}"), ("gitlab", "acme-{20}"), ("linear-key", "{40}"),
    ("docker-hub", "a password"), ("notion", "secret_{43}"), ("google-maps", "AIza{35}"),
    ("aws", "ASIAIOSFODNN7EXAMPLE"),
  ]

  @Test(arguments: ownKeys.indices) func aKeyOfThisProvider(_ index: Int) throws {
    let (provider, form) = Self.ownKeys[index]
    #expect(try owners(of: Self.key(form), pastedFor: provider) == [])
  }
}
