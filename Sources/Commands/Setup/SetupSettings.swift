import CredmgrDescriptors
import CredmgrMessages
import CredmgrPlatform
import CredmgrText

extension Setup {
  /// Shows the variables that have a default, such as the host of a server, and asks which of them differ.
  func askForSettings(_ adding: inout AddingProvider, _ title: String) throws(CommandError) {
    // The user named other values in the login that led here.
    if login?.contains("--set") == true { return }
    // A redirect is registered as it is shown, and each login asks for its own variables.
    let variables = adding.addition.descriptor.variables.filter { variable in
      !["", nil].contains(variable.defaultValue) && variable.format != .redirect && !variable.isSecret
        && !variable.isAtLogin
    }
    if variables.isEmpty { return }
    context.tell("settings of \(title):")
    let rows = variables.map { variable in
      let help = variable.help.map { " (\($0))" } ?? ""
      return (left: "\(variable.name)=\(variable.defaultValue ?? "")", right: Message.visible(help))
    }
    Terminal.writeError(Layout.table(rows, width: Terminal.width))
    while true {
      let text = try Question.answer("Another value? (NAME=VALUE, never a secret; Enter to continue)")
      if text.isEmpty { return }
      let name = String(text.prefix { $0 != "=" })
      guard let variable = variables.first(where: { $0.name == name }), name.count < text.count else {
        context.tell("type a name from the list, \"=\" and the value")
        continue
      }
      let value = String(text.dropFirst(name.count + 1))
      guard variable.accepts(value), !value.isEmpty else {
        context.tell("this is not a valid value of \(name)")
        continue
      }
      adding.variables[name] = value
    }
  }
}
