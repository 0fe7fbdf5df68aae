import Glibc

// credmgr-bench fill HOME COUNT    a vault with that many accounts of the provider "bench"
// credmgr-bench micro PROVIDERS    JSON: microseconds of the small steps, and of each descriptor in a folder
let arguments = Array(CommandLine.arguments.dropFirst())
do {
  switch (arguments.first, arguments.count) {
  case ("fill", 3):
    guard let count = Int(arguments[2]) else { exit(2) }
    try Filling.fill(home: arguments[1], count: count)
  case ("micro", 2):
    print(try Micro.report(providers: arguments[1]))
  default:
    print("usage: credmgr-bench fill HOME COUNT | micro PROVIDERS")
    exit(2)
  }
} catch {
  print("credmgr-bench: \(error)")
  exit(1)
}
