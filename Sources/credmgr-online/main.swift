import Commands
import Curl
import Glibc
import HTTP
import Platform
import QRCode
import Simulator

// libcurl or OpenSSL would write the keys of every connection, and so every token, into that file.
Environment.withhold("SSLKEYLOGFILE")

// Not `exit`: nothing is buffered, and what forty libraries would do at the end takes time.
_exit(
  Program.run(
    Program.Online(
      network: { userAgent, isCancelled throws(HTTPError) in
        let trust = CurlTrust(file: Environment.value("SSL_CERT_FILE"), folder: Environment.value("SSL_CERT_DIR"))
        return try CurlClient(userAgent: userAgent, trust: trust, isCancelled: isCancelled)
      }, qrCode: { QRCode($0)?.modules }, simulate: SimulateCommand.run)))
