internal import CSystem
internal import Glibc

/// An owned `CURLU` handle: the URL parser that libcurl uses when it connects.
///
/// A URL is checked and fetched with the same parser, so the two cannot disagree about it.
struct CurlURL: ~Copyable {
    private let handle: OpaquePointer

    /// Parses an absolute URL.
    init(_ text: String) throws(SourceURLError) {
        guard let handle = curl_url() else { throw .malformed }
        do throws(SourceURLError) {
            try Self.set(text, on: handle)
        } catch {
            curl_url_cleanup(handle)
            throw error
        }
        self.handle = handle
    }

    deinit {
        curl_url_cleanup(handle)
    }

    /// Replaces the URL with `reference`, which may be relative to the current URL (RFC 3986 section 5).
    mutating func resolve(_ reference: String) throws(SourceURLError) {
        try Self.set(reference, on: handle)
    }

    private static func set(_ text: String, on handle: OpaquePointer) throws(SourceURLError) {
        let code = curl_url_set(handle, CURLUPART_URL, text, UInt32(CURLU_DISALLOW_USER))
        guard code == CURLUE_OK else { throw error(for: code) }
    }

    /// Returns the whole URL, without the scheme's default port.
    func text() -> String? {
        part(CURLUPART_URL, flags: CURLU_NO_DEFAULT_PORT)
    }

    func scheme() -> String? { part(CURLUPART_SCHEME) }

    func path() -> String? { part(CURLUPART_PATH) }

    func query() -> String? { part(CURLUPART_QUERY) }

    /// Returns the zone of an IPv6 address (`%eth0`), which is valid only on one machine.
    func zone() -> String? { part(CURLUPART_ZONEID) }

    /// Returns the port as given, or the scheme's default.
    func port() -> String? {
        part(CURLUPART_PORT, flags: CURLU_DEFAULT_PORT)
    }

    /// Returns the host in ASCII: an international name in its `xn--` form, an IPv6 address in brackets.
    func host() -> String? {
        guard let host = part(CURLUPART_HOST) else { return nil }
        if host.utf8.allSatisfy({ $0 < 0x80 }) { return host }
        return Self.withUTF8Locale {
            // Up to version 8.17, libcurl leaks a host that it cannot convert, but only if the host alone is requested.
            // Converting the whole URL uses the same function without the leak, so it comes first.
            guard part(CURLUPART_URL, flags: CURLU_PUNYCODE) != nil else { return nil }
            return part(CURLUPART_HOST, flags: CURLU_PUNYCODE)
        }
    }

    private func part(_ part: CURLUPart, flags: Int32 = 0) -> String? {
        var value: UnsafeMutablePointer<CChar>?
        guard curl_url_get(handle, part, &value, UInt32(flags)) == CURLUE_OK, let value else { return nil }
        defer { curl_free(value) }
        return String(validatingCString: value)
    }

    /// Runs `body` with a UTF-8 locale on this thread. libidn2 decodes names with the charset of the thread's locale, and the
    /// `C` locale of the process would refuse every international name.
    private static func withUTF8Locale(_ body: () -> String?) -> String? {
        guard let locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nil) else { return nil }
        let previous = uselocale(locale)
        defer {
            uselocale(previous)
            freelocale(locale)
        }
        return body()
    }

    private static func error(for code: CURLUcode) -> SourceURLError {
        switch code {
        case CURLUE_USER_NOT_ALLOWED, CURLUE_BAD_USER, CURLUE_BAD_PASSWORD, CURLUE_BAD_LOGIN: .credentials
        case CURLUE_UNSUPPORTED_SCHEME, CURLUE_BAD_SCHEME, CURLUE_NO_SCHEME, CURLUE_BAD_SLASHES: .unsupportedScheme
        case CURLUE_BAD_PORT_NUMBER: .badPort
        case CURLUE_NO_HOST, CURLUE_BAD_HOSTNAME, CURLUE_BAD_IPV6, CURLUE_LACKS_IDN: .badHost
        default: .malformed
        }
    }
}
