internal import ArgumentParser
internal import Settings

/// Guesses the intended name of an unknown command or option. The parser reports the first consequence of such a mistake, for
/// instance that an argument is missing.
enum CommandSuggestion {
    /// A sentence about the first unknown name of a command line; nil if all names are known.
    static func sentence(for arguments: [String]) -> String? {
        guard let first = arguments.first else { return nil }
        let commands = GifreelCommand.configuration.subcommands.filter { $0.configuration.shouldDisplay }
        let names = commands.compactMap { $0.configuration.commandName }
        guard let command = commands.first(where: { $0.configuration.commandName == first }) else {
            // `help` is a command of the parser, and an option in first place belongs to the root command.
            guard !first.hasPrefix("-"), first != "help" else { return nil }
            return "There is no command \(first).\(hint(first, names))"
        }
        let options = options(of: command)
        for argument in arguments.dropFirst() {
            // Nothing after it is an option.
            if argument == "--" { break }
            let name = String(argument.prefix { $0 != "=" })
            guard name.hasPrefix("--"), !options.contains(name) else { continue }
            return "\(first) has no option \(name).\(hint(name, options))"
        }
        return nil
    }

    /// The long names of the options of a command and of its subcommands.
    private static func options(of command: any ParsableCommand.Type) -> [String] {
        ([command] + command.configuration.subcommands).flatMap { command in
            GifreelCommand.helpMessage(for: command).matches(of: /--[a-z][a-z-]*/).map { String($0.output) }
        }
    }

    private static func hint(_ name: String, _ candidates: [String]) -> String {
        Spelling.nearest(to: name, among: candidates).map { " Did you mean \($0)?" } ?? ""
    }
}
