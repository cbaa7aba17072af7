internal import ArgumentParser
internal import Fetch
internal import Foundation
internal import Glibc
internal import Markup
internal import Media
internal import Renditions
internal import Settings
internal import SystemIO
internal import Web

/// `gifreel rewrite`: replaces the animations of HTML pages by videos.
struct RewriteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rewrite",
        abstract: "Replaces the GIFs of HTML pages by videos, and APNGs and WebPs if they are named.",
        usage: """
            gifreel rewrite --server https://gifs.example.com --base https://example.com/post/ [--facts] <page.html >new.html
            gifreel rewrite --server https://gifs.example.com --in-place public/*.html
            """,
        discussion: """
            Prints the pages one after the other. Only images change: those with data-gifreel="off", and those within picture, \
            video, audio, object or canvas, stay. The server is asked for each PNG and WebP: still ones stay. Mounts and signing keys are read from the settings, as by the server.
            """)

    @Option(help: "The address at which browsers reach Gifreel. Default: server.public_url.")
    var server: String?

    @Option(help: "The address of the page, which resolves relative links.")
    var base: String?

    @Option(
        help:
            "The formats that are replaced: gif, apng (also .png), webp, avif, mp4, mov and webm, separated by commas."
    )
    var sources = "gif"

    @Flag(help: "Asks the server for the size of each GIF, whether it plays once, and its stored videos.")
    var facts = false

    @Flag(help: "Rewrites the files, instead of printing the pages.")
    var inPlace = false

    @Option(name: .customLong("option"), help: "An option of the videos and posters, such as width=480. Can be repeated.")
    var options: [String] = []

    @Option(help: "When the signatures expire: a time from now (90s, 1h, 7d) or Unix seconds. Default: never.")
    var expires: String?

    @Option(
        name: .customLong("config"), help: "A YAML file with settings.", completion: .file(extensions: ["yaml", "yml"]))
    var configurationFile: String?

    @Option(name: .customLong("set"), help: "Sets a setting, such as --set mounts.media.origin=…. Can be repeated.")
    var settings: [String] = []

    @Argument(help: "The pages; - or nothing is standard input.")
    var files: [String] = []

    func validate() throws {
        if inPlace && (files.isEmpty || files.contains("-")) { throw ValidationError("--in-place needs files.") }
        do throws(SettingsError) { _ = try formats } catch { throw ValidationError(error.description) }
        if let server { try AdminServer.validatePublic(server) }
    }

    private var formats: [SourceFormat] {
        get throws(SettingsError) {
            var formats: [SourceFormat] = []
            for name in sources.split(separator: ",", omittingEmptySubsequences: false) {
                let name = name.trimmingCharacters(in: .whitespaces).lowercased()
                guard let format = SourceFormat.allCases.first(where: { $0.name == name }) else {
                    throw SettingsError(
                        "--sources names \"\(name)\"; the formats are gif, apng, webp, avif, mp4, mov and webm.")
                }
                if !formats.contains(format) { formats.append(format) }
            }
            return formats
        }
    }

    /// Rewrites one page after the other. Exits with 1 if a page cannot be read or written, or if the server did not say for an
    /// image whether it can be replaced. Such an image stays, and the other images and pages are still rewritten.
    func run() throws {
        do {
            let values = try SettingsReader.read(
                file: configurationFile, environment: ProcessInfo.processInfo.environment, flags: settings
            ).settings
            let configuration = try ServiceConfiguration(values)
            guard let server = server ?? configuration.web.publicURL else {
                throw SettingsError("Give --server, or set server.public_url.")
            }
            let videos = try PageVideos(
                server: server, asksForFacts: facts, patterns: configuration.fetch.allow, options: options,
                mounts: configuration.web.mounts, keys: configuration.web.signingKeys, presets: configuration.defaults.presets,
                expires: try expires.map(SignCommand.time))
            let extensions = try formats.flatMap(\.fileExtensions)
            for file in files.isEmpty ? ["-"] : files {
                let rewriter = PageRewriter(base: base, extensions: extensions, videos: videos.video)
                if inPlace { try replace(file, rewriter) } else { try printPage(file, rewriter) }
            }
            if videos.unanswered > 0 {
                let images = videos.unanswered == 1 ? "1 image stays" : "\(videos.unanswered) images stay"
                throw SettingsError("\(images) because the server did not answer for them.")
            }
        } catch {
            StandardError.write("gifreel: \(error)\n")
            throw ExitCode.failure
        }
    }

    private func replace(_ path: String, _ rewriter: PageRewriter) throws {
        var rewriter = rewriter
        let page = rewriter.append(try Files.read(path)) + rewriter.finish()
        guard rewriter.count > 0 else { return }
        do throws(SystemError) {
            let file = try OutputFile(path)
            do throws(SystemError) {
                try DescriptorIO.write(page, to: file.descriptor.number)
                try file.complete()
            } catch {
                file.discard()
                throw error
            }
        } catch {
            throw SettingsError("\(path) cannot be written: \(String(cString: strerror(error.code))).")
        }
    }

    private func printPage(_ path: String, _ rewriter: PageRewriter) throws {
        var rewriter = rewriter
        var outputError: SystemError?
        do throws(FileError) {
            try Files.forEachPiece(of: path) { piece throws(SystemError) in
                do throws(SystemError) {
                    try DescriptorIO.write(rewriter.append(piece), to: STDOUT_FILENO)
                } catch {
                    outputError = error
                    throw error
                }
            }
        } catch {
            throw outputError.map { SettingsError("Standard output cannot be written: \($0).") } ?? error
        }
        try DescriptorIO.write(rewriter.finish(), to: STDOUT_FILENO)
    }
}
