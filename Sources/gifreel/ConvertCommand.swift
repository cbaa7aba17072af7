internal import ArgumentParser
internal import Foundation

struct ConvertCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "convert",
        abstract: "Converts GIF files without a server.",
        usage: "gifreel convert IN.gif OUT.mp4 [options]\n       gifreel convert --to DIR A.gif B.gif … [options]",
        discussion: """
            OUT may be a directory. With --to, a directory among the inputs stands for all files below it whose name ends in \
            .gif; the results keep their paths below it.
            """)

    @Option(name: .customLong("to"), help: "Write the results to this directory, which is created if it does not exist.")
    var directory: String?

    @Option(help: "mp4, jpg, png, webp or json. Default: the extension of OUT; mp4 with --to and on standard output.")
    var format: String?

    @OptionGroup(title: "Options of the rendition") var options: RenditionOptions

    @Argument(help: "IN and OUT, - for standard input and output; with --to any number of GIFs and directories.")
    var files: [String]

    func validate() throws {
        if directory == nil && files.count != 2 { throw ValidationError("Give IN and OUT, or --to DIR and GIFs.") }
    }

    func run() throws {
        let plan: ConvertPlan
        do throws(ConvertPlan.Mistake) {
            plan =
                if let directory {
                    try ConvertPlan(inputs: files, directory: directory, fileExtension: format ?? "mp4")
                } else {
                    try ConvertPlan(input: files[0], output: files[1], fileExtension: format ?? "mp4")
                }
        } catch {
            throw ValidationError(error.description)
        }
        let showsProgress = directory != nil && isatty(2) == 1
        let code = Convert(plan: plan, format: format, options: options.pairs, showsProgress: showsProgress).run()
        if code != 0 { throw ExitCode(code) }
    }
}
