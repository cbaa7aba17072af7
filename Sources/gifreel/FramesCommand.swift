internal import ArgumentParser

struct FramesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "frames", abstract: "Writes the composed frames of a GIF as raw RGBA, with meta.json.")

    @Argument(help: "The GIF; - is standard input.")
    var file: String

    @Argument(help: "The directory to write to, which is created if it does not exist.")
    var directory: String

    func run() throws {
        let code = FrameDump.run(file, to: directory)
        if code != 0 { throw ExitCode(code) }
    }
}
