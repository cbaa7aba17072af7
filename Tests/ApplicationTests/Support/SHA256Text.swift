import Digests
import Foundation

/// The SHA-256 in hexadecimal.
func sha256(_ bytes: [UInt8]) -> String {
    SHA256.hash(bytes).map { String(format: "%02x", $0) }.joined()
}
