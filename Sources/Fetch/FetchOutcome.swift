package import SystemIO

/// What a fetch came to, where it succeeded.
package enum FetchOutcome: Sendable {
    /// The source's bytes.
    case fetched(FetchedSource)
    /// The source is as it was when the validators were given (304).
    case notModified(UnmodifiedSource)
}

/// A source, whole and begun as a GIF; whether it is a good one is for its reader to find.
package struct FetchedSource: Sendable {
    /// A sealed file in memory: nobody can change it any more.
    package let bytes: SharedDescriptor
    /// How many bytes there are.
    package let count: Int
    /// The SHA-256 of the bytes: 32 bytes.
    package let sha256: [UInt8]
    /// What to ask with next time.
    package let validators: SourceValidators
    package let cacheDirectives: CacheDirectives
    /// Where the bytes came from, redirects followed.
    package let finalURL: SourceURL
    package let timings: FetchTimings
}

/// The answer 304. What the origin did not repeat there stays as it was.
package struct UnmodifiedSource: Sendable {
    package let validators: SourceValidators
    package let cacheDirectives: CacheDirectives
    package let timings: FetchTimings
}

/// How long the parts of a fetch took.
package struct FetchTimings: Sendable {
    /// Waiting for a place, before each hop.
    package internal(set) var queued: Duration = .zero
    /// From the start of the first request to the end of the last answer.
    package internal(set) var total: Duration = .zero
    /// From the start of the last request until its name was looked up; next to nothing on a connection used before.
    package internal(set) var nameLookup: Duration = .zero
    /// From the start of the last request until it was connected, TLS included.
    package internal(set) var connect: Duration = .zero
    /// From the start of the last request until the first byte of its answer.
    package internal(set) var firstByte: Duration = .zero
    /// How many redirects were followed.
    package internal(set) var redirects = 0
}
