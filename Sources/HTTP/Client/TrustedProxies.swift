internal import SystemIO

/// The proxies whose fields about the client are trusted.
struct TrustedProxies: Sendable {
    private let proxies: ClientList

    /// Parses the setting (see ``ClientList``).
    ///
    /// - Throws: The first entry that is malformed.
    init(_ entries: [String]) throws(ClientList.Malformed) {
        proxies = try ClientList(parsing: entries)
    }

    /// The client of a request, and the trusted proxies between it and this server.
    struct Origin {
        /// The client's address; nil for a Unix socket whose peer is not trusted.
        var client: IPAddress?
        /// The list elements, counted from the end, that trusted proxies added; nil if the peer is not trusted.
        var trustedElements: Int?
    }

    /// Finds the client of a request: the peer, or the last address before the trusted proxies in `Forwarded` (RFC 7239), or
    /// without that field in `X-Forwarded-For`.
    ///
    /// The fields are read from their end, since only what trusted proxies added can be believed. An element without an
    /// address (`unknown`, an obfuscated name) ends the search: the elements before it may be forged.
    func origin(peer: IPAddress?, head: RequestHead) -> Origin {
        guard !proxies.isEmpty, proxies.contains(peer) else { return Origin(client: peer) }
        var hops: [IPAddress?] = []
        if head.has(.forwarded) {
            head.forEachElement(of: .forwarded) { hops.append(Self.parameter("for=", of: $0).flatMap(Self.address)) }
        } else {
            head.forEachElement(of: .forwardedFor) { hops.append(Self.address($0)) }
        }
        var client = peer
        var count = 0
        for hop in hops.reversed() {
            count += 1
            guard let hop else { break }
            client = hop
            if !proxies.contains(hop) { break }
        }
        return Origin(client: client, trustedElements: count)
    }

    /// The scheme by which the client reached the outermost trusted proxy: `proto` of `Forwarded`, or without that field
    /// `X-Forwarded-Proto`, of the element that names the client. Nil if the fields name none.
    ///
    /// - Parameter trustedElements: From ``Origin``; at least one element is trusted if the peer is.
    static func scheme(_ head: RequestHead, trustedElements: Int) -> HTTPScheme? {
        var schemes: [HTTPScheme?] = []
        if head.has(.forwarded) {
            head.forEachElement(of: .forwarded) { schemes.append(parameter("proto=", of: $0).flatMap(HTTPScheme.init)) }
        } else {
            head.forEachElement(of: .forwardedProto) { schemes.append(HTTPScheme($0)) }
        }
        // Some proxies pass on a single value instead of a list.
        let index = max(0, schemes.count - max(1, trustedElements))
        return schemes.indices.contains(index) ? schemes[index] : nil
    }

    /// The value of a parameter in one element of `Forwarded`, without its quotes.
    private static func parameter(_ name: StaticString, of element: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        let length = name.utf8CodeUnitCount
        for pair in element.split(separator: UInt8(ascii: ";")) {
            let pair = UnsafeRawBufferPointer(rebasing: pair).trimmed
            guard pair.count > length, pair.slice(0..<length).equalsIgnoringCase(name) else { continue }
            return pair.slice(length..<pair.count).unquoted
        }
        return nil
    }

    /// An address with or without quotes, brackets and port.
    private static func address(_ bytes: UnsafeRawBufferPointer) -> IPAddress? {
        var text = Substring(String(decoding: bytes.unquoted, as: UTF8.self))
        if text.hasPrefix("[") {
            guard let close = text.firstIndex(of: "]") else { return nil }
            return IPAddress(String(text[text.index(after: text.startIndex)..<close]))?.unmapped
        }
        if let colon = text.firstIndex(of: ":"), colon == text.lastIndex(of: ":") { text = text[..<colon] }
        return IPAddress(String(text))?.unmapped
    }
}

/// The scheme of the URL that a client requested.
package enum HTTPScheme: String, Sendable {
    case http, https

    init?(_ name: UnsafeRawBufferPointer) {
        if name.equalsIgnoringCase("https") {
            self = .https
        } else if name.equalsIgnoringCase("http") {
            self = .http
        } else {
            return nil
        }
    }
}

extension UnsafeRawBufferPointer {
    /// These bytes without the quotes around them.
    fileprivate var unquoted: UnsafeRawBufferPointer {
        let quote = UInt8(ascii: "\"")
        return count >= 2 && first == quote && last == quote ? slice(1..<count - 1) : self
    }
}

extension RequestHead {
    /// Calls `body` with each element of the lists in all fields of that kind, in order.
    fileprivate func forEachElement(of known: KnownField, _ body: (UnsafeRawBufferPointer) -> Void) {
        forEach(known) { value in
            value.forEachListElement { element in
                body(element)
                return true
            }
        }
    }
}
