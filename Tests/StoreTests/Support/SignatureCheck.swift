import Digests
import Foundation
import SystemIO
import TestSupport

/// Computes the signature of a received request from the definition of AWS Signature Version 4, apart from the code under test.
enum SignatureCheck {
    /// Whether the request's signature is valid.
    ///
    /// - Parameter query: The canonical query, where sorting the parameters as texts does not give it.
    static func isValid(_ request: LoopbackRequest, secretKey: String, region: String, query: String? = nil) -> Bool {
        guard let authorization = request.headers["authorization"], let time = request.headers["x-amz-date"],
            let credential = value("Credential", in: authorization), let signed = value("SignedHeaders", in: authorization),
            let signature = value("Signature", in: authorization), let payload = request.headers["x-amz-content-sha256"]
        else { return false }
        let names = signed.split(separator: ";").map(String.init)
        // All that could change the meaning of the request must be signed.
        let mustBeSigned = request.headers.keys.filter { $0 == "host" || $0 == "content-type" || $0.hasPrefix("x-amz-") }
        // Proxies rewrite the others.
        guard names == names.sorted(), Set(names) == Set(mustBeSigned) else { return false }
        let query = query ?? request.query.split(separator: "&").sorted().joined(separator: "&")
        let fields = names.map { "\($0):\(singleSpaced(request.headers[$0] ?? ""))\n" }.joined()
        let canonical = [request.method, request.path, query, fields, signed, payload].joined(separator: "\n")
        let day = String(time.prefix(8))
        let scope = "\(day)/\(region)/s3/aws4_request"
        guard credential.hasSuffix("/\(scope)") else { return false }
        let text = ["AWS4-HMAC-SHA256", time, scope, Hex.encode(SHA256.hash(Data(canonical.utf8)))].joined(
            separator: "\n")
        var key = Data("AWS4\(secretKey)".utf8)
        for part in [day, region, "s3", "aws4_request", text] {
            key = Data(HMACSHA256(key: key).code(for: part.utf8))
        }
        return Hex.encode(key) == signature
    }

    private static func singleSpaced(_ value: String) -> String {
        value.split(separator: " ").joined(separator: " ")
    }

    private static func value(_ name: String, in authorization: String) -> String? {
        authorization.split(whereSeparator: { " ,".contains($0) }).first { $0.hasPrefix("\(name)=") }
            .map { String($0.dropFirst(name.count + 1)) }
    }
}
