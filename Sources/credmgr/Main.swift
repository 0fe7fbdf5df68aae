import Commands
import Glibc

exit(Program.run(CommandLine.arguments, network: nil, qrCode: { _ in nil }))
