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

/// `gifreel rewrite`: replaces the addresses of animations in HTML pages with addresses that negotiate.
struct RewriteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rewrite",
        abstract: "Replaces addresses of GIFs, or of other named formats, in HTML pages with addresses that negotiate.",
        usage: """
            gifreel rewrite --server https://gifs.example.com --base https://example.com/post/ [--facts] <page.html >new.html
            gifreel rewrite --server https://gifs.example.com --in-place public/*.html
            """,
        discussion: """
            Prints the pages one after the other. The elements stay, and nothing but the addresses of images changes. A page with a \
            new address also gets the tag of gifreel.js, for the buttons that pause. Feeds, emails and AMP pages stay. Standard error \
            says what changed, and what stays for which reason. The server is asked about each PNG and WebP: still ones stay. Mounts \
            and signing keys are read from the settings, as by the server.
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

    @Option(
        name: .customLong("for"),
        help: "What the documents are: page, feed, mail or amp. Only pages change. Default: detected from the markup.")
    var kind: PageKind?

    @Flag(help: "Asks the server what each GIF becomes: still, tiny and well compressed ones stay.")
    var facts = false

    @Flag(inversion: .prefixedNo, help: "Adds the tag of gifreel.js before </body>, unless the page has it.")
    var script = true

    @Flag(help: "Rewrites the files, instead of printing the pages.")
    var inPlace = false

    @Option(name: .customLong("option"), help: "An option of the renditions, such as quality=50. Can be repeated.")
    var options: [String] = []

    @Option(help: "When the signatures expire: a time from now (90s, 1h, 7d) or Unix seconds. Default: never.")
    var expires: String?

    @OptionGroup var settings: SettingsArguments

    @Argument(help: "The pages; - or nothing is standard input.", completion: .file())
    var files: [String] = []

    func validate() throws {
        if inPlace && (files.isEmpty || files.contains("-")) { throw ValidationError("--in-place needs files.") }
        do throws(SettingsError) { _ = try formats } catch { throw ValidationError(error.description) }
        if let server { try AdminServer.validatePublic(server) }
        // Publishing systems pass an empty base for a text without an address.
        if let base, !base.isEmpty { try AdminServer.validateBase(base) }
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

    /// Rewrites one page after the other. Exits with 1 if a page cannot be read or written, or if the server gave no answer
    /// about an image. Such a page or image stays, and the others are still rewritten.
    func run() throws {
        let values = try settings.read().settings
        let configuration = try ServiceConfiguration(values)
        guard let server = server ?? configuration.web.publicURL else {
            throw SettingsError("Give --server, or set server.public_url.")
        }
        let images = try PageImages(
            server: server, asksForFacts: facts, rules: configuration.web.sources, options: options,
            mounts: configuration.web.mounts, keys: configuration.web.signingKeys, presets: configuration.defaults.presets,
            expires: try expires.map(SignCommand.time))
        let extensions = try formats.flatMap(\.fileExtensions)
        let isSigned = !configuration.web.signingKeys.isEmpty
        var hasFailed = false
        for file in files.isEmpty ? ["-"] : files {
            do {
                let document = try Files.read(file)
                let page = rewrite(document, called: file, images, extensions) {
                    scriptTag(server, images, isSigned: isSigned)
                }
                if !inPlace {
                    try DescriptorIO.write(page, to: STDOUT_FILENO)
                } else if page != document {
                    try Files.write(page, to: file)
                }
            } catch let error as FileError {
                StandardError.writeLine("gifreel: \(error)")
                hasFailed = true
            }
        }
        if images.unanswered > 0 {
            let words = images.unanswered == 1 ? "1 image stays" : "\(images.unanswered) images stay"
            throw SettingsError("\(words) because the server did not answer for them.")
        }
        if hasFailed { throw ExitCode.failure }
    }

    /// The rewritten document, or the document if it is no page. Writes to standard error what changes and what stays.
    private func rewrite(
        _ document: [UInt8], called file: String, _ images: PageImages, _ extensions: [String], script tag: () -> String
    ) -> [UInt8] {
        let name = file == "-" ? "standard input" : file
        let kind = kind ?? PageKind(of: document)
        guard kind == .page else {
            StandardError.writeLine("gifreel: \(name): stays, because it is \(kind.words); --for page rewrites it")
            return document
        }
        var urls: [String] = []
        _ = PageRewriter.rewrite(document, base: base, extensions: extensions) { url in
            urls.append(url)
            return .stay("")
        }
        images.ask(about: urls)
        // Only a first pass determines the mount for the script's tag.
        for url in urls { _ = images.decision(url) }
        let page = PageRewriter.rewrite(
            document, base: base, extensions: extensions, script: script ? tag() : nil, decide: images.decision)
        if page.changed > 0 {
            StandardError.writeLine(
                "gifreel: \(name): \(page.changed) \(page.changed == 1 ? "element negotiates" : "elements negotiate")")
            if !page.hasScript { StandardError.writeLine("gifreel: \(name): has no </body>; add \(tag())") }
        }
        for remainder in page.remaining {
            StandardError.writeLine("gifreel: \(name): \(remainder.link) stays: \(remainder.reason)")
        }
        return page.bytes
    }

    /// The tag of the script, with the attributes that the addresses need.
    private func scriptTag(_ server: String, _ images: PageImages, isSigned: Bool) -> String {
        let root = server.hasSuffix("/") ? String(server.dropLast()) : server
        // XHTML requires a value for every attribute.
        var attributes = "src=\"\(root)/gifreel.js\" defer=\"\""
        if let mount = images.mount { attributes += " data-mount=\"\(mount.name)\" data-origin=\"\(mount.origin)\"" }
        if isSigned { attributes += " data-signed=\"\"" }
        if sources != "gif" { attributes += " data-sources=\"\(sources)\"" }
        return "<script \(attributes)></script>"
    }
}

extension PageKind: ExpressibleByArgument {
    fileprivate var words: String {
        switch self {
        case .page: "a page"
        case .feed: "a feed"
        case .mail: "an email"
        case .amp: "an AMP page"
        }
    }
}
