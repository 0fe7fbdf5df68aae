import Commands
import OAuth
import Platform
import Text

/// `credmgr-manual`: writes the pages of the manual.
public enum ManualProgram {
  /// Runs the program; `arguments` begin with its name: the folder for the pages, and the text on descriptors.
  ///
  /// The pages are dated by `SOURCE_DATE_EPOCH` (reproducible-builds.org), else by the clock.
  ///
  /// - Returns: the exit status.
  public static func run(_ arguments: [String]) -> Int32 {
    guard arguments.count == 3 else {
      Terminal.writeError("usage: credmgr-manual FOLDER DESCRIPTORS.md\n")
      return ExitStatus.usage.rawValue
    }
    let moment = Environment.value("SOURCE_DATE_EPOCH").flatMap { Int64($0) } ?? SystemClock().now()
    let date = date(moment)
    do throws(POSIXError) {
      let text = String(decoding: try File.read(arguments[2], limit: 1 << 20), as: UTF8.self)
      try File.createDirectory(arguments[1])
      for page in CommandPages(date: date).all + [DescriptorPage(text, date: date).page] {
        try File.replace(Path.joining(arguments[1], page.fileName), Array(page.text.utf8))
      }
      for alias in CommandPages.aliases {
        try File.replace(Path.joining(arguments[1], alias.fileName), Array(alias.text.utf8))
      }
      return ExitStatus.done.rawValue
    } catch {
      StandardError.show(error.message, program: "credmgr-manual")
      return error.message.status.rawValue
    }
  }

  /// As mdoc(7) wants it: `November 21, 2026`.
  private static func date(_ moment: Int64) -> String {
    let months = [
      "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
      "December",
    ]
    let parts = Moment.format(moment).prefix(10).split(separator: "-").compactMap { Int($0) }
    guard parts.count == 3, months.indices.contains(parts[1] - 1) else { return "" }
    return "\(months[parts[1] - 1]) \(parts[2]), \(parts[0])"
  }
}
