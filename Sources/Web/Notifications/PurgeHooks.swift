package import CoreMetrics
internal import Fetch
internal import Foundation
package import HTTPClient
package import Logging
internal import Renditions
internal import Store
internal import Synchronization
internal import SystemIO
internal import Telemetry

/// Calls the hooks of the operator after purges, one request per hook at a time and in order.
///
/// Requests that do not fit into the queue are dropped and counted, and a restart discards waiting requests. Any thread; it
/// lives as long as the process.
package final class PurgeHooks: Sendable {
    /// The limits of the calls.
    package struct Limits: Sendable {
        package var deliveries = DeliveryLimits(
            items: 1000, attempts: 8, backoff: Backoff(first: .seconds(1), longest: .seconds(60)))
        /// Incomplete purges whose hooks wait for completion.
        package var purges = 1000
        /// The interval at which incomplete purges are checked.
        package var look = Duration.seconds(1)
        /// The time after which the hooks of an incomplete purge are called anyway, and again when it is complete.
        package var patience = Duration.seconds(30)
        /// The time after which an incomplete purge is no longer checked.
        package var longestWait = Duration.seconds(3600)
    }

    private struct HookRequest: Sendable {
        let hook: String
        let request: ClientRequest
    }

    private struct State {
        var hooks: [PurgeHook] = []
        var isStopped = false
        /// The notices of incomplete purges.
        var held: [Held] = []
        var look: Task<Void, Never>?
    }

    private struct Held {
        let notice: PurgeNotice
        let isComplete: @Sendable () async -> Bool
        let start: ContinuousClock.Instant
        var isCalled = false
    }

    private let state = Mutex(State())
    private let limits: Limits
    private let queue: DeliveryQueue<HookRequest>
    private let factory: any MetricsFactory
    private let logger: Logger

    /// - Parameter send: Makes one attempt to send a request.
    package init(
        _ limits: Limits = Limits(), factory: any MetricsFactory, logger: Logger,
        send: @escaping @Sendable (ClientRequest) async -> DeliveryResult
    ) {
        self.limits = limits
        self.factory = factory
        self.logger = logger
        queue = DeliveryQueue(limits.deliveries) {
            await send($0[0].request)
        } report: { requests, event in
            let hook = requests[0].hook
            switch event {
            case .delivered: Self.count("delivered", hook, factory)
            case .repeated: Self.count("repeated", hook, factory)
            case .failed, .stopped:
                Self.count("failed", hook, factory)
                let cause = if case .failed(let cause) = event { cause } else { "the server stops" }
                logger.warning("purge hook failed", metadata: ["hook": "\(hook)", "cause": "\(cause)"])
            }
        }
    }

    /// Replaces the hooks. Requests of former ones are still sent.
    package func setHooks(_ hooks: [PurgeHook]) {
        state.withLock { $0.hooks = hooks }
        // Creates the series at 0: an alert on an increase does not see the first value of a series.
        for hook in hooks {
            for result in ["failed", "dropped"] { Self.count(result, hook.name, factory, by: 0) }
        }
    }

    /// Whether a purge calls a hook.
    var isOn: Bool { state.withLock { !$0.hooks.isEmpty } }

    /// The number of requests that wait or are being sent.
    package var waiting: Int { queue.count }

    func call(_ notice: PurgeNotice) {
        for hook in state.withLock({ $0.hooks }) {
            for request in hook.requests(for: notice)
            where !queue.add(HookRequest(hook: hook.name, request: request), to: hook.name) {
                Self.count("dropped", hook.name, factory)
                logger.warning("purge hook dropped a request", metadata: ["hook": "\(hook.name)"])
            }
        }
    }

    /// Queues the requests of all hooks for a purge that some node has not applied. They are sent once all nodes have applied
    /// it, so that a CDN that asks again does not get an old rendition. If that takes long, they are sent anyway, and again at
    /// the end.
    ///
    /// - Parameter isComplete: Whether every node has applied the purge.
    func call(_ notice: PurgeNotice, when isComplete: @escaping @Sendable () async -> Bool) {
        let isHeld = state.withLock { state in
            guard !state.isStopped, state.held.count < limits.purges else { return false }
            state.held.append(Held(notice: notice, isComplete: isComplete, start: .now))
            if state.look == nil { state.look = Task { await self.lookAtHeld() } }
            return true
        }
        if !isHeld { call(notice) }
    }

    /// Calls the hooks of purges that have been completed, until none is left.
    private func lookAtHeld() async {
        while !Task.isCancelled {
            try? await Task.sleep(for: limits.look)
            var left: [Held] = []
            for var purge in takeHeld() {
                let time = ContinuousClock.now - purge.start
                if Task.isCancelled || time >= limits.longestWait {
                    if !purge.isCalled { call(purge.notice) }
                } else if await purge.isComplete() {
                    call(purge.notice)
                } else {
                    if time >= limits.patience, !purge.isCalled {
                        call(purge.notice)
                        purge.isCalled = true
                    }
                    left.append(purge)
                }
            }
            let isOver = state.withLock { [left] state in
                state.held = left + state.held
                if state.held.isEmpty { state.look = nil }
                return state.held.isEmpty
            }
            if isOver { return }
        }
        for purge in takeHeld() where !purge.isCalled { call(purge.notice) }
    }

    private func takeHeld() -> [Held] {
        state.withLock { state in
            defer { state.held = [] }
            return state.held
        }
    }

    private static func count(_ result: String, _ hook: String, _ factory: any MetricsFactory, by number: Int64 = 1) {
        let dimensions = [("hook", hook), ("result", result)]
        Counter(label: MetricFamily.purgeHooks.name, dimensions: dimensions, factory: factory).increment(by: number)
    }

    /// Refuses further calls, waits for queued requests, and drops those that remain after the limit.
    package func stop(within limit: Duration) async {
        // Ends the wait for incomplete purges, whose requests are sent now.
        let look = state.withLock { state in
            state.isStopped = true
            return state.look
        }
        look?.cancel()
        await look?.value
        await queue.stop(within: limit)
    }
}

