#!/usr/bin/env python3
"""Simulates a fleet that shares a vault: statements, connections, waits, and a failover of the database.

    fleet.py [--machines N] [--accounts N] …      every assumption is an option; `--help` lists them

The result depends only on the options. docs/shared-vault.md explains the model and shows a run.
"""

import argparse
import collections
import heapq
import math
import random
import statistics

# Options with their defaults. The numbers of statements and their costs were measured (docs/shared-vault.md): the costs
# are the processor time of the server for programs that each make a new connection. The network, the provider, the
# failover and the use are assumptions.
ASSUMPTIONS = {
    "machines": (100_000, "machines that share the vault"),
    "accounts": (1_000, "accounts, used by equally many machines each"),
    "lifetime": (3_600.0, "seconds that an access token is valid"),
    "margin": (60.0, "seconds before the expiry when a refresh begins"),
    "spread": (0.1, "part of the lifetime by which each machine refreshes earlier, at random"),
    "spread-limit": (300.0, "seconds that the spread has at most"),
    "use": (30.0, "mean seconds between two uses of a token on one machine"),
    "hours": (2.0, "simulated hours"),
    "statements-refresh": (4, "statements of a refresh"),
    "statements-read": (1, "statements to take over a token that another machine stored"),
    "statement": (0.35, "milliseconds that the server spends on a statement that reads"),
    "commit": (1.6, "further milliseconds of a statement that writes"),
    "connect": (5.5, "milliseconds that a new connection takes"),
    "network": (1.0, "milliseconds to the server and back"),
    "provider": (300.0, "milliseconds until the provider answers"),
    "pool": (50, "connections from the pooler to the server"),
    "poll": (500.0, "milliseconds between two looks of a machine that waits"),
    "failover": (-1.0, "second in which the primary dies; negative for never"),
    "outage": (30.0, "seconds until the standby answers"),
    "retry": (5.0, "seconds after which a program asks again, if its token has expired"),
    "seed": (1, "start of the random numbers"),
}


class Fleet:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.events, self.order = [], 0
        self.now = 0.0
        self.free = options.pool
        self.queue = collections.deque()
        self.expiry = [options.lifetime * self.random.random() for _ in range(options.accounts)]
        self.refreshing = [False] * options.accounts
        self.known = [self.expiry[machine % options.accounts] for machine in range(options.machines)]
        self.begun, self.clients = {}, 0
        self.statements = [0] * (math.ceil(options.hours * 3600) + 1)
        self.peak_clients = self.peak_queue = self.refreshes = self.reads = self.late = 0
        self.waits, self.failures = [], 0
        self.recovered = 0.0

    # Events.
    def at(self, time, action, *arguments):
        self.order += 1
        heapq.heappush(self.events, (time, self.order, action, arguments))

    def run(self):
        for machine in range(self.options.machines):
            self.plan(machine)
        end = self.options.hours * 3600
        while self.events and self.events[0][0] < end:
            self.now, _, action, arguments = heapq.heappop(self.events)
            action(*arguments)
        return self

    def plan(self, machine):
        """Lets the machine come back with its first use after its token is due."""
        spread = min(self.options.spread * self.options.lifetime, self.options.spread_limit) * self.random.random()
        due = self.known[machine] - self.options.margin - spread
        self.at(max(due, self.now) + self.random.expovariate(1 / self.options.use), self.come, machine)

    def is_down(self):
        began = self.options.failover
        return 0 <= began <= self.now < began + self.options.outage

    def come(self, machine):
        if machine not in self.begun:
            self.begun[machine] = self.now
        if self.is_down():
            self.failures += 1
            # A token that is still valid is used, so the next use asks again.
            valid = self.known[machine] > self.now
            self.late += not valid
            self.at(self.now + (self.options.use if valid else self.options.retry), self.come, machine)
            return
        self.clients += 1
        self.peak_clients = max(self.peak_clients, self.clients)
        self.ask(machine, self.options.connect + self.options.statement, 1, self.look)

    def ask(self, machine, work, count, then):
        """Runs `count` statements of `work` milliseconds in all on a connection of the pool, then `then`."""
        self.queue.append((machine, work, count, then))
        self.serve()

    def serve(self):
        while self.free and self.queue:
            machine, work, count, then = self.queue.popleft()
            self.free -= 1
            self.statements[min(int(self.now), len(self.statements) - 1)] += count
            self.at(self.now + work / 1000, self.done, machine, then)
        self.peak_queue = max(self.peak_queue, len(self.queue))

    def done(self, machine, then):
        self.free += 1
        self.serve()
        self.at(self.now + self.options.network / 1000, then, machine)

    def look(self, machine):
        account = machine % self.options.accounts
        if self.expiry[account] > self.known[machine]:
            self.reads += 1
            more = self.options.statements_read - 1
            self.ask(machine, self.options.statement * more, more, self.leave)
        elif self.refreshing[account]:
            self.at(self.now + self.options.poll / 1000, self.ask, machine, self.options.statement, 1, self.look)
        else:
            self.refreshing[account] = True
            more = self.options.statements_refresh - 2
            self.ask(machine, (self.options.statement + self.options.commit) * more, more, self.exchange)

    def exchange(self, machine):
        self.at(self.now + self.options.provider / 1000, self.ask, machine, self.options.statement + self.options.commit, 1,
                self.commit)

    def commit(self, machine):
        account = machine % self.options.accounts
        self.refreshes += 1
        self.expiry[account] = self.now + self.options.lifetime
        self.refreshing[account] = False
        self.leave(machine)

    def leave(self, machine):
        self.clients -= 1
        began = self.begun.pop(machine)
        self.waits.append(self.now - began)
        if self.options.failover >= 0 and began < self.options.failover + self.options.outage:
            self.recovered = max(self.recovered, self.now)
        self.known[machine] = self.expiry[machine % self.options.accounts]
        self.plan(machine)


def report(fleet):
    options = fleet.options
    waits = sorted(fleet.waits) or [0.0]
    share = waits[min(int(len(waits) * 0.99), len(waits) - 1)]
    seconds = options.hours * 3600
    yield "refreshes", f"{fleet.refreshes} ({fleet.refreshes / seconds:.2f} a second)"
    yield "tokens taken over", f"{fleet.reads} ({fleet.reads / seconds:.1f} a second)"
    yield "statements a second", f"{sum(fleet.statements) / seconds:.0f} on average, {max(fleet.statements)} at most"
    yield "clients at the same time", f"{fleet.peak_clients} at most, through {options.pool} connections"
    yield "longest queue", f"{fleet.peak_queue} statements"
    yield "time of a contact", (f"{statistics.median(waits) * 1000:.0f} ms median, {share * 1000:.0f} ms for 99 %, "
                                f"{waits[-1] * 1000:.0f} ms at most")
    if options.failover >= 0:
        yield "contacts during the failover", f"{fleet.failures}, of them {fleet.late} with an expired token"
        yield "caught up", f"{max(0.0, fleet.recovered - options.failover - options.outage):.0f} s after the standby answered"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, (default, text) in ASSUMPTIONS.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=f"{text} (default: {default})".replace("%", "%%"))
    for name, value in report(Fleet(parser.parse_args()).run()):
        print(f"{name + ':':30} {value}")


if __name__ == "__main__":
    main()
