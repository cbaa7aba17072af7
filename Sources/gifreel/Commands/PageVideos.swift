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

/// The videos that replace the animations of pages. Single-threaded.
final class PageVideos {
    /// Animations that stay because the server gave no answer about them, such as one that is not running.
    private(set) var unanswered = 0
    private let server: String
    /// The server's URL in the form of sources, with a slash at its end; nil if it cannot be a source.
    private let root: String?
    private let client: ServerClient
    private let asksForFacts: Bool
    /// One of these has to match a source.
    private let patterns: [SourcePattern]
    /// The sources that are available through mounts only.
    private let privateSources: [SourceScope]
    private let mounts: [String: Mount]
    private let keys: SigningKeys
    private let expires: Int64?
    /// A page with the options of its video and its poster.
    private let page: Rendition
    /// The preset that addresses name; nil for none.
    private let preset: String?
    private let presets: RenditionPresets

    /// - Parameters:
    ///   - server: The address at which browsers reach the server, with or without a trailing slash.
    ///   - asksForFacts: Whether the server is asked for the facts of each GIF. It is always asked for those of other
    ///     sources, because most of them are still.
    ///   - patterns: The sources that the server may fetch.
    ///   - options: Options of videos and posters, as `name=value`.
    ///   - expires: The expiry of signatures in seconds since 1970; nil for none.
    init(
        server: String, asksForFacts: Bool, patterns: [SourcePattern], options: [String], mounts: [String: Mount],
        keys: SigningKeys, presets: RenditionPresets, expires: Int64?
    ) throws(SettingsError) {
        self.server = server.hasSuffix("/") ? String(server.dropLast()) : server
        root = (try? SourceURL(self.server + "/"))?.canonical
        client = ServerClient(server: server, token: nil)
        self.asksForFacts = asksForFacts
        self.patterns = patterns
        privateSources = mounts.values.filter(\.isPrivate).map { SourceScope(below: $0.origin) }
        self.mounts = mounts
        self.keys = keys
        self.expires = expires
        self.presets = presets
        var reader = OptionReader(format: .html, defaults: RenditionDefaults(presets: presets))
        do throws(Problem) {
            for option in options { try reader.readPair(option[...]) }
            page = try reader.finish()
            preset = reader.preset
        } catch {
            throw SettingsError(error.detail)
        }
    }

    /// The video of the animation at a URL. Blocks if the server is asked for facts.
    ///
    /// - Returns: Nil if the server cannot have the source, if the settings refuse the source, or if the server reports that it cannot
    ///   convert the source, and for the server's own files.
    func video(_ url: String) -> EmbeddedVideo? {
        guard let source = try? SourceURL(url), !isServed(source) else { return nil }
        let addresses = RenditionAddresses(
            of: source, mounts: mounts, keys: keys, expires: expires, preset: preset, presets: presets)
        guard isAllowed(source, isMounted: addresses.isMounted) else { return nil }
        func address(_ rendition: Rendition) -> String { server + addresses.target(rendition) }
        let video = page.inFormat(.mp4)
        let mayBeStill = !source.path.lowercased().hasSuffix(".gif")
        guard asksForFacts || mayBeStill else {
            return EmbeddedVideo(
                sources: [EmbeddedVideo.Source(url: address(video), type: video.format.contentType)],
                poster: address(page.inFormat(.jpg)))
        }
        let target = addresses.target(Rendition(format: .json))
        guard let document = document(target, mayBeStill: mayBeStill) else { return nil }
        let facts = PageFacts(document.source.facts)
        guard let poster = try? facts.poster(of: page) else { return nil }
        // The AV1 comes first, once it is stored and known to be smaller: an encoder needs more time for it.
        let candidates = [video.encoded(by: .av1), video].compactMap(\.self)
        let videoBytes = document.renditions[video.canonicalText]?.bytes
        let sources = candidates.compactMap { rendition -> EmbeddedVideo.Source? in
            let stored = document.renditions[rendition.canonicalText]
            if rendition != video {
                guard let bytes = stored?.bytes, let videoBytes, Rendition.isWorthOffering(av1: bytes, besideH264: videoBytes)
                else { return nil }
            }
            return EmbeddedVideo.Source(url: address(rendition), type: stored?.type ?? rendition.format.contentType)
        }
        return EmbeddedVideo(
            sources: sources, poster: address(poster),
            size: facts.videoSize(of: page), loops: facts.playCount(of: page) != 1)
    }

    /// Whether the settings allow requests for renditions of the source. The address of its host and the port are left to the server.
    private func isAllowed(_ source: SourceURL, isMounted: Bool) -> Bool {
        patterns.contains { $0.matches(source) } && keys.permits(source)
            && (isMounted || !privateSources.contains { $0.contains(source) })
    }

    /// Whether the URL is one of the server's own: a rendition, a stored file, or a path of a mount. The site of the pages may have
    /// the same host, so that other URLs below the server's are sources.
    private func isServed(_ source: SourceURL) -> Bool {
        guard let root, source.canonical.hasPrefix(root) else { return false }
        let parts = source.canonical.dropFirst(root.count).split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first.map(String.init), parts.count == 2 else { return false }
        if let mount = mounts[first] { return !source.canonical.hasPrefix(mount.base) }
        let rest = parts[1].lowercased()
        return first == "object" || ["http:", "https:", "http%3a", "https%3a"].contains { rest.hasPrefix($0) }
    }

    /// The server's facts of a source; nil if it has none. The reason is printed, unless it is that a picture is still.
    private func document(_ target: String, mayBeStill: Bool) -> FactsDocument? {
        do throws(HTTPError) {
            let answer = try client.send("GET", target)
            if answer.status == 200, let document = FactsDocument(json: answer.body) { return document }
            if !Self.isAboutSource(answer) { unanswered += 1 }
            if !mayBeStill || answer.status != 415 { StandardError.write("gifreel: \(server)\(target): \(answer.status)\n") }
        } catch {
            unanswered += 1
            StandardError.write("gifreel: \(server)\(target): \(error)\n")
        }
        return nil
    }

    /// Whether an error answers the question: it is one of Gifreel about the source, and not about the load or the request.
    private static func isAboutSource(_ answer: ClientResponse) -> Bool {
        struct Document: Decodable {
            let code: String
        }
        guard let code = try? JSONDecoder().decode(Document.self, from: Data(answer.body)).code else { return false }
        return !["overloaded", "draining", "rate_limited", "bad_signature", "expired_signature"].contains(code)
    }
}
