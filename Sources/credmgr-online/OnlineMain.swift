import CredmgrCommands
import CredmgrCredentialManager
import CredmgrCurl
import Glibc
import CredmgrHTTP
import CredmgrPlatform
import CredmgrQRCode
import CredmgrSharedVault
import CredmgrSimulator

/// The entry point that the C library calls, as in `credmgr`.
@c(credmgr_online_main)
package func main(count: Int32, arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Int32 {
  unsafe Environment.keep(arguments)
  // libcurl or OpenSSL would write the keys of all connections into that file, which reveal every token.
  Environment.withhold("SSLKEYLOGFILE")
  let online = Program.Online(
    network: { userAgent, isCancelled throws(HTTPError) in
      let trust = CurlTrust(file: Environment.value("SSL_CERT_FILE"), folder: Environment.value("SSL_CERT_DIR"))
      return CurlClient(userAgent: userAgent, trust: trust, isCancelled: isCancelled)
    }, preload: CurlClient.preload, qrCode: { QRCode($0)?.modules }, simulate: SimulateCommand.run, user: { $0 },
    vaults: TeamVaults())
  // Skips `exit`: nothing is buffered, and the exit handlers of forty libraries take time.
  _exit(Program.run(online))
}

extension TerminalUser: User {}
