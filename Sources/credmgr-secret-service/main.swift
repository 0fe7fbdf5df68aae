import CPOSIX
import SecretService

exit(SecretServiceProgram.run())
