import Crypto
import Foundation
import TestSupport
import Testing

/// Waits until the condition holds.
func waitUntil(file: String = #fileID, line: Int = #line, _ condition: () throws -> Bool) throws {
    try waitUntil("the condition", file: file, line: line, condition)
}

/// The SHA-256 in hexadecimal.
func sha256(_ bytes: [UInt8]) -> String {
    SHA256.hash(data: bytes).map { String(format: "%02x", $0) }.joined()
}
