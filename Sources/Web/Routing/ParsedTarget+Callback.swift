internal import Renditions
internal import SystemIO

extension ParsedTarget {
    /// The text of the target without its callback, which is no part of the address at which the rendition is found. The
    /// signature is that of the remaining options.
    ///
    /// - Parameters:
    ///   - text: The target as the client sent it.
    ///   - keys: The service's keys.
    func withoutCallback(_ text: String, keys: SigningKeys) -> String {
        guard callback != nil, var credentials else { return text }
        credentials.options.removeAll { $0.name == OptionReader.callback }
        let signed = SignedText(credentials.name, options: credentials.options, source: credentials.source)
        // A request that needs no signature must not obtain one.
        let signature = signed.flatMap { keys.only(key).signature(of: $0.text) }
        let (path, query) = text.pathAndQuery
        let segment = path.droppingBytes(1).before(UInt8(ascii: "/"))
        let words = RouteParser.words(segment)
        let rest = path[segment.endIndex...]
        let options = Self.rewritten(words.dropFirst(), signature)
        let first = ([String(words.first ?? "")] + options).joined(separator: ",")
        let start = "/\(first)\(rest)"
        // The query after a URL without encoding belongs to the source.
        if mount == nil, RouteParser.verbatimURL(rest.withoutLeadingSlashes) != nil { return start + query }
        let pairs = Self.rewritten(query.droppingBytes(1).parts(at: UInt8(ascii: "&"))[...], signature)
        return pairs.isEmpty ? start : start + "?" + pairs.joined(separator: "&")
    }

    /// Options as the client wrote them, without the callback and with another signature.
    private static func rewritten(_ options: ArraySlice<Substring>, _ signature: String?) -> [String] {
        options.compactMap { option -> String? in
            // The equals sign may be encoded too.
            switch PercentEncoding.decode(option)?[...].before(UInt8(ascii: "=")) {
            case OptionReader.callback[...]: nil
            case OptionReader.signature[...]: signature.map { "\(OptionReader.signature)=\($0)" } ?? String(option)
            default: String(option)
            }
        }
    }
}