/// A request that notifies a CDN of a purge, with placeholders (`purge.hooks`).
package struct PurgeHook: Sendable, Equatable {
    /// The name in the settings, in metrics and in the log.
    package let name: String
    private let url: String
    private let method: String
    private let fields: [String]
    private let body: String
    private let scopes: Set<PurgeNotice.Scope>

    static let plainBody = #"{"scope":{scope},"urls":{urls},"tags":{tags}}"#

    /// - Parameters:
    ///   - url: May contain `{url}` and `{tag}`.
    ///   - fields: As `Name: value`.
    ///   - body: May contain all placeholders; nil for ``plainBody``.
    package init(
        name: String, url: String, method: String, fields: [String], body: String?,
        scopes: [PurgeNotice.Scope] = PurgeNotice.Scope.allCases
    ) {
        self.name = name
        self.url = url
        self.method = method
        self.fields = fields
        self.scopes = Set(scopes)
        self.body = body ?? (url.contains("{url}") || url.contains("{tag}") ? "" : Self.plainBody)
    }

    private static let timeout = Duration.seconds(10)

    /// Returns the requests for a purge: one, or one for each URL or tag if a placeholder stands for a single URL or tag; none
    /// if the purge has no value for the placeholders.
    func requests(for notice: PurgeNotice) -> [ClientRequest] {
        guard scopes.contains(notice.scope) else { return [] }
        let text = url + body
        if text.contains("{url}") { return notice.urls.map { request(notice, url: $0) } }
        if text.contains("{tag}") { return notice.tags.map { request(notice, tag: $0) } }
        // The purge of everything has neither addresses nor tags.
        if text.contains("{scope}") { return [request(notice)] }
        let isNamed = text.contains("{urls}") && !notice.urls.isEmpty || text.contains("{tags}") && !notice.tags.isEmpty
        let namesNothing = !text.contains("{urls}") && !text.contains("{tags}")
        return isNamed || namesNothing ? [request(notice)] : []
    }

    /// A request that tests whether the hook's server answers, without purging anything.
    package var probe: ClientRequest {
        ClientRequest("HEAD", Self.filled(url, ["url": "", "tag": ""]), fields: fields, timeout: Self.timeout)
    }

    private func request(_ notice: PurgeNotice, url single: String = "", tag: String = "") -> ClientRequest {
        let values = [
            "url": Self.json(single), "tag": Self.json(tag), "urls": Self.json(notice.urls), "tags": Self.json(notice.tags),
            "scope": Self.json(notice.scope.rawValue),
        ]
        let target = Self.filled(
            url, ["url": PercentEncoding.encode(single), "tag": PercentEncoding.encode(tag)])
        let hasType = fields.contains { $0.lowercased().hasPrefix("content-type:") }
        return ClientRequest(
            method, target, fields: fields + (hasType || body.isEmpty ? [] : ["Content-Type: application/json"]),
            body: .bytes(Array(Self.filled(body, values).utf8)), timeout: Self.timeout)
    }

    /// Replaces `{name}` by its value. The values are not searched again.
    private static func filled(_ template: String, _ values: [String: String]) -> String {
        var result = ""
        var rest = template[...]
        while let open = rest.firstIndex(of: "{") {
            result += rest[..<open]
            rest = rest[open...]
            let name = rest.dropFirst().prefix { $0.isLetter }
            if let value = values[String(name)], rest[name.endIndex...].hasPrefix("}") {
                result += value
                rest = rest[name.endIndex...].dropFirst()
            } else {
                result += "{"
                rest = rest.dropFirst()
            }
        }
        return result + rest
    }

    private static func json(_ value: some Encodable) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        // Strings and lists of them can always be encoded.
        return (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) } ?? "null"
    }
}

