package import SystemIO

/// A request as the handler receives it: a view of its head, which is valid during the call and cannot be copied. Values that are
/// needed later are read from it during the call.
package struct HTTPRequest: ~Copyable {
    /// Stays at its address as long as the request exists: a head is large, and copying it counts references.
    let head: UnsafePointer<RequestHead>
    let generatedID: UInt64
    let origin: TrustedProxies.Origin

    /// The client's address: the peer's, or the one that a trusted proxy reports; nil on a Unix socket that is not trusted. The unspecified
    /// address `::` if a trusted proxy reports no valid address.
    package var clientAddress: IPAddress? { origin.client }

    package var method: HTTPMethod { head.pointee.method }

    /// The origin-form of the target: path and query as sent, neither decoded nor normalized; visible ASCII only, in which a
    /// percent sign may lack its two digits. It starts with `/`, except for `OPTIONS *`.
    package var target: String { String(decoding: targetBytes, as: UTF8.self) }

    /// The bytes of ``target``, valid as long as the request.
    package var targetBytes: UnsafeRawBufferPointer { head.pointee.targetBytes }

    /// The authority: host and port. Only its syntax was checked. Nil if a client of HTTP/1.0 sent none.
    package var host: String? {
        head.pointee.authority.isEmpty ? nil : String(decoding: head.pointee.authorityBytes, as: UTF8.self)
    }

    /// Whether the peer is a trusted proxy, whose fields about the request are believed.
    package var isFromTrustedProxy: Bool { origin.isTrusted }

    /// Whether the request seems to come through a proxy that the settings do not list, so that many clients share ``clientAddress``.
    package var isFromUnlistedProxy: Bool { origin.isUnlistedProxy(head.pointee) }

    /// The scheme that the client used, as reported by a trusted proxy (`Forwarded` or `X-Forwarded-Proto`); `http` otherwise.
    package var scheme: HTTPScheme { origin.scheme(head.pointee) ?? .http }

    /// The request's id, which the response repeats: the client's `X-Request-Id` if it consists of up to 64 letters, digits,
    /// `-`, `_`, `.` and `:`, else a generated one.
    package var id: String {
        if generatedID == 0, let given = head.pointee.first(.requestID) { return String(decoding: given, as: UTF8.self) }
        return RequestID.text(generatedID)
    }

    /// The value of the first field with that name.
    package func header(_ name: HTTPFieldName) -> String? {
        headerBytes(name).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The bytes of the value of the first field with that name, valid as long as the request.
    package func headerBytes(_ name: HTTPFieldName) -> UnsafeRawBufferPointer? {
        head.pointee.first(named: name)
    }

    /// Calls `body` with the bytes of the values of all fields with that name, in order. They are valid as long as the request.
    package func forEachValue(of name: HTTPFieldName, _ body: (UnsafeRawBufferPointer) -> Void) {
        head.pointee.forEachValue(of: name, body)
    }
}
