import Foundation

/// The address of a rendition, signed where there is a code.
///
/// - Parameter code: HMAC-SHA256 with the key. With swift-crypto:
///   `{ HMAC<SHA256>.authenticationCode(for: Data($0.utf8), using: SymmetricKey(data: Data(key.utf8))) }`.
func gifreel(
    _ source: String, server: String = "", format: String = "mp4", options: [String: String] = [:],
    code: ((String) -> any Sequence<UInt8>)? = nil
) -> String {
    let allowed = Set("!$%&'()*+,-./:;=?@[]_~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
    let url = source.prefix { $0 != "#" }.utf8.map { byte in
        allowed.contains(byte) ? String(UnicodeScalar(byte)) : String(format: "%%%02X", Int(byte))
    }.joined()
    var parts = [format] + options.map({ "\($0)=\($1)" }).sorted()
    if let bytes = code?([format, parts.dropFirst().joined(separator: ","), url].joined(separator: "\n")) {
        let text = Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-")
        parts.append("sig=" + text.replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: ""))
    }
    return server + "/" + parts.joined(separator: ",") + "/" + url
}
