internal import Foundation
package import HTTPClient
internal import SystemIO

/// A request that notifies a CDN of a purge, with placeholders (`purge.hooks`).
package struct PurgeHook: Sendable, Equatable {
    /// The name in the settings, in metrics and in the log.
    package let name: String
    private let url: String
    private let method: String
    private let fields: [String]
    private let body: String
    private let scopes: Set<PurgeNotice.Scope>

    /// The body of a hook without one.
    package static let plainBody = #"{"scope":{scope},"urls":{urls},"tags":{tags}}"#

    /// - Parameters:
    ///   - url: May contain `{url}` and `{tag}`.
    ///   - fields: As `Name: value`.
    ///   - body: May contain all placeholders; nil for ``plainBody``.
    ///   - scopes: The purges that call the hook.
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

    /// The time limit of a request.
    private static let timeout = Duration.seconds(10)

    /// The requests for a purge: one, or one for each URL or tag if a placeholder stands for a single one. None if the purge has no value
    /// for the placeholders.
    func requests(for notice: PurgeNotice) -> [ClientRequest] {
        guard scopes.contains(notice.scope) else { return [] }
        let text = url + body
        if text.contains("{url}") { return notice.urls.map { request(notice, url: $0) } }
        if text.contains("{tag}") { return notice.tags.map { request(notice, tag: $0) } }
        let isNamed = text.contains("{urls}") && !notice.urls.isEmpty || text.contains("{tags}") && !notice.tags.isEmpty
        let namesNothing = !text.contains("{urls}") && !text.contains("{tags}")
        return isNamed || namesNothing ? [request(notice)] : []
    }

    /// A request that shows whether the server of the hook answers, and purges nothing.
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

/// The removed content of a purge, as hooks name it.
package struct PurgeNotice: Sendable, Equatable {
    package enum Scope: String, Sendable, CaseIterable {
        case url
        case prefix
        case host
        case object
        case all
    }

    package let scope: Scope
    /// Addresses of renditions at this service: below mounts, with the URL in the path and in the query, and of objects. A cache may have
    /// others, with options of renditions that were not stored.
    package let urls: [String]
    /// The tags that cover all responses of the purged sources; see ``CDNTags``.
    package let tags: [String]
}
