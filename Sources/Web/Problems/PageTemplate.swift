internal import Digests
internal import Foundation
internal import HTTP
internal import SystemIO

/// An HTML page with placeholders of the form `{{name}}`.
struct PageTemplate: Sendable {
    private enum Piece: Sendable {
        case text(String)
        case placeholder(String)
    }

    private var pieces: [Piece] = []

    /// - Parameter bytes: UTF-8, from the program's resources.
    init(_ bytes: [UInt8]) {
        var rest = Substring(String(decoding: bytes, as: UTF8.self))
        while let open = rest.firstRange(of: "{{"), let close = rest[open.upperBound...].firstRange(of: "}}") {
            pieces.append(.text(String(rest[..<open.lowerBound])))
            pieces.append(.placeholder(String(rest[open.upperBound..<close.lowerBound])))
            rest = rest[close.upperBound...]
        }
        pieces.append(.text(String(rest)))
    }

    /// Returns the page with values for its placeholders.
    ///
    /// - Parameters:
    ///   - texts: Untrusted texts by placeholder. They are escaped.
    ///   - markup: Markup by placeholder, inserted unchanged.
    func filled(_ texts: [String: String], markup: [String: String] = [:]) -> String {
        var page = ""
        for piece in pieces {
            switch piece {
            case .text(let text): page += text
            case .placeholder(let name): page += markup[name] ?? texts[name].map(HTMLText.escape) ?? ""
            }
        }
        return page
    }
}

/// Untrusted text in the pages of this server, which are UTF-8. Visitors read it, so it must be valid and must not mislead.
enum HTMLText {
    /// Escapes everything that could end a quoted attribute or begin an element (HTML standard, section 13.1.2), and replaces
    /// control characters.
    static func escape(_ text: String) -> String {
        var escaped = ""
        escaped.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            case _ where isControl(scalar): escaped += "\u{fffd}"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    /// Terminal controls, and bidirectional controls, which would change the order of the text around them. Directional marks,
    /// which stand in many titles in Arabic and Hebrew, reorder no letters.
    static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x202a...0x202e, 0x2066...0x2069: true
        default: scalar.isControl
        }
    }
}

extension HTTPResource {
    /// Creates a resource from bytes in memory. Its strong entity tag is a hash of them.
    convenience init(_ bytes: [UInt8], _ contentType: String, lastModified: Int?, headers: HTTPHeaders) {
        self.init(
            bytes: bytes, contentType: contentType, entityTag: "\"\(Hex.encode(SHA256.hash(bytes).prefix(16)))\"",
            lastModified: lastModified, headers: headers)
    }
}

/// The value of `Content-Security-Policy` for a page (CSP level 3).
///
/// Styles and scripts are inline and allowed by their hashes, so injected ones never run.
enum PagePolicy {
    static func value(style: [UInt8], script: [UInt8]?, _ directives: [String]) -> String {
        var all = ["default-src 'none'", "base-uri 'none'", "style-src \(hash(style))"]
        if let script { all.append("script-src \(hash(script))") }
        // No script of ours creates markup from text, so no trusted-types policy is needed.
        all += ["require-trusted-types-for 'script'", "trusted-types 'none'"]
        return (all + directives).joined(separator: "; ")
    }

    private static func hash(_ text: [UInt8]) -> String {
        "'sha256-\(Data(SHA256.hash(text)).base64EncodedString())'"
    }
}
