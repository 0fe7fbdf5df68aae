import CredmgrCredentialManager
import CredmgrCryptography
import CredmgrDescriptors
import CredmgrMessages
import CredmgrPlatform
import Testing

/// The patterns of the shipped descriptors for client IDs and secrets.
@Suite struct ClientShapeTests {
  private func rules(_ provider: String) throws -> ClientRules {
    let folder = Path.joining(Path.directory(of: #filePath) ?? "", "../../providers")
    return try DescriptorLibrary(directories: [folder]) { try? File.read($0, limit: 1 << 20) }.load(provider).descriptor
      .client
  }

  @Test(arguments: [
    ("github", "Ov23liAbCdEfGhIjKlMn"), ("github", "178c6fc778ccc68e1d6a"),
    ("github-enterprise", "178c6fc778ccc68e1d6a"),
    ("google", "1084945748469-eg34imk572gdhu83gj5p0an9fut6urp5.apps.googleusercontent.com"),
    ("gitlab", "5832fc6e14300a0d962240a8144466eef4ee93ef0d218477e55f11cf12fc3737"),
    ("microsoft", "6731de76-14a6-49ae-97bc-6eba6914391e"), ("discord", "152638009253036032"),
    ("slack", "33336676.569200954261"), ("spotify", "39361baa253b4db7942d9aeb87f409ce"),
    ("twitch", "hof5gwx0su6owfnys0yan9c87zr6t0"), ("shopify", "a61950a2cbd5f32876b0b55587ec7a27"),
    ("stripe", "ca_FkyHCg7X8mlvCUdMDao4mMxagUfhIwXb"), ("notion", "463558a3-725e-4f37-b6d3-0889894f68de"),
  ])
  func identifiersOfTheProvider(_ provider: String, _ text: String) throws {
    #expect(try rules(provider).doubt(text, as: .identifier) == nil)
  }

  @Test(arguments: [
    ("github", "Iv1.8a61f9b3a7aba766"), ("github", "Iv23f8doAlphaNumer1c"), ("github", "1069209"),
    ("github-enterprise", "Iv1.8a61f9b3a7aba766"), ("github", "gho_16C7e42F292c6912E7710c838347Ae178B4a"),
    ("google", "GOCSPX-abc"), ("gitlab", "gloas-4d80d8c0"), ("microsoft", "credmgr"), ("discord", "credmgr"),
    ("slack", "A0KRD7HC3"), ("spotify", "credmgr"), ("twitch", "credmgr"), ("shopify", "shpat_1"),
    ("stripe", "pk_live_1"), ("notion", "secret_1"),
  ])
  func otherIdentifiers(_ provider: String, _ text: String) throws {
    let doubt = try #require(try rules(provider).doubt(text, as: .identifier))
    let warning = doubt.warning(on: .identifier, of: provider)
    #expect(warning.hasPrefix("warning: this is probably not a client ID of \(provider): it "))
    #expect(!warning.contains(text))
  }

  @Test(arguments: [
    ("github", "1726be1638095a19edd134c77bde3aa2ece1e5d8"), ("google", "GOCSPX-abcdefghijklmnopqrstuvwxyz01"),
    ("google", "abcdefghijklmnopqrstuvwx"), ("gitlab", "gloas-4d80d8c0"),
    ("discord", "8dyfuiRyq=vVc3RRr_edRk-fK__JItpZ"), ("spotify", "39361baa253b4db7942d9aeb87f409ce"),
    ("twitch", "nyo51xcdrerl8z9m56w9w6wg00a0b1"), ("shopify", "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"),
    ("shopify", "a61950a2cbd5f32876b0b55587ec7a27"), ("stripe", "sk_test_4eC39HqLyjWDarjtT1zdp7dc"),
    ("stripe", "rk_live_1"),
  ])
  func secretsOfTheProvider(_ provider: String, _ text: String) throws {
    #expect(try rules(provider).doubt(text, as: .secret) == nil)
    #expect(try rules(provider).doubt("n", as: .secret) != nil)
  }

  @Test func theIDOfASecret() throws {
    let microsoft = try rules("microsoft")
    let doubt = microsoft.doubt("6731de76-14a6-49ae-97bc-6eba6914391e", as: .secret)
    #expect(doubt == .named("the ID of a client secret, not its value"))
    #expect(microsoft.doubt("A1b8Q~zZ.abcdef", as: .secret) == nil)
  }

  @Test func bothPartsMixedUp() throws {
    let github = try rules("github")
    let secret = "1726be1638095a19edd134c77bde3aa2ece1e5d8"
    #expect(github.doubt(secret, as: .identifier) == .other(.secret))
    #expect(github.doubt(Secret(secret), of: "Ov23liAbCdEfGhIjKlMn") == nil)
    #expect(github.doubt(Secret("Ov23liAbCdEfGhIjKlMn"), of: "Ov23liAbCdEfGhIjKlMn") == .other(.identifier))
  }

  /// Both parts of these providers have the same form.
  @Test(arguments: [("dropbox", "a1b2c3d4e5f6g7h"), ("linear", "a61950a2cbd5f32876b0b55587ec7a27")])
  func anIdentifierLikeASecret(_ provider: String, _ text: String) throws {
    #expect(try rules(provider).doubt(text, as: .identifier) == nil)
  }

  @Test func aDescriptorWithoutPatterns() throws {
    #expect(try rules("linkedin").doubt("anything", as: .identifier) == nil)
    #expect(try rules("linkedin").doubt("anything", as: .secret) == nil)
  }
}
