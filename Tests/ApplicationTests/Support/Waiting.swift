import Crypto
import Foundation
import Testing

/// Waits until the condition holds, by looking again and again.
func waitUntil(_ condition: () throws -> Bool, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let deadline = Date().addingTimeInterval(40)
    while try !condition() {
        try #require(Date() < deadline, "waited too long", sourceLocation: sourceLocation)
        usleep(3000)
    }
}

/// The SHA-256 in hexadecimal.
func sha256(_ bytes: [UInt8]) -> String {
    SHA256.hash(data: bytes).map { String(format: "%02x", $0) }.joined()
}
