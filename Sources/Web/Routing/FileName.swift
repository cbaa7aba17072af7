internal import Media
internal import SystemIO

/// The name under which clients save a rendition: the last segment of the source's URL, with the extension of the rendition.
///
/// The segment is untrusted, so nothing is kept that could name a directory, hide an extension or end a field.
struct FileName: Equatable {
    let text: String

    /// The longest stem, in bytes.
    private static let longest = 120
    private static let sourceExtensions = Set(SourceFormat.allCases.flatMap(\.fileExtensions))

    /// - Parameters:
    ///   - sourceURL: In canonical form.
    ///   - fileExtensions: The extensions of the rendition. The name keeps the segment's extension if it is listed, and gets
    ///     the first one otherwise.
    init(of sourceURL: String, _ fileExtensions: [String]) {
        let path = sourceURL[...].before(UInt8(ascii: "?"), UInt8(ascii: "#"))
        let start = path.firstRange(of: "://")?.upperBound ?? path.startIndex
        let last = path[start...].parts(at: UInt8(ascii: "/"), keepingEmpty: true).dropFirst().last ?? ""
        var stem = Self.cleaned(PercentEncoding.decode(last) ?? "")
        var fileExtension = fileExtensions.first ?? ""
        if let (name, ending) = stem[...].splitAtExtension {
            let isListed = fileExtensions.contains(ending)
            if isListed { fileExtension = ending }
            if isListed || Self.sourceExtensions.contains(ending) { stem = String(name) }
        }
        while stem.utf8.count > Self.longest { stem.removeLast() }
        text = "\(stem.isEmpty ? "animation" : stem).\(fileExtension)"
    }

    /// Removes invisible characters, and replaces characters that have a meaning in clients' file systems.
    private static func cleaned(_ text: String) -> String {
        var cleaned = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: continue
            case .spaceSeparator: cleaned.append(" ")
            default: cleaned.append(#"/\:*?"<>|"#.unicodeScalars.contains(scalar) ? "_" : scalar)
            }
        }
        // A leading dot hides a file, and one at the end is dropped by Windows.
        return String(String(cleaned).drop { $0 == "." || $0 == " " })
    }

    /// The value of `Content-Disposition` (RFC 6266). A name with non-ASCII characters appears in both forms.
    var disposition: String {
        let plain = String(String.UnicodeScalarView(text.unicodeScalars.map { $0.isASCII && $0 != "%" ? $0 : "_" }))
        let value = "inline; filename=\"\(plain)\""
        // RFC 8187 section 3.2.1: unreserved characters are the intersection of what both standards permit.
        return plain == text ? value : "\(value); filename*=UTF-8''\(PercentEncoding.encode(text))"
    }
}
