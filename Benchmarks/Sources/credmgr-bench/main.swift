import Glibc

// credmgr-bench fill HOME ACCOUNTS OTHERS    a vault with that many accounts of "bench", and that many other providers
// credmgr-bench throughput PROCESSES ROUNDS COMMAND…    JSON: milliseconds of one process, and of that many at once
// credmgr-bench micro PROVIDERS KEY    JSON: microseconds of the small steps, and of each descriptor in a folder
let arguments = Array(CommandLine.arguments.dropFirst())
do {
  switch (arguments.first, arguments.count) {
  case ("fill", 4):
    guard let count = Int(arguments[2]), let others = Int(arguments[3]) else { exit(2) }
    try Filling.fill(home: arguments[1], count: count, others: others)
  case ("micro", 3):
    print(try Micro.report(providers: arguments[1], keyFile: arguments[2]))
  case ("throughput", 4...):
    guard let processes = Int(arguments[1]), let rounds = Int(arguments[2]), rounds > 1 else { exit(2) }
    print(try Spawning.report(processes: processes, rounds: rounds, command: Array(arguments.dropFirst(3))))
  default:
    print("usage: credmgr-bench fill HOME ACCOUNTS OTHERS | micro PROVIDERS KEY | throughput PROCESSES ROUNDS COMMAND…")
    exit(2)
  }
} catch {
  print("credmgr-bench: \(error)")
  exit(1)
}
