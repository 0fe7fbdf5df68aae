import Commands
import Cryptography
import Glibc

// OpenSSL's configuration may name libraries to load, which a static program cannot.
OpenSSLConfiguration.ignore()
exit(Program.run(CommandLine.arguments, network: nil))
