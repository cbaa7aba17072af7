internal import ArgumentParser
internal import CLinux
internal import Glibc
internal import Sandbox
internal import Settings
internal import SystemIO

/// The command line. It is synchronous because `convert` forks its worker process before any other thread exists.
@main
struct GifreelCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gifreel",
        abstract: "Turns animated GIFs into looping, muted H.264 MP4s.",
        version: "gifreel \(Gifreel.description)",
        subcommands: [
            ServeCommand.self, HealthCommand.self, DoctorCommand.self, ConvertCommand.self, FramesCommand.self,
            PrewarmCommand.self,
            PurgeCommand.self, CacheCommand.self, ExplainCommand.self, TopCommand.self, BlockCommand.self, StoreCommand.self,
            SignCommand.self,
            RewriteCommand.self,
            SettingsCommand.self,
            ZygoteCommand.self,
        ])

    /// The words after the program's name. `CommandLine` has none without `/proc`, or if a preloaded library has set a variable.
    private static let arguments: [String] = {
        var words: [String] = []
        while let word = clinux_argument(Int32(words.count + 1)) { words.append(String(cString: word)) }
        return words
    }()

    /// Runs a command and exits with its code, or with a failure if standard output could not be written.
    static func main() {
        StandardDescriptors.fillClosed()
        var code = ExitCode.success
        do {
            var command = try parseAsRoot(arguments)
            try command.run()
        } catch {
            code = report(error)
        }
        do throws(FileError) {
            try StandardOutput.flush()
        } catch {
            StandardError.writeLine("gifreel: \(error)")
            if code.isSuccess { code = .failure }
        }
        Glibc.exit(code.rawValue)
    }

    /// Prints the message of an error or of a request for help, and returns the exit code: 64 for wrong arguments.
    private static func report(_ error: any Error) -> ExitCode {
        let (code, message) = (exitCode(for: error), fullMessage(for: error))
        if code.isSuccess {
            if !message.isEmpty { print(message) }
        } else if code == .validationFailure, let suggestion = CommandSuggestion.sentence(for: arguments) {
            StandardError.writeLine("gifreel: \(suggestion)")
        } else if !message.isEmpty {
            // The description of an error of a command is a sentence; the parser words its own.
            let text = code == .failure ? "gifreel: \(error)" : message
            for line in text.split(separator: "\n", omittingEmptySubsequences: false) { StandardError.writeLine(String(line)) }
        }
        return code
    }
}

extension SettingsDocument: ExpressibleByArgument {}

struct SettingsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "settings",
        abstract: "Prints every setting with its default and meaning.",
        discussion: "To start with a configuration file of your own: gifreel settings >gifreel.yaml")

    @Option(help: "yaml: a configuration file; markdown: a table; man: the manual page gifreel.yaml(5).")
    var format = SettingsDocument.yaml

    /// Exits with 1 if standard output cannot be written.
    func run() throws {
        // `print` would lose the reason why a text that exceeds its buffer cannot be written.
        try StandardOutput.write(format.text)
    }
}

/// The hidden command that the server runs to replace a zygote that ended: the parent of the worker processes.
struct ZygoteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: Zygote.command, shouldDisplay: false)

    /// Serves the parent process over descriptor 3 until the parent ends.
    func run() {
        Zygote.serve()
    }
}

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
