import Glibc
import SecretService

exit(SecretServiceProgram.run(CommandLine.arguments))
