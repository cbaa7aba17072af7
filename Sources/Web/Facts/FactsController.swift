internal import Fetch
internal import Foundation
internal import HTTP
internal import Media
internal import Renditions
internal import Store
internal import SystemIO

/// Handles `POST /facts`: the stored facts of a page's images, and how the page treats them (docs/api.md).
///
/// The answer is composed only from rows of the cache; nothing is fetched or opened.
struct FactsController: Sendable {
    let pipeline: RenditionPipeline
    let cache: Cache
    let background: BackgroundRenditions
    let lists: FactsLists
    let parser: RouteParser
    let access: AccessControl
    let keys: SigningKeys

    static let maxSources = 500
    private static let bodyLimit = 1 << 20
    /// Lists queue nothing while this many renditions wait, which leaves room for visitors' requests.
    private static let maxWaiting = 500

    /// Returns the sink for a list.
    ///
    /// - Throws: ``Problem`` if the query is invalid, or if too many lists are in progress.
    func sink(
        _ query: [QueryItem], _ client: ClientContext, _ request: borrowing HTTPRequest
    ) throws(Problem) -> any HTTPBodySink {
        try access.checkLoop(request)
        let order = try FactsOrder(query)
        guard let reservation = lists.admission.admit(client.share) else { throw .busy }
        return CollectingSink(limit: Self.bodyLimit, reservation: reservation) { body throws(Problem) in
            try await response(to: order, body, client)
        }
    }

    private func response(
        to order: FactsOrder, _ body: [UInt8], _ client: ClientContext
    ) async throws(Problem) -> HTTPResponse {
        let texts = try await lists.threads.perform { () throws(Problem) in try Self.texts(body) }
        let found = try await find(texts, order, client)
        let bytes = try await lists.threads.perform { () throws(Problem) in
            JSONText.encode(FactsList(images: found.map(entry)), inSnakeCase: true)
        }
        return HTTPResponse(status: 200, headers: HTTPResponse.unstored("application/json"), body: .bytes(bytes))
    }

    /// Finds the stored facts and renditions of a list's sources.
    private func find(
        _ texts: [String], _ order: FactsOrder, _ client: ClientContext
    ) async throws(Problem) -> [Item] {
        let items = try await lists.threads.perform { () throws(Problem) in
            var credentials = order.credentials
            credentials.source = texts.joined(separator: "\n")
            // Whether an unsigned list is enough depends on each source.
            let key = try access.signatures.verify(credentials, of: nil, rule: false)
            let items = texts.map { item($0, key, expires: credentials.expires) }
            if credentials.signature == nil, items.allSatisfy({ $0.problem?.isBadSignature == true }),
                let problem = items.first?.problem
            {
                throw problem
            }
            return items
        }
        var client = client
        client.allowance = access.allowance(client.network, items.lazy.compactMap { $0.target?.key }.first)
        var found: [Item] = []
        for item in items { found.append(try await look(for: item, order, client)) }
        return found
    }

    // MARK: The module

    /// Responds to `gifreel.js`, which asks how to treat images. The response is a module, because every
    /// Content-Security-Policy that allows the script allows a module of the same server. Missing renditions are queued.
    ///
    /// - Throws: ``Problem`` if the query is invalid, or if too many lists are in progress.
    func module(
        _ query: [QueryItem], _ client: ClientContext, _ request: borrowing HTTPRequest
    ) throws(Problem) -> HTTPReply {
        try access.checkLoop(request)
        // Browsers load a module once per address, so a page asks again with another `try`.
        if let other = query.first(where: { $0.name != "url" && $0.name != "try" }) {
            throw .badOption(other.name, "is unknown; GET /\(Route.factsModule) takes url and try")
        }
        let texts = query.filter { $0.name == "url" }.map(\.value)
        let order = try FactsOrder([QueryItem(name: "queue", value: "true")])
        guard let reservation = lists.admission.admit(client.share) else { throw .busy }
        return .attempt { () throws(Problem) in
            defer { withExtendedLifetime(reservation) {} }
            let found = try await find(texts, order, client)
            let answers = found.map { String(ModuleAnswer(entry($0)).rawValue) }.joined()
            return HTTPResponse(
                status: 200, headers: HTTPResponse.unstored("text/javascript; charset=utf-8"),
                body: .bytes(Array("export default \"\(answers)\"".utf8)))
        }
    }

    // MARK: Sources

    private static func texts(_ body: [UInt8]) throws(Problem) -> [String] {
        guard let texts = try? JSONDecoder().decode([String].self, from: Data(body)) else {
            throw .badRequest("The body must be a JSON list of the URLs of sources, or of paths of renditions.")
        }
        guard texts.count <= maxSources else {
            throw .badRequest("The list has \(texts.count) sources; the limit is \(maxSources).")
        }
        // A signature covers the list with one source per line.
        guard texts.allSatisfy({ !$0.utf8.contains { $0 < 0x20 } }) else {
            throw .badRequest("A source contains a control character.")
        }
        return texts
    }

