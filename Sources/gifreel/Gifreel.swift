internal import ArgumentParser
internal import Foundation
internal import Sandbox
internal import Settings

/// The command line. It is synchronous because `convert` forks its worker process before any other thread exists.
@main
struct GifreelCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gifreel",
        abstract: "Turns animated GIFs into looping, muted H.264 MP4s.",
        version: "gifreel \(Gifreel.version)",
        subcommands: [
            ServeCommand.self, HealthCommand.self, ConvertCommand.self, FramesCommand.self, PrewarmCommand.self,
            PurgeCommand.self, StoreCommand.self, SignCommand.self, RewriteCommand.self, SettingsCommand.self,
            ZygoteCommand.self,
        ])

    /// Runs a command as ArgumentParser does, except that `prewarm` exits with 2 for wrong arguments: 1 means that entries failed.
    static func main() {
        do {
            var command = try parseAsRoot()
            try command.run()
        } catch  where exitCode(for: error) == .validationFailure && CommandLine.arguments.dropFirst().first == "prewarm" {
            FileHandle.standardError.write(Data((fullMessage(for: error) + "\n").utf8))
            Foundation.exit(2)
        } catch {
            exit(withError: error)
        }
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

    func run() {
        print(format.text, terminator: "")
    }
}

/// The hidden command that the server runs to replace a zygote that ended: the parent of the worker processes.
struct ZygoteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: Zygote.command, shouldDisplay: false)

    /// Serves the parent process over descriptor 3 until that ends.
    func run() {
        Zygote.serve()
    }
}
