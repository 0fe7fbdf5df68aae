import CredmgrJSON
import Testing

@testable import CredmgrCommands

/// Tests how credmgr reads kubectl's information about the cluster.
@Suite struct ExecQuestionTests {
  private static func question(_ spec: String) throws -> ExecQuestion {
    try ExecQuestion(#"{"apiVersion": "client.authentication.k8s.io/v1", "spec": \#(spec)}"#)
  }

  /// kubectl accepts more addresses than credmgr, but their hosts are ambiguous.
  @Test(arguments: [
    "http://u@10.0.0.1:8080", "https://u@k8s.example", "https://u:p@k8s.example", "10.0.0.1:8080", "k8s.example:6443",
    "localhost:8080", "http://127.1:80", "http://010.0.0.1", "http://0x7f.0.0.1", "http://2130706433",
    "http://10.0.0.1:8080/ü", "https://k8s.exämple", "http://[fe80::1%25eth0]:80", "https://[fe80::1%eth0]:6443",
    "http://10.0.0.1:8080", "HTTP://k8s.example", "ftp://k8s.example", "//k8s.example", "", " https://k8s.example",
    "https://k8s.example\n", "https://k8s.example\\@127.0.0.1", "https://", "http://localhost.evil.example",
  ]) func aServerThatGetsNoToken(_ text: String) {
    #expect(throws: ExecQuestion.ServerFault.self) { try ExecQuestion.server(text) }
  }

  @Test(arguments: [
    "https://k8s.example:6443", "https://10.0.0.1", "https://[fe80::1]:6443", "http://127.0.0.1:8080",
    "http://localhost:8001", "https://rancher.example/k8s/clusters/c-1", "HTTPS://K8S.example",
  ]) func aServerThatIsRead(_ text: String) { #expect(throws: Never.self) { try ExecQuestion.server(text) } }

  @Test func noSecretIsRepeated() {
    do throws(ExecQuestion.ServerFault) {
      _ = try ExecQuestion.server("https://u:secret-1@k8s.example/?secret-2")
    } catch { #expect(!error.sentence.contains("secret") && !error.server.contains("secret")) }
  }

  @Test func whichCluster() throws {
    #expect(try Self.question("{}").server == nil)
    #expect(try Self.question(#"{"cluster": null}"#).server == nil)
    #expect(try Self.question(#"{"cluster": {"server": "https://a.example"}}"#).server == "https://a.example")
    // A cluster without an address does not mean any cluster.
    #expect(try Self.question(#"{"cluster": {}}"#).server == "")
    #expect(try Self.question(#"{"cluster": {"server": 7}}"#).server == "")
    #expect(
      try Self.question(#"{"cluster": {"server": "https://a.example", "server": "https://b.example"}}"#).server == "")
    #expect(throws: CommandError.self) {
      try Self.question(#"{"cluster": {"server": "https://a.example"}, "cluster": {}}"#)
    }
  }
}
