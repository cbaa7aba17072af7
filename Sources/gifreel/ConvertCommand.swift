import ArgumentParser
import Foundation
import Service

struct ConvertCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "convert",
        abstract: "Converts GIF files without a server.",
        usage: "gifreel convert IN.gif OUT.mp4\n       gifreel convert --to DIR A.gif B.gif …")

    @Option(name: .customLong("to"), help: "Convert all files into this directory.")
    var directory: String?

    @Option(help: "1 to 100, default 60.")
    var quality: String?

    @Option(help: "RRGGBB: what transparent pixels are laid on; default ffffff.")
    var bg: String?

    @Argument(help: "IN and OUT, - for standard input and output; or with --to any number of GIFs.")
    var files: [String]

    func validate() throws {
        if directory == nil && files.count != 2 { throw ValidationError("Give IN and OUT, or --to DIR and GIFs.") }
        if directory != nil && Set(files.map(Self.name)).count != files.count {
            throw ValidationError("Two of the files would become one in the directory.")
        }
    }

    func run() throws {
        var options: [(name: String, value: String)] = []
        if let quality { options.append(("quality", quality)) }
        if let bg { options.append(("bg", bg)) }
        var pairs = [(input: files[0], output: files.count > 1 ? files[1] : "-")]
        if let directory {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            pairs = files.map { (input: $0, output: directory + "/" + Self.name($0)) }
        }
        let code = Convert(files: pairs, options: options, showsProgress: directory != nil && isatty(2) == 1).run()
        if code != 0 { throw ExitCode(code) }
    }

    /// The MP4's name: the GIF's with another extension.
    private static func name(_ path: String) -> String {
        let file = path.split(separator: "/").last.map(String.init) ?? path
        let stem = file.lowercased().hasSuffix(".gif") ? String(file.dropLast(4)) : file
        return stem + ".mp4"
    }
}
