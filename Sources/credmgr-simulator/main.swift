import Glibc
import Simulator

exit(SimulatorProgram.run(CommandLine.arguments))
