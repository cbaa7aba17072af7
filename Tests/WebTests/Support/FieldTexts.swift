import HTTP
import Sandbox

@testable import Web

// Fields as texts, for tests.

/// Calls `body` with the bytes of a text.
func withBytes<Value>(of text: String, _ body: (UnsafeRawBufferPointer) throws -> Value) rethrows -> Value {
    try Array(text.utf8).withUnsafeBytes { try body($0) }
}

extension AcceptField {
    /// - Parameter values: The values of all fields of a request.
    init(_ values: [String]) {
        self.init()
        for value in values { withBytes(of: value) { add($0) } }
    }
}

extension MultipartParser {
    init?(form contentType: String?) throws {
        guard let contentType else { return nil }
        guard let parser = try withBytes(of: contentType, { try MultipartParser(form: $0) }) else { return nil }
        self = parser
    }
}
