internal import ArgumentParser
internal import Foundation

struct ConvertCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "convert",
        abstract: "Converts GIF files without a server.",
        usage: "gifreel convert IN.gif OUT.mp4 [options]\n       gifreel convert --to DIR A.gif B.gif … [options]")

    @Option(name: .customLong("to"), help: "Convert all files into this directory.")
    var directory: String?

    @Option(help: "mp4, jpg, png, webp or json; else OUT's extension says it, and mp4 is made with --to or on standard output.")
    var format: String?

    @OptionGroup(title: "Options of the rendition") var options: RenditionOptions

    @Argument(help: "IN and OUT, - for standard input and output; or with --to any number of GIFs.")
    var files: [String]

    func validate() throws {
        if directory == nil && files.count != 2 { throw ValidationError("Give IN and OUT, or --to DIR and GIFs.") }
        if directory != nil && Set(files.map(name)).count != files.count {
            throw ValidationError("Two of the files would become one in the directory.")
        }
    }

    func run() throws {
        var pairs = [(input: files[0], output: files.count > 1 ? files[1] : "-")]
        if let directory {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            pairs = files.map { (input: $0, output: directory + "/" + name($0)) }
        }
        let showsProgress = directory != nil && isatty(2) == 1
        let code = Convert(files: pairs, format: format, options: options.pairs, showsProgress: showsProgress).run()
        if code != 0 { throw ExitCode(code) }
    }

    /// The output's name: the GIF's with another extension.
    private func name(_ path: String) -> String {
        let file = path.split(separator: "/").last.map(String.init) ?? path
        let stem = file.lowercased().hasSuffix(".gif") ? String(file.dropLast(4)) : file
        return stem + "." + (format ?? "mp4")
    }
}
