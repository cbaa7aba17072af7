internal import Crypto
internal import Foundation

/// What a page may load and run: the value of `Content-Security-Policy` (CSP level 3).
///
/// Styles and scripts stand in the pages themselves and are allowed by their hashes, so nothing that gets into a page
/// by other ways is ever run.
enum PagePolicy {
    /// - Parameters:
    ///   - style: The page's one style sheet.
    ///   - script: The page's one script, if it has one.
    ///   - directives: What is allowed beyond that.
    static func value(style: [UInt8], script: [UInt8]?, _ directives: [String]) -> String {
        var all = ["default-src 'none'", "base-uri 'none'", "style-src \(hash(style))"]
        if let script { all.append("script-src \(hash(script))") }
        // No page makes markup of text, so none has to be allowed to.
        all += ["require-trusted-types-for 'script'", "trusted-types 'none'"]
        return (all + directives).joined(separator: "; ")
    }

    private static func hash(_ text: [UInt8]) -> String {
        "'sha256-\(Data(SHA256.hash(data: text)).base64EncodedString())'"
    }
}
