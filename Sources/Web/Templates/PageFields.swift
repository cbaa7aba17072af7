internal import Digests
internal import Foundation
internal import SystemIO

/// Entity tags of pages.
enum PageTag {
    /// A strong tag: a hash of the page.
    static func of(_ page: String) -> String { of(Array(page.utf8)) }

    static func of(_ bytes: [UInt8]) -> String {
        "\"\(Hex.encode(SHA256.hash(bytes).prefix(16)))\""
    }
}

/// The value of `Content-Security-Policy` for a page (CSP level 3).
///
/// Styles and scripts are inline and allowed by their hashes, so injected ones never run.
enum PagePolicy {
    /// - Parameters:
    ///   - style: The page's one style sheet.
    ///   - script: The page's one script, or nil.
    ///   - directives: Additional directives.
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