    /// A source of a list, and its state in the cache.
    private struct Item: Sendable {
        let text: String
        let defaults: RenditionDefaults
        /// Nil if the source is refused.
        var target: ParsedTarget?
        var problem: Problem?
        /// The stored renditions by canonical text.
        var stored: [String: ListedRendition] = [:]
        var isKnownToFail = false
        var isQueued = false

        /// The rendition in a format that the page would show: with the options of the path, or with the defaults.
        func rendition(_ format: Rendition.Format) -> Rendition {
            guard case .rendition(let named, _) = target?.route, named.format != .json,
                named != defaults.rendition(named.format)
            else { return defaults.rendition(format) }
            let rendition = named.inFormat(format)
            // Pages offer videos in both encodings.
            return rendition.encoded(by: .h264) ?? rendition
        }

        /// The listed rendition with the same options.
        func rendition(_ listed: Rendition) -> Rendition {
            let rendition = rendition(listed.format)
            return rendition.encoded(by: listed.options.codec) ?? rendition
        }

        /// The facts of the source; nil if they are not stored.
        var facts: RenditionFacts? {
            stored[Rendition(format: .json).canonicalText].flatMap { RenditionFacts(stored: $0.object.facts) }
        }
    }

    private func item(_ text: String, _ key: SigningKey?, expires: Int64?) -> Item {
        var item = Item(text: text, defaults: pipeline.defaults)
        do throws(Problem) {
            let isPath = text.utf8.first == UInt8(ascii: "/")
            var target = try parser.parse(
                isPath ? text : "/\(Rendition.Format.json.rawValue)?url=\(PercentEncoding.encode(text))")
            guard target.source != nil else { throw .notFound("The path names no source.") }
            try access.authorize(&target, inListSignedBy: key)
            target.credentials?.expires = expires
            item.target = target
        } catch {
            item.problem = error
        }
        return item
    }

    // MARK: Stored renditions

    private func look(
        for item: Item, _ order: FactsOrder, _ client: ClientContext
    ) async throws(Problem) -> Item {
        var found = item
        guard let source = item.target?.source else { return found }
        do throws(CacheError) {
            // A source may have any number of other renditions, and a list may name it 500 times.
            let renditions = Rendition.listed.map(item.rendition) + [Rendition(format: .json)]
            for row in try await cache.list(renditions.map { AliasKey(source, $0) }) where row.freshness.isUsable {
                found.stored[row.rendition] = row
            }
        } catch {
            throw .busy
        }
        let facts = RenditionRequest(
            Rendition(format: .json), of: source, client: client.share, allowance: client.allowance)
        found.isKnownToFail = found.facts == nil && pipeline.isKnownToFail(facts)
        if order.queues, !client.wantsStoredOnly, !found.isKnownToFail,
            background.hasRoom(for: facts, within: Self.maxWaiting), let wanted = wanted(found)
        {
            var request = facts.with(wanted)
            request.alternative = Rendition(format: .original)
            // Pages show this picture immediately when the animation is paused.
            request.companion = found.rendition(.webp)
            found.isQueued = !pipeline.isKnownToFail(request) && background.add(request)
        }
        return found
    }

    /// Returns the rendition that the page would show; nil if there is none or it is stored.
    private func wanted(_ found: Item) -> Rendition? {
        let sequence = found.rendition(Rendition.Format.offered.contains(.avif) ? .avif : .awebp)
        let video = found.rendition(.mp4)
        guard let source = found.facts.map(PageRule.Source.init) else {
            // An AVIF that was requested by its own address is stored without the source's facts.
            return found.stored[sequence.canonicalText] == nil ? sequence : Rendition(format: .json)
        }
        let verdict = PageRule.verdict(source) { found.stored[found.rendition($0).canonicalText]?.object.length }
        if verdict.use == .stay { return nil }
        let wanted = PageRule.suitsVideo(source) && source.isTransparent == false ? [video] : [sequence]
        return wanted.first { found.stored[$0.canonicalText] == nil }
    }

    // MARK: The document

