#if !FUZZ
    @testable import HTTPClient

    @testable import Store
#endif

/// What must hold of the answers of an S3 server, however malformed they are. The fuzzer looks for an answer for which it does not
/// hold.
enum S3Invariants {
    /// The first invariant that does not hold, in words; nil if all do.
    ///
    /// - Parameter bytes: A line of status and header fields, `404 name: value, name: value`, and the body.
    static func violation(_ bytes: UnsafeRawBufferPointer) -> String? {
        let parts = bytes.split(separator: 10, maxSplits: 1, omittingEmptySubsequences: false)
        let body = parts.count > 1 ? Array(parts[1]) : []
        if let root = XMLElement(document: body) {
            if let violation = document(root) ?? list(root) { return violation }
        }
        return error(String(decoding: parts[0], as: UTF8.self), body)
    }

    /// A document that is read can be written and read again, and does not nest more deeply than the limit.
    private static func document(_ root: XMLElement) -> String? {
        guard depth(root) <= 32 else { return "nested too deeply" }
        return XMLElement(document: Array(text(root).utf8)) == root ? nil : "written and read again: \(text(root))"
    }

    private static func depth(_ element: XMLElement) -> Int {
        1 + (element.children.map(depth).max() ?? 0)
    }

    private static func text(_ element: XMLElement) -> String {
        let escaped = element.text.unicodeScalars.reduce(into: "") { text, scalar in
            switch scalar {
            case "&", "<", ">": text += "&#\(scalar.value);"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return "<\(element.name)>\(escaped)\(element.children.map(text).joined())</\(element.name)>"
    }

    /// The numbers of a list are in range, and a list that continues says where.
    private static func list(_ root: XMLElement) -> String? {
        guard let page = S3ListPage(root) else { return nil }
        for entry in page.entries where entry.length < 0 || !(-62_200_000_000...253_500_000_000).contains(entry.modified) {
            return "an entry out of range: \(entry)"
        }
        return root.text("IsTruncated") == "true" && page.nextToken == nil ? "a list without an end" : nil
    }

    /// An error has a label and a sentence of one line, whatever the server sends.
    private static func error(_ line: String, _ body: [UInt8]) -> String? {
        let words = line.split(separator: " ", maxSplits: 1)
        guard let status = words.first.flatMap({ Int($0) }), (100...999).contains(status) else { return nil }
        var fields: [String: String] = [:]
        for field in (words.count > 1 ? words[1] : "").split(separator: ",") {
            let parts = field.split(separator: ":", maxSplits: 1)
            if parts.count == 2 { fields[parts[0].lowercased().filter { $0 != " " }] = parts[1].filter { $0 != " " } }
        }
        let code = S3ErrorBody(body).code
        guard code.utf8.count <= 64, code.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return "code \(code)" }
        let error = StoreError(ClientResponse(status: status, fields: fields, body: body, length: body.count))
        if case .throttled(let delay?) = error, !(.zero ... .seconds(86_400)).contains(delay) { return "delay \(delay)" }
        return error.label.isEmpty || error.description.isEmpty ? "an error without words" : nil
    }
}

/// The first inputs of the fuzzer.
enum S3Seeds {
    static let all: [[UInt8]] = [
        """
        200
        <?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name>\
        <IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;&#x41;</NextContinuationToken><Contents><Key>a/b</Key>\
        <LastModified>2026-11-22T06:44:00.707Z</LastModified><Size>12</Size></Contents></ListBucketResult>
        """,
        "503 retry-after: 7\n<Error><Code>SlowDown</Code><Message>a &lt; b</Message></Error>",
        "301 x-amz-bucket-region: eu-west-1\n<Error><Code>PermanentRedirect</Code><Region>eu</Region></Error>",
        "400\n<s3:Error a='1'><!-- c --><Code>AuthorizationHeaderMalformed</Code><Region>us-1</Region></s3:Error>",
        "404\n<Error><Code>NoSuchBucket</Code></Error>", "404\n", "500 \n\u{FEFF}<a><b/><c>\u{E9}</c></a>",
        "403\n<a>&#1114111;</a>",
        "200\n<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
    ].map { Array($0.utf8) }
}
