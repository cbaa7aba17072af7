internal import ArgumentParser
internal import Foundation

/// The command line. It is synchronous because `convert` forks its worker process before any other thread exists.
@main
struct GifreelCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gifreel",
        abstract: "Turns animated GIFs into looping, muted H.264 MP4s.",
        version: "gifreel \(Gifreel.version)",
        subcommands: [
            ServeCommand.self, ConvertCommand.self, FramesCommand.self, PrewarmCommand.self, PurgeCommand.self,
            SignCommand.self, SettingsCommand.self, ZygoteCommand.self,
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
