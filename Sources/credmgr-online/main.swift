import Commands
import Glibc
import Curl
import HTTP

exit(
  Program.run(CommandLine.arguments) { userAgent, isCancelled throws(HTTPError) in
    try CurlClient(userAgent: userAgent, isCancelled: isCancelled)
  })
