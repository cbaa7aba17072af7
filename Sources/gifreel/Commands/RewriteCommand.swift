internal import ArgumentParser
internal import Fetch
internal import Foundation
internal import Glibc
internal import HTTPClient
internal import Markup
internal import Media
internal import Prewarm
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
        if let server { try AdminServer.validateURL("--server", server, example: "https://gifs.example.com") }
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

/// The new addresses of the animations of pages. Single-threaded.
final class PageImages {
    /// The number of animations that stay because the server did not answer, for instance because it is not running.
    private(set) var unanswered = 0
    /// The mount that serves images of the pages; nil if none does. Of several, the first.
    private(set) var mount: (name: String, origin: String)?
    private let server: String
    /// The server's URL in the form of sources, with a slash at its end; nil if it cannot be a source.
    private let root: String?
    private let client: ServerClient
    private let asksForFacts: Bool
    private let rules: SourceRules
    private let mounts: [String: Mount]
    private let keys: SigningKeys
    private let expires: Int64?
    /// A video with the options of all addresses.
    private let rendition: Rendition
    /// The preset that addresses name; nil for none.
    private let preset: String?
    private let presets: RenditionPresets
    /// Why sources stay, as the server says, by their URLs; nil for those that change.
    private var reasons: [String: String?] = [:]

    /// - Parameters:
    ///   - server: The address at which browsers reach the server, with or without a trailing slash.
    ///   - asksForFacts: Whether the server is asked what each GIF becomes. It is always asked about other sources, because
    ///     most of them are still.
    ///   - options: Options of the renditions, as `name=value`.
    init(
        server: String, asksForFacts: Bool, rules: SourceRules, options: [String], mounts: [String: Mount],
        keys: SigningKeys, presets: RenditionPresets, expires: Int64?
    ) throws(SettingsError) {
        self.server = server.hasSuffix("/") ? String(server.dropLast()) : server
        root = (try? SourceURL(self.server + "/"))?.canonical
        client = ServerClient(server: server, token: nil)
        self.asksForFacts = asksForFacts
        self.rules = rules
        self.mounts = mounts
        self.keys = keys
        self.expires = expires
        self.presets = presets
        var reader = OptionReader(format: .mp4, defaults: RenditionDefaults(presets: presets))
        for option in options { try translating(try reader.readPair(option[...]), to: SettingsError.init) }
        rendition = try translating(try reader.finish(), to: SettingsError.init)
        preset = reader.preset
    }

    /// Decides about the animation at a URL. Blocks if the server is asked.
    ///
    /// It stays if the settings refuse the source, if the server reports that the source stays, or if the URL is one of the
    /// server's own.
    func decision(_ url: String) -> PageRewriter.Decision {
        guard let source = try? SourceURL(url) else { return .stay("its address is not the URL of a source") }
        if isServed(source) { return .stay("it is a file of the server") }
        // The script knows one mount, and gives no button to addresses below another.
        let addresses = RenditionAddresses(
            of: source, mounts: mounts.filter { mount == nil || $0.key == mount?.name }, keys: keys, expires: expires,
            preset: preset, presets: presets)
        guard isAllowed(source, isMounted: addresses.isMounted) else { return .stay("the settings refuse it") }
        if asksForFacts || !source.path.lowercased().hasSuffix(".gif"), let reason = reason(url, addresses) {
            return .stay(reason)
        }
        if mount == nil, let name = addresses.mountName, let base = mounts[name]?.rule.base { mount = (name, base) }
        return .replace(
            address: server + addresses.automatic(of: rendition),
            still: keys.isEmpty ? nil : server + addresses.target(rendition.inFormat(.webp)))
    }

    /// Whether the settings allow requests for renditions of the source. The address of its host and the port are left to the
    /// server.
    private func isAllowed(_ source: SourceURL, isMounted: Bool) -> Bool {
        let rights = rules.rights(to: source)
        return rights.refusal != .pattern && keys.permits(source) && (isMounted || !rights.needsMount)
    }

    /// Whether the URL is one of the server's own: a rendition, a stored file, or a path of a mount. The site of the pages may
    /// have the same host, so that other URLs below the server's are sources.
    private func isServed(_ source: SourceURL) -> Bool {
        guard let root, source.canonical.hasPrefix(root) else { return false }
        let parts = source.canonical.dropFirst(root.count).split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first.map(String.init), parts.count == 2 else { return false }
        if let mount = mounts[first] { return !source.canonical.hasPrefix(mount.rule.base) }
        let rest = parts[1].lowercased()
        return first == "object" || ["http:", "https:", "http%3a", "https%3a"].contains { rest.hasPrefix($0) }
    }

    // MARK: What the server says

    /// The member `page` of the server's facts.
    private struct Verdict: Decodable {
        let `as`: String
        let reason: String?

        /// Why the source stays, in words; nil if it changes.
        var words: String? {
            if `as` != "stay" { return nil }
            switch reason {
            case "still": return "it is a still picture"
            case "tiny": return "it is tiny"
            case "saving": return "no other format saves enough"
            default: return "the server cannot convert it"
            }
        }
    }

    /// Asks the server about the sources of a page at once. ``decision(_:)`` asks about those that the server does not know yet
    /// one by one, and the server fetches them.
    func ask(about urls: [String]) {
        struct Images: Decodable {
            struct Image: Decodable {
                let url: String
                let state: String
                let page: Verdict
            }
            let images: [Image]
        }
        // With signing keys, each source is requested separately: signing each is as good as signing the list.
        guard asksForFacts, keys.isEmpty else { return }
        let wanted = urls.filter { reasons[$0] == nil }
        for start in stride(from: 0, to: wanted.count, by: 500) {
            guard let list = try? JSONEncoder().encode(Array(wanted[start...].prefix(500))),
                let answer = try? client.send(
                    "POST", "/facts", body: (text: String(decoding: list, as: UTF8.self), type: "application/json")),
                let images = try? JSONDecoder().decode(Images.self, from: Data(answer.body)).images
            else { return }
            for image in images where image.state == "known" { reasons.updateValue(image.page.words, forKey: image.url) }
        }
    }

    private func reason(_ url: String, _ addresses: RenditionAddresses) -> String? {
        if let known = reasons[url] { return known }
        let reason = fetchedReason(addresses.target(Rendition(format: .json)))
        reasons.updateValue(reason, forKey: url)
        return reason
    }

    private func fetchedReason(_ target: String) -> String? {
        struct Document: Decodable {
            let page: Verdict
        }
        do throws(HTTPError) {
            let answer = try client.send("GET", target)
            if answer.status == 200, let document = try? JSONDecoder().decode(Document.self, from: Data(answer.body)) {
                return document.page.words
            }
            if Self.isAboutSource(answer) {
                return answer.status == 415 ? "it is not an animation" : "the server answers \(answer.status)"
            }
            unanswered += 1
            return "the server answers \(answer.status)"
        } catch {
            unanswered += 1
            return "the server does not answer: \(error)"
        }
    }

    /// Whether an error concerns the source, rather than the load or the request.
    private static func isAboutSource(_ answer: ClientResponse) -> Bool {
        struct Document: Decodable {
            let code: String
        }
        guard let code = try? JSONDecoder().decode(Document.self, from: Data(answer.body)).code else { return false }
        return !["overloaded", "draining", "rate_limited", "bad_signature", "expired_signature"].contains(code)
    }
}
