#if !FUZZ
    @testable import Fetch
    import SystemIO
#endif

/// The invariants of source URLs and of the patterns and settings that they are compared with, for any text.
///
/// The fuzzer searches for bytes that violate one. This file is compiled into it together with the parsers.
enum URLInvariants {
    /// The first invariant that does not hold, in words; nil if all do.
    ///
    /// - Parameter bytes: A URL; behind a line feed a `Location`, and behind another one a setting's text.
    static func violation(_ bytes: UnsafeRawBufferPointer) -> String? {
        let lines = bytes.split(separator: 10, maxSplits: 2, omittingEmptySubsequences: false)
        let text = String(decoding: lines[0], as: UTF8.self)
        let url: WebAddress
        do throws(SourceURLError) {
            url = try WebAddress(text)
        } catch {
            return setting(lines.last.map { String(decoding: $0, as: UTF8.self) } ?? "", nil)
        }
        if let violation = shape(url) ?? sameAgain(url) ?? itsOwnPattern(url) { return violation }
        if lines.count > 1 {
            do throws(SourceURLError) {
                let next = try url.following(location: Array(lines[1]))
                if let violation = shape(next) ?? sameAgain(next) { return "redirect: \(violation)" }
            } catch {}
        }
        return lines.count > 2 ? setting(String(decoding: lines[2], as: UTF8.self), url) : nil
    }

    /// All parsers read the canonical form in the same way.
    private static func shape(_ url: WebAddress) -> String? {
        let text = url.canonical
        guard text.utf8.count <= SourceURL.maxLength else { return "too long" }
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "\\") && $0 != UInt8(ascii: "#") }) else {
            return "a character that no URL contains"
        }
        guard text.hasPrefix("\(url.scheme.rawValue)://"), (1...65535).contains(url.port), url.path.hasPrefix("/") else {
            return "parts"
        }
        let authority = text.dropFirst(url.scheme.rawValue.utf8.count + 3).prefix { $0 != "/" }
        guard !authority.isEmpty, !authority.contains(where: { "@%?,;|".contains($0) }), authority.lowercased() == authority
        else {
            return "authority \(authority)"
        }
        let port = url.port == url.scheme.defaultPort ? "" : ":\(url.port)"
        guard authority == url.hostName.inURL + port else { return "authority \(authority)" }
        let segments = url.path.split(separator: "/", omittingEmptySubsequences: false)
        guard !segments.contains("."), !segments.contains("..") else { return "dot segments" }
        return nil
    }

    /// The canonical form parses as itself, part by part.
    private static func sameAgain(_ url: WebAddress) -> String? {
        do throws(SourceURLError) {
            let again = try WebAddress(url.canonical)
            guard again.canonical == url.canonical, again.hostName == url.hostName, again.port == url.port,
                again.path == url.path, (again.query == nil) == (url.query == nil), again.scheme == url.scheme
            else { return "\(url.canonical) is \(again.canonical) when it is read again" }
            return nil
        } catch {
            return "\(url.canonical) cannot be read again: \(error)"
        }
    }

    /// The pattern with the text of a URL matches that URL, unless an origin could be led out of the path.
    private static func itsOwnPattern(_ url: WebAddress) -> String? {
        let text = url.canonical.prefix { $0 != "?" }
        guard !text.contains("*") else { return nil }
        guard let pattern = SourcePattern(String(text)) else { return "no pattern of its own: \(text)" }
        return pattern.matches(url) == (!url.comparable.isAmbiguous || url.path == "/") ? nil : "its own pattern: \(text)"
    }

    /// A setting parses or is refused, and matches nothing beyond its text.
    private static func setting(_ text: String, _ url: WebAddress?) -> String? {
        _ = TranslationPrefix(text)
        if let range = AddressRange(text), AddressRange(range.description) != range { return "range \(range)" }
        if let address = IPAddress(text), IPAddress(address.description) != address { return "address \(address)" }
        guard let url, let pattern = SourcePattern(text), pattern.matches(url) else { return nil }
        // A pattern with a path never matches more than the same pattern without one.
        let rest = text.firstRange(of: "://").map { text[$0.upperBound...] } ?? text[...]
        guard let wide = SourcePattern(String(rest.prefix { $0 != "/" })), wide.matches(url) else { return "pattern \(text)" }
        return nil
    }
}

/// The first inputs of the fuzzer.
enum URLSeeds {
    static let all: [[UInt8]] = [
        "http://example.com/a.gif?v=2", "HTTPS://User@EXAMPLE.com:443/a/../b.gif#x", "http://127.1/", "http://0x7f.0.0.1:8080/",
        "http://2130706433/", "http://[::ffff:7f00:1]/", "http://[fe80::1%25eth0]/", "http://bücher.example/é|\"<>.gif",
        "http://１２７.0.0.1/", "http://example.com./%2e%2E/%7Ejoe//x", "http://%31%32%37.0.0.1/",
        "http://a_b.xn--bcher-kva/?a[]=%zz",
        "http://example.com/a/b\n../c?d\nexample.com/a", "http://example.com/\n//evil.test/x\n*.example.com",
        "https://cdn-7.example.com:8443/up/x.gif\n/y\nhttps://cdn-*.example.com:8443/up*", "http://a.test/\n?q\n10.0.0.0/8",
        "x\n\nfd00::/8", "x\n\n64:ff9b::/96", "http://a.test/\nhttp:///b\n[::1]:80/x",
    ].map { Array($0.utf8) }
}
