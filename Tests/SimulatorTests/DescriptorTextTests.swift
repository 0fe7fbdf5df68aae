import CredmgrHTTP
import CredmgrMessages
import CredmgrPlatform
import CredmgrDescriptors
import Testing

@testable import CredmgrCommands
@testable import CredmgrSimulator

struct DescriptorTextTests {
  private let library = DescriptorLibrary(directories: []) { _ in nil }

  @Test("a written file reads back unchanged", arguments: Descriptors.all) func roundTrip(_ sample: Sample) throws {
    let descriptor = try library.load(Array(sample.text.utf8), name: "test").descriptor
    let text = descriptor.yaml
    let again = try library.load(Array(text.utf8), name: "written").descriptor
    #expect(again == descriptor)
    #expect(again.yaml == text)
    #expect(!Simulation.isOurs(Array(sample.text.utf8)))
  }

  @Test("shipped and simulated descriptors also read back unchanged") func shipped() throws {
    let folder = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined() + "/providers"
    let shipped = DescriptorLibrary(directories: [folder]) { try? File.read($0, limit: 1 << 20) }
    let names = try File.names(in: folder).filter { $0.hasSuffix(".yaml") }
    #expect(names.count >= 5)
    for name in names {
      let descriptor = try shipped.load(String(name.dropLast(".yaml".count))).descriptor
      let again = try library.load(Array(descriptor.yaml.utf8), name: "written").descriptor
      #expect(again == descriptor)
      let origin = try URI(parsing: Play.origin)
      let simulated = try descriptor.simulated(at: origin, tokensTo: origin, SimulationSettings())
      let loaded = try library.load(Array(simulated.yaml.utf8), name: "written")
      #expect(loaded.descriptor == simulated)
      #expect(loaded.warnings == [])
      let values = { (name: String) in simulated.variable(name)?.defaultValue ?? "x" }
      for endpoint in simulated.endpoints.values {
        #expect(try endpoint.url.filled(values).origin == Play.origin)
      }
    }
  }

  @Test("endpoints on two hosts stay separate, and endpoints that share a URL still share it") func paths() throws {
    let descriptor = try Play(Descriptors.gitHub).simulation.value.descriptor
    func url(_ leg: EndpointKind) throws -> String? {
      try descriptor.endpoints[leg]?.url.filled { name in
        name == "client_id" ? "c" : descriptor.variable(name)?.defaultValue
      }.text
    }
    #expect(try url(.identity) == "http://127.0.0.1:4711/api.github.example/user")
    #expect(try url(.token) == "http://127.0.0.1:4711/github.example/login/oauth/access_token")
    #expect(try url(.token) == url(.refresh))
    #expect(descriptor.hosts.map(\.literal) == ["127.0.0.1:4711"])
    #expect(descriptor.git?.hosts.map(\.literal) == ["127.0.0.1:4711"])
  }

  @Test("a redirect to another host moves to this machine, unless an option keeps or sets it")
  func redirects() throws {
    func redirect(_ sample: Sample, _ settings: SimulationSettings) throws -> String? {
      let descriptor = try Play(sample, settings).simulation.value.descriptor
      return try? descriptor.redirect.template.filled { descriptor.variable($0)?.defaultValue }
    }
    var settings = SimulationSettings()
    #expect(try redirect(Descriptors.linkedIn, settings) == "http://127.0.0.1/callback")
    #expect(try redirect(Descriptors.oclc, settings) == "http://127.0.0.1/callback")
    settings.keepsRedirect = true
    #expect(try redirect(Descriptors.linkedIn, settings) == "https://app.example/callback")
    settings = SimulationSettings()
    settings.variables = ["redirect_uri": "app://done"]
    #expect(try redirect(Descriptors.oclc, settings) == "app://done")
  }

  @Test("git hosts are also written for a descriptor without git hosts") func gitHosts() throws {
    var settings = SimulationSettings()
    settings.gitHosts = ["127.0.0.1:99"]
    for sample in [Descriptors.gitHub, Descriptors.linkedIn] {
      let text = try Play(sample, settings).simulation.value.descriptorText
      #expect(Simulation.isOurs(Array(text.utf8)))
      let git = try #require(try library.load(Array(text.utf8), name: "written").descriptor.git)
      #expect(git.hosts.map(\.literal) == ["127.0.0.1:99"])
    }
  }

  @Test("values of variables are checked") func variables() throws {
    var settings = SimulationSettings()
    settings.variables = ["institutoin": "1"]
    let unknown = #expect(throws: CommandError.self) { try Play(Descriptors.oclc, settings) }
    #expect(
      unknown?.message == ProviderError.unknownVariable("institutoin", known: ["institution", "redirect_uri"]).message)
    let hard = Sample(text: Descriptors.oclc.text.replacing("[0-9]+", with: "Q[0-9]Z"))
    let needed = #expect(throws: CommandError.self) { try Play(hard) }
    #expect(needed?.message?.text == "the variable \"institution\" has no value")
  }
}
