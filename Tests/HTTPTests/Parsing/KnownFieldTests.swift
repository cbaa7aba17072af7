import Testing

@testable import HTTP

@Suite("Known fields are recognized by name") struct KnownFieldTests {
    private static let names: [(String, KnownField)] = [
        ("host", .host), ("range", .range), ("expect", .expect), ("connection", .connection), ("forwarded", .forwarded),
        ("if-match", .ifMatch), ("if-none-match", .ifNoneMatch), ("if-modified-since", .ifModifiedSince),
        ("if-unmodified-since", .ifUnmodifiedSince), ("if-range", .ifRange), ("content-length", .contentLength),
        ("transfer-encoding", .transferEncoding), ("x-request-id", .requestID), ("x-forwarded-for", .forwardedFor),
        ("x-forwarded-proto", .forwardedProto),
    ]

    private func field(_ name: [UInt8]) -> KnownField { name.withUnsafeBytes { KnownField($0) } }

    @Test(arguments: names)
    func fieldNameIsRecognizedInAnyCase(name: String, known: KnownField) {
        #expect(field(Array(name.utf8)) == known)
        #expect(field(Array(name.uppercased().utf8)) == known)
        let mixed = name.utf8.enumerated().map { $0 % 2 == 0 ? $1 : Array(String(UnicodeScalar($1)).uppercased().utf8)[0] }
        #expect(field(mixed) == known)
    }

    /// Each byte of each name replaced by each character that a name may have.
    @Test(arguments: names)
    func otherNamesAreNotRecognized(name: String, known: KnownField) {
        for index in name.utf8.indices.map({ name.utf8.distance(from: name.utf8.startIndex, to: $0) }) {
            for byte in (UInt8.min...UInt8.max) where byte.isToken {
                var other = Array(name.utf8)
                other[index] = byte
                #expect(field(other) == (other.map(\.lowercased) == Array(name.utf8) ? known : .unknown))
            }
        }
        #expect(field(Array(name.utf8.dropLast())) == .unknown)
        #expect(field(Array("\(name)s".utf8)) == .unknown)
    }
}
