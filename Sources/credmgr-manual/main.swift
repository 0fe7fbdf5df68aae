import CredmgrCommands
import CredmgrJSON
import CredmgrPlatform

// Prints the table of commands as JSON, from which script/manual generates the manual pages.

func json(_ option: Command.Option) -> JSONValue {
  [
    "name": .string(option.name), "short": .optional(option.short), "value": .optional(option.value),
    "help": .string(option.explanation),
  ]
}

func json(_ command: Command) -> JSONValue {
  let operations = command.operations.map { operation -> JSONValue in
    ["name": .string(operation.name), "operand": .optional(operation.operand), "help": .string(operation.help)]
  }
  let examples = command.examples.map { example -> JSONValue in
    // The manual indents examples by seven columns.
    let lines = Layout.shell(example.line, width: Layout.width - 7)
    return ["lines": .array(lines.map(JSONValue.string)), "help": .string(example.help)]
  }
  return [
    "name": .string(command.name), "page": .string(command.page), "operands": .string(command.operands),
    "summary": .string(command.summary), "operations": .array(operations), "options": .array(command.options.map(json)),
    "notes": .array(command.notes.map(JSONValue.string)), "examples": .array(examples),
  ]
}

let groups = Command.groups.map { group -> JSONValue in
  ["title": .string(group.title), "page": .string(group.page), "commands": .array(group.commands.map(json))]
}
let table: JSONValue = ["common": .array(Command.common.map(json)), "groups": .array(groups)]
try Terminal.writeOutput(table.encoded + "\n")
