package import SystemIO

/// A request as passed to the handler: a view of its head, which is valid only during the call and cannot be copied. Values
/// that are needed later must be read during the call.
package struct HTTPRequest: ~Copyable {
    /// Has a stable address while the request exists: a head is large, and copying it costs reference counting.
    let head: UnsafePointer<RequestHead>
    let generatedID: UInt64
    let origin: TrustedProxies.Origin

    /// The client's address: the peer's, or the address reported by a trusted proxy. Nil for an untrusted peer on a Unix
    /// socket that is no proxy. The unspecified address `::` if a trusted proxy reports no valid address, or if an untrusted one
    /// has none.
    package var clientAddress: IPAddress? { origin.client }

    package var method: HTTPMethod { head.pointee.method }

    /// The target in origin-form: path and query as sent, neither decoded nor normalized. Visible ASCII only; a percent sign
    /// may lack its two digits. It starts with `/`, except for `OPTIONS *`.
    package var target: String { String(decoding: targetBytes, as: UTF8.self) }

    /// The bytes of ``target``, valid while the request exists.
    package var targetBytes: UnsafeRawBufferPointer { head.pointee.targetBytes }

    /// The authority: host and port. Only its syntax was checked. Nil if an HTTP/1.0 client sent none.
    package var host: String? {
        head.pointee.authority.isEmpty ? nil : String(decoding: head.pointee.authorityBytes, as: UTF8.self)
    }

    /// Whether the peer is a trusted proxy, whose fields about the client are used.
    package var isFromTrustedProxy: Bool { origin.isTrusted }

    /// Whether the request seems to come through an unconfigured proxy, so that many clients share ``clientAddress``.
    package var isFromUnlistedProxy: Bool { origin.isUnlistedProxy }

    /// Whether ``clientAddress`` may be a proxy's, with any client behind it.
    package var isOfUnknownClient: Bool { origin.mayBeProxy }

    /// The client's scheme as reported by a trusted proxy (`Forwarded` or `X-Forwarded-Proto`); otherwise `http`.
    package var scheme: HTTPScheme { origin.scheme(head.pointee) ?? .http }

    /// The request's ID, which the response repeats: the client's `X-Request-Id` if it consists of up to 64 letters, digits,
    /// `-`, `_`, `.` and `:`, otherwise a generated ID.
    package var id: String {
        if generatedID == 0, let given = head.pointee.first(.requestID) { return String(decoding: given, as: UTF8.self) }
        return Hex.encode(generatedID)
    }

    /// Returns the value of the first field with this name.
    package func header(_ name: HTTPFieldName) -> String? {
        headerBytes(name).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns the bytes of the value of the first field with this name, valid while the request exists.
    package func headerBytes(_ name: HTTPFieldName) -> UnsafeRawBufferPointer? {
        head.pointee.first(named: name)
    }

    /// Calls `body` with the value of each field with this name, in order. The bytes are valid while the request exists.
    package func forEachValue(of name: HTTPFieldName, _ body: (UnsafeRawBufferPointer) -> Void) {
        head.pointee.forEachValue(of: name, body)
    }
}
