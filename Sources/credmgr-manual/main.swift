import Glibc
import Manual

exit(ManualProgram.run(CommandLine.arguments))
