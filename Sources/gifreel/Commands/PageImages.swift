internal import Fetch
internal import Foundation
internal import HTTPClient
internal import Markup
internal import Media
internal import Prewarm
internal import Renditions
internal import Settings
internal import SystemIO
internal import Web

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
    private var answers: [String: Answer] = [:]

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
        if asksForFacts || !source.path.lowercased().hasSuffix(".gif") {
            switch answer(about: url, addresses) {
            case .changes: break
            case .stays(let reason): return .stay(reason)
            }
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

    /// The server's answer about a source.
    private enum Answer {
        case changes
        case stays(String)
    }

    /// The member `page` of the server's facts.
    private struct Verdict: Decodable {
        let `as`: String
        let reason: String?

        var answer: Answer {
            if `as` != "stay" { return .changes }
            switch reason {
            case "still": return .stays("it is a still picture")
            case "tiny": return .stays("it is tiny")
            case "saving": return .stays("no other format saves enough")
            default: return .stays("the server cannot convert it")
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
        let wanted = urls.filter { answers[$0] == nil }
        for start in stride(from: 0, to: wanted.count, by: 500) {
            guard let list = try? JSONEncoder().encode(Array(wanted[start...].prefix(500))),
                let answer = try? client.send(
                    "POST", "/facts", body: (text: String(decoding: list, as: UTF8.self), type: "application/json")),
                let images = try? JSONDecoder().decode(Images.self, from: Data(answer.body)).images
            else { return }
            for image in images where image.state == "known" { answers[image.url] = image.page.answer }
        }
    }

    private func answer(about url: String, _ addresses: RenditionAddresses) -> Answer {
        if let answer = answers[url] { return answer }
        let answer = fetchedAnswer(addresses.target(Rendition(format: .json)))
        answers[url] = answer
        return answer
    }

    private func fetchedAnswer(_ target: String) -> Answer {
        struct Document: Decodable {
            let page: Verdict
        }
        do throws(HTTPError) {
            let answer = try client.send("GET", target)
            if answer.status == 200, let document = try? JSONDecoder().decode(Document.self, from: Data(answer.body)) {
                return document.page.answer
            }
            if Self.isAboutSource(answer) {
                return .stays(answer.status == 415 ? "it is not an animation" : "the server answers \(answer.status)")
            }
            unanswered += 1
            return .stays("the server answers \(answer.status)")
        } catch {
            unanswered += 1
            return .stays("the server does not answer: \(error)")
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
