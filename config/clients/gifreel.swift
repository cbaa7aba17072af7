import Foundation

/// The address of a rendition, signed where there is a code.
///
/// - Parameter code: HMAC-SHA256 with the key. With swift-crypto:
///   `{ HMAC<SHA256>.authenticationCode(for: Data($0.utf8), using: SymmetricKey(data: Data(key.utf8))) }`.
func gifreel(
    _ source: String, server: String = "", format: String = "mp4", options: [String: String] = [:],
    code: ((String) -> any Sequence<UInt8>)? = nil
) -> String {
    let plain = "-.:=_~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    func encode(_ text: some StringProtocol, keeping marks: String = "") -> String {
        let allowed = Set((plain + marks).utf8)
        return text.utf8.map { allowed.contains($0) ? String(UnicodeScalar($0)) : String(format: "%%%02X", Int($0)) }.joined()
    }
    let url = encode(source.prefix { $0 != "#" }, keeping: "!$%&'()*+,/;?@[]")
    let pairs = options.map({ "\($0)=\($1)" }).sorted()
    var parts = [format] + pairs.map { encode($0) }
    let signed = pairs.map { $0.replacingOccurrences(of: ",", with: ",,") }.joined(separator: ",")
    if let bytes = code?([format, signed, url].joined(separator: "\n")) {
        let text = Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-")
        parts.append("sig=" + text.replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: ""))
    }
    return server + "/" + parts.joined(separator: ",") + "/" + url
}
