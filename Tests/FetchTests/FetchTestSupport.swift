import Fetch

/// A small GIF, byte by byte.
enum TestGIF {
    /// One pixel: the smallest GIF there is.
    static let dot: [UInt8] = [
        0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff,
        0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3b,
    ]

    /// Something that begins as a GIF, of `count` bytes.
    static func large(_ count: Int) -> [UInt8] {
        dot + (dot.count..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    }
}

extension FetchConfiguration {
    /// May fetch from this machine, and is impatient.
    static func loopback(_ change: (inout FetchConfiguration) -> Void = { _ in }) -> FetchConfiguration {
        var configuration = FetchConfiguration()
        configuration.allowPrivate = ["127.0.0.1"].compactMap { AddressException($0) }
        configuration.timeout = .seconds(5)
        change(&configuration)
        return configuration
    }
}