/// The content that a purge removed, in the form that hooks send.
package struct PurgeNotice: Sendable, Equatable {
    package enum Scope: String, Sendable, CaseIterable {
        case url
        case prefix
        case host
        case object
        case all
    }

    package let scope: Scope
    /// Addresses of renditions at this service: below mounts, with the URL in the path and in the query, and of objects. A
    /// cache may hold others, with options of renditions that were not stored.
    package let urls: [String]
    /// The tags that cover all responses of the purged sources; see ``CDNTags``.
    package let tags: [String]
}

extension PurgeNotice {
    /// The notice of a purge.
    ///
    /// - Parameters:
    ///   - stored: The renditions of a source that were stored before its purge.
    ///   - mounts: The mounts by their names; those that serve a source give it addresses.
    ///   - publicURL: The address at which clients reach the service; without it, a notice has no URLs.
    init(_ scope: PurgeScope, stored: [ListedRendition] = [], mounts: [String: Mount], publicURL: String?) {
        var targets: [String] = []
        switch scope {
        case .url(let text):
            let source = MountRule.source(text, below: mounts.values.lazy.map(\.rule)) ?? (try? SourceURL(text))
            if let source { targets = Self.targets(of: source, stored, mounts) }
            targets += stored.map { "/object/\($0.object.id).\($0.object.fileExtension)" }
            self.init(.url, targets, publicURL, [CDNTags(text).source])
        case .prefix(let text):
            // The tag of a host covers the prefix and more; there is no smaller one. A prefix that ends within a host has none.
            let parts = text.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
            self.init(.prefix, [], publicURL, parts.count == 4 ? [CDNTags(text).host] : [])
        case .host(let host): self.init(.host, [], publicURL, [CDNTags("https://\(host)/").host])
        case .object(let id):
            // The facts of an upload are composed for each request, but have an address and may be in caches.
            let formats = Rendition.Format.offered.filter { $0.isSentAsStored || $0 == .json }
            targets = formats.map { "/object/\(id).\($0.rawValue)" }
            self.init(.object, targets, publicURL, [])
        case .all: self.init(.all, [], publicURL, [])
        }
    }

    private static func targets(
        of source: SourceURL, _ stored: [ListedRendition], _ mounts: [String: Mount]
    ) -> [String] {
        let listed = Rendition.listed + [Rendition(format: .json), Rendition(format: .html)]
        let renditions = listed + stored.compactMap { rendition($0.rendition) }.filter { !listed.contains($0) }
        // Adds the addresses below each mount that serves the source, and those without a mount.
        let serving = mounts.filter { $0.value.rule.serves(source) }.sorted { $0.key < $1.key }
        var targets: [String] = []
        for mount in serving.map({ [$0.key: $0.value] }) + (source.isOfMount ? [] : [[:]]) {
            let addresses = RenditionAddresses(of: source, mounts: mount, keys: SigningKeys(), expires: nil)
            guard !mount.isEmpty == addresses.isMounted else { continue }
            targets += renditions.map { addresses.target($0) }
            // Player pages name the addresses with file names.
            if !addresses.isMounted { targets += renditions.map { addresses.target($0, isNamed: true) } }
            targets.append(addresses.automatic)
            if addresses.isMounted { targets.append(addresses.sourceText) }
        }
        guard !source.isOfMount else { return targets }
        let url = PercentEncoding.encode(source.canonical)
        return targets
            + renditions.map { rendition in
                let options = rendition.canonicalOptions.map { "&\($0.name)=\($0.value)" }.joined()
                return "/\(rendition.format.rawValue)?url=\(url)\(options)"
            }
    }

    /// The rendition with a canonical text; nil if it has no address of its own.
    private static func rendition(_ text: String) -> Rendition? {
        let parts = text.split(separator: ",")
        guard let format = parts.first.flatMap({ Rendition.Format(rawValue: String($0)) }), format != .original else {
            return nil
        }
        var rendition = Rendition(format: format)
        for part in parts.dropFirst() {
            let pair = part.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, (try? rendition.set(String(pair[0]), to: String(pair[1]))) != nil else { return nil }
        }
        return rendition
    }

    private init(_ scope: Scope, _ targets: [String], _ publicURL: String?, _ tags: [String]) {
        self.init(scope: scope, urls: publicURL.map { base in targets.map { base + $0 } } ?? [], tags: tags)
    }
}
