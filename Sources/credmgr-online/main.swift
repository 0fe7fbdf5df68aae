import Commands
import Glibc
import Curl
import HTTP
import Platform
import QRCode

exit(
  Program.run(
    network: { userAgent, isCancelled throws(HTTPError) in
      let trust = CurlTrust(file: Environment.value("SSL_CERT_FILE"), folder: Environment.value("SSL_CERT_DIR"))
      return try CurlClient(userAgent: userAgent, trust: trust, isCancelled: isCancelled)
    },
    qrCode: { QRCode($0)?.modules }))
