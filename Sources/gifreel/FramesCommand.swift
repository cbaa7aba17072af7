internal import ArgumentParser
internal import Foundation

struct FramesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "frames", abstract: "Writes a GIF's composed frames as raw RGBA, with meta.json.")

    @Argument(help: "The GIF.")
    var file: String

    @Argument(help: "The directory to write into.")
    var directory: String

    func run() throws {
        let gif = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
        if let failure = try FrameDump.write(gif, to: directory) {
            FileHandle.standardError.write(Data("\(file): \(failure)\n".utf8))
            throw ExitCode(1)
        }
    }
}
