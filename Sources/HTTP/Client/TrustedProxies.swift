internal import SystemIO

/// The fields in which proxies report the client and its scheme.
///
/// A proxy writes one kind and passes on the other as the client has sent it, so only the kind that the proxies write can be
/// believed.
package enum ForwardedField: Sendable {
    /// `X-Forwarded-For` and `X-Forwarded-Proto`.
    case xForwardedFor
    /// `Forwarded` (RFC 7239).
    case forwarded
}

/// The proxies whose fields about the client are trusted.
struct TrustedProxies: Sendable {
    private let proxies: ClientList
    private let field: ForwardedField

    /// Parses the setting (see ``ClientList``).
    ///
    /// - Parameter field: The fields that the proxies write.
    /// - Throws: The first entry that is malformed.
    init(_ entries: [String], _ field: ForwardedField) throws(ClientList.Malformed) {
        proxies = try ClientList(parsing: entries)
        self.field = field
    }

    /// The client of a request, and the trusted proxies between it and this server.
    struct Origin {
        /// The client's address; nil for a Unix socket whose peer is not trusted.
        let client: IPAddress?
        fileprivate let field: ForwardedField
        /// The list elements, counted from the end, that trusted proxies added; nil if the peer is not trusted.
        fileprivate let trustedElements: Int?
    }

    /// The address of a client that trusted proxies do not name: the unspecified address, which indicates the absence of an
    /// address (RFC 4291 section 2.5.2). Such a client has neither the rights of a proxy nor those of a Unix socket's peer.
    private static let unknownClient = IPAddress.v6(high: 0, low: 0)

    /// Finds the client of a request: the peer, or the last address before the trusted proxies in the fields that they write.
    ///
    /// The fields are read from their end, since only what trusted proxies added can be believed. An element without an
    /// address (`unknown`, an obfuscated name) ends the search: the elements before it may be forged.
    func origin(peer: IPAddress?, head: RequestHead) -> Origin {
        guard !proxies.isEmpty, proxies.contains(peer) else {
            return Origin(client: peer, field: field, trustedElements: nil)
        }
        var hops: [IPAddress?] = []
        switch field {
        case .xForwardedFor: head.forEachPart(of: .forwardedFor) { hops.append(Self.address($0)) }
        case .forwarded: head.forEachForwarded { hops.append($0?.parameter("for=").flatMap(Self.address)) }
        }
        var client = peer
        var count = 0
        for hop in hops.reversed() {
            count += 1
            guard let hop else {
                client = Self.unknownClient
                break
            }
            client = hop
            if !proxies.contains(hop) { break }
        }
        return Origin(client: client, field: field, trustedElements: count)
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

extension TrustedProxies.Origin {
    /// The scheme by which the client reached the outermost trusted proxy: `X-Forwarded-Proto`, or `proto` of `Forwarded`, of
    /// the element that names the client. Nil if the fields name none, or the peer is not trusted.
    ///
    /// - Parameter head: The head in which the origin was found.
    func scheme(_ head: RequestHead) -> HTTPScheme? {
        guard let trustedElements else { return nil }
        var schemes: [HTTPScheme?] = []
        switch field {
        case .xForwardedFor: head.forEachPart(of: .forwardedProto) { schemes.append(HTTPScheme($0)) }
        case .forwarded: head.forEachForwarded { schemes.append($0?.parameter("proto=").flatMap(HTTPScheme.init)) }
        }
        // Some proxies pass on a single value instead of a list. At least one element is trusted if the peer is.
        let index = max(0, schemes.count - max(1, trustedElements))
        return schemes.indices.contains(index) ? schemes[index] : nil
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

/// The pairs in one element of `Forwarded`.
private struct ForwardedElement {
    let pairs: [UnsafeRawBufferPointer]

    /// The value of a parameter without its quotes.
    ///
    /// - Parameter name: With the equals sign.
    func parameter(_ name: StaticString) -> UnsafeRawBufferPointer? {
        let length = name.utf8CodeUnitCount
        for pair in pairs where pair.count > length && pair.slice(0..<length).equalsIgnoringCase(name) {
            return pair.slice(length..<pair.count).unquoted
        }
        return nil
    }
}

extension RequestHead {
    /// Calls `body` with each part between commas in all fields of that kind, in order. These fields have no quoted strings: a
    /// quote that a client sends must not join the element of a proxy to its own.
    fileprivate func forEachPart(of known: KnownField, _ body: (UnsafeRawBufferPointer) -> Void) {
        forEach(known) { value in
            var start = 0
            for end in 0...value.count where end == value.count || value[end] == UInt8(ascii: ",") {
                let part = value.slice(start..<end).trimmed
                if !part.isEmpty { body(part) }
                start = end + 1
            }
        }
    }

    /// Calls `body` with each element of `Forwarded`, in order; with nil for a field line whose elements cannot be told apart.
    fileprivate func forEachForwarded(_ body: (ForwardedElement?) -> Void) {
        forEach(.forwarded) { value in
            guard let elements = value.parts(separatedBy: UInt8(ascii: ",")) else { return body(nil) }
            for element in elements { body(element.parts(separatedBy: UInt8(ascii: ";")).map(ForwardedElement.init)) }
        }
    }
}

extension UnsafeRawBufferPointer {
    /// These bytes without the quotes around them.
    fileprivate var unquoted: UnsafeRawBufferPointer {
        let quote = UInt8(ascii: "\"")
        return count >= 2 && first == quote && last == quote ? slice(1..<count - 1) : self
    }

    /// The trimmed parts between separators outside quoted strings (RFC 9110 section 5.6.4), except empty ones; nil if a quoted
    /// string does not end.
    fileprivate func parts(separatedBy separator: UInt8) -> [UnsafeRawBufferPointer]? {
        var parts: [UnsafeRawBufferPointer] = []
        var start = 0
        var isQuoted = false
        var isEscaped = false
        for (index, byte) in enumerated() {
            if isEscaped {
                isEscaped = false
            } else if isQuoted && byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isQuoted.toggle()
            } else if byte == separator && !isQuoted {
                parts.append(slice(start..<index).trimmed)
                start = index + 1
            }
        }
        guard !isQuoted else { return nil }
        parts.append(slice(start..<count).trimmed)
        return parts.filter { !$0.isEmpty }
    }
}
