"""How the time grows with what there is: accounts, and descriptors."""

import os

from measuring import in_turn, medians
from peers import Peers

ACCOUNTS = (1, 10, 100, 1000, 10_000)
DESCRIPTORS = (5, 50, 200, 1000)


def measure_growth(few, many, rounds):
    """Points of both axes. `few` has one account and five descriptors, `many` has the greatest number of both."""
    peers = Peers(few.path, few.environment)
    accounts, stores = {}, {}
    for count in ACCOUNTS:
        home = few.copy(f"{few.path}-{count}-accounts") if count > 1 else few
        if count > 1:
            home.grow(5, count)
        accounts[count] = home
        stores[count] = peers.credential_store(count)
        stores[count].prepare(few.path)
    commands = {}
    for count, home in accounts.items():
        commands["token", count] = home.token()
        commands["git-credential get", count] = home.git_get()
        commands["git credential-store get", count] = stores[count]
    # All sizes in turn: what else the machine does meets all alike.
    by_accounts = points(ACCOUNTS, medians(in_turn(commands, rounds)))
    commands = {}
    home = few
    for count in DESCRIPTORS:
        if count > 5:
            home = home.copy(os.path.join(os.path.dirname(few.path), f"few-{count}-descriptors"))
            home.grow(count, 1)
        commands["token", count] = home.token()
        commands["git-credential get", count] = home.git_get()
    return {"accounts": by_accounts, "descriptors": points(DESCRIPTORS, medians(in_turn(commands, rounds)))}


def points(counts, times):
    return [
        {"count": count, "milliseconds": {name: times[name, at] for name, at in times if at == count}}
        for count in counts
    ]
