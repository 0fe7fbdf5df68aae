"""The time of the judge's own servers. A test can move it together with the programs' clock."""

import time

offset = 0


def now():
    """Returns the seconds since 1970, as the tested programs see them."""
    return time.time() + offset
