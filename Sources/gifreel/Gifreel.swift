import ArgumentParser
import Service

/// The command line. Synchronous on purpose: `serve` and `convert` fork their worker process before any thread exists.
@main
struct GifreelCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gifreel",
        abstract: "Turns animated GIFs into looping, muted H.264 MP4s.",
        version: "gifreel \(Gifreel.version)",
        subcommands: [
            ServeCommand.self, ConvertCommand.self, FramesCommand.self, PurgeCommand.self, SignCommand.self, ZygoteCommand.self,
        ])
}
