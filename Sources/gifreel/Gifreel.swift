internal import ArgumentParser
internal import Foundation

/// The command line. Synchronous on purpose: `serve` and `convert` fork their worker process before any thread exists.
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

    /// As ArgumentParser has it, but that a `prewarm` that makes no sense ends with 2: its other failures have 1.
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
