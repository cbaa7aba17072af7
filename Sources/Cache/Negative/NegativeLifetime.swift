/// How long a failure is remembered.
package enum NegativeLifetime: Sendable, Equatable {
    /// The source is not there (404, 410): one minute.
    case missing
    /// The source is no GIF or cannot be made into a video (415, 422): ten minutes, since trying is dear.
    case unusable
    /// The origin failed or was too slow: five seconds and up to half as much again, so that not all sources come back at
    /// once.
    case transient
    /// The origin asked to be left alone for so many seconds (`Retry-After`, RFC 9110 section 10.2.3): at most five minutes,
    /// at least one second.
    case retryAfter(seconds: Int64)

    /// The time from now on; another one at each call where it has jitter.
    package func nanoseconds() -> UInt64 {
        switch self {
        case .missing: 60 * Self.second
        case .unusable: 600 * Self.second
        case .transient: 5 * Self.second + UInt64.random(in: 0...(5 * Self.second / 2))
        case .retryAfter(let seconds): UInt64(min(max(seconds, 1), 300)) * Self.second
        }
    }

    private static let second: UInt64 = 1_000_000_000
}
