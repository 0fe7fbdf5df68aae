import Glibc

// credmgr-bench fill HOME ACCOUNTS OTHERS    a vault with that many accounts of "bench", and that many other providers
// credmgr-bench micro PROVIDERS KEY    JSON: microseconds of the small steps, and of each descriptor in a folder
let arguments = Array(CommandLine.arguments.dropFirst())
do {
  switch (arguments.first, arguments.count) {
  case ("fill", 4):
    guard let count = Int(arguments[2]), let others = Int(arguments[3]) else { exit(2) }
    try Filling.fill(home: arguments[1], count: count, others: others)
  case ("micro", 3):
    print(try Micro.report(providers: arguments[1], keyFile: arguments[2]))
  default:
    print("usage: credmgr-bench fill HOME ACCOUNTS OTHERS | micro PROVIDERS KEY")
    exit(2)
  }
} catch {
  print("credmgr-bench: \(error)")
  exit(1)
}