    private func entry(_ found: Item) -> FactsList.Entry {
        guard let target = found.target, let source = target.source else {
            return FactsList.Entry(
                url: found.text, state: .refused, code: found.problem?.code, page: .init(use: .stay, reason: .refused))
        }
        if found.isKnownToFail {
            return FactsList.Entry(url: found.text, state: .failed, page: .init(use: .stay, reason: .failed))
        }
        let addresses = RenditionAddresses(target, of: source, keys: keys)
        var renditions: [String: FactsDocument.Rendition] = [:]
        for listed in Rendition.listed {
            let rendition = found.rendition(listed)
            guard let row = found.stored[rendition.canonicalText] else { continue }
            renditions[listed.canonicalText] = FactsComposer.entry(
                addresses.target(rendition), rendition.format, length: row.object.length, facts: row.object.facts)
        }
        let page = PageAdvice.page(found.facts.map(PageRule.Source.init), addresses, found.rendition) { rendition in
            found.stored[rendition.canonicalText].map { row in
                let codecs = RenditionFacts(stored: row.object.facts)?.codecs
                return PageAdvice.Stored(bytes: row.object.length, type: rendition.format.mediaType(codecs: codecs))
            }
        }
        var entry = FactsList.Entry(url: found.text, page: page)
        if found.isQueued { entry.queued = true }
        guard let facts = found.facts else { return entry }
        FactsComposer.removeInferior(&renditions, sourceBytes: facts.sourceBytes)
        entry.state = .known
        entry.source = FactsList.Source(facts)
        entry.renditions = renditions
        return entry
    }
}

extension Freshness {
    /// Whether a rendition may be sent before its origin is asked.
    var isUsable: Bool {
        switch self {
        case .fresh, .stale: true
        case .expired, .unconfirmed: false
        }
    }
}

/// The query of `POST /facts`.
private struct FactsOrder: Sendable {
    /// Whether missing renditions are produced in the background.
    var queues = false
    /// The signature also covers the list, which the controller adds.
    var credentials: RequestSignature

    init(_ query: [QueryItem]) throws(Problem) {
        var reader = OptionReader(format: .json, named: Route.facts)
        for item in query {
            guard item.name == "queue" else {
                guard ["expires", "sig"].contains(item.name) else {
                    throw .badOption(item.name, "is unknown; POST /\(Route.facts) takes queue, expires and sig")
                }
                try reader.read(item.name, item.value)
                continue
            }
            guard item.value == "true" || item.value == "false" else {
                throw .badOption("queue", "must be true or false")
            }
            queues = item.value == "true"
        }
        credentials = reader.credentials
        credentials.options += query.filter { $0.name == "queue" }
    }
}

/// The instruction to `gifreel.js` for an image, as one digit.
private struct ModuleAnswer: OptionSet {
    let rawValue: Int

    static let isKnown = Self(rawValue: 1)
    /// The image is an animation that needs a button: one that plays for more than five seconds (WCAG 2.2, 2.2.2).
    static let moves = Self(rawValue: 2)
    /// `auto` has a better file than the source for most browsers.
    static let isStored = Self(rawValue: 4)
    /// The image is an endless animation that browsers play with less memory as a video.
    static let isVideo = Self(rawValue: 8)

    init(rawValue: Int) { self.rawValue = rawValue }

    init(_ entry: FactsList.Entry) {
        self = entry.state == .unknown ? [] : .isKnown
        if entry.page.use == .video, entry.source?.loopCount == 0 {
            insert(.isVideo)
            return
        }
        if let source = entry.source, source.animated, entry.page.still != nil {
            let plays = PlayCount.of(loopCount: source.loopCount)
            if plays.map({ Double($0) * source.duration > 5 }) ?? true { insert(.moves) }
        }
        let names = (entry.renditions ?? [:]).keys
        if entry.page.use != .stay, names.contains("avif") || names.contains("awebp") { insert(.isStored) }
    }
}

/// The body of a response to `POST /facts`.
struct FactsList: Encodable {
    enum State: String, Encodable, CaseIterable {
        case known
        case unknown
        case failed
        case refused
    }

    struct Source: Encodable {
        var type: String?
        var bytes: Int
        var width: Int
        var height: Int
        var frames: Int
        var duration: Double
        /// Null in the document if there is none, as in `json`.
        @Nullable var loopCount: Int?
        var animated: Bool
        var transparent: Bool?

        init(_ facts: RenditionFacts) {
            let source = PageRule.Source(facts)
            type = facts.sourceType
            (bytes, width, height, frames) = (source.bytes, source.width, source.height, source.frames)
            (duration, loopCount) = (source.duration, facts.loopCount)
            (animated, transparent) = (source.frames > 1, source.isTransparent)
        }
    }

    struct Entry: Encodable {
        /// The source as the client wrote it.
        let url: String
        var state = State.unknown
        /// The problem code of a refused source.
        var code: String?
        /// True if the rendition was queued.
        var queued: Bool?
        var source: Source?
        var renditions: [String: FactsDocument.Rendition]?
        var page: FactsDocument.Page
    }

    let images: [Entry]
}

/// The threads and limits of requests for the facts of many sources. It lives as long as the process.
///
/// Parsing and composing lists takes milliseconds, which neither an event loop nor the cooperative pool can spare.
struct FactsLists: Sendable {
    /// Bounds the lists in progress, in total and per client network.
    let admission = UploadAdmission(UploadAdmission.Limits(uploads: 64, bytes: 8 << 20))
    let threads = WorkThreads(count: 1, limit: 256, name: "gifreel-facts")
}
