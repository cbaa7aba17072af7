internal import HTTP

/// The dimensions of the request metrics. They have few values, regardless of the targets that clients request.
struct RequestClass: Hashable {
    /// The use of the cache, from the response's `Cache-Status` (RFC 9211).
    enum CacheUse: String {
        case hit
        case stale
        case miss
        case collapsed
        /// The response did not involve the cache.
        case none

        /// The value of nearly all responses.
        private static let plainHit: StaticString = "gifreel; hit"

        init(_ field: UnsafeRawBufferPointer) {
            if field.equals(Self.plainHit) {
                self = .hit
                return
            }
            let text = String(decoding: field, as: UTF8.self)
            if text.contains("; hit") {
                self = text.contains("ttl=-") ? .stale : .hit
            } else if text.contains("collapsed") {
                self = .collapsed
            } else {
                self = text.contains("fwd=") ? .miss : .none
            }
        }
    }

    /// An index into ``RouteNames/names``.
    var route: Int
    var status: Int
    var cache: CacheUse
}

/// Names the routes of requests by the first segment of their targets, without parsing the rest.
struct RouteNames {
    let names: [String]
    private var indices: [Word: Int] = [:]
    /// The latest segment and its index: most requests have the route of the previous one.
    private var latest = (word: Word(), index: other)

    /// A segment of up to 16 bytes as two numbers, so that a lookup creates no string.
    private struct Word: Hashable {
        var low: UInt64 = 0
        var high: UInt64 = 0

        init() {}

        /// The first segment of a target; nil if it is longer than 16 bytes.
        init?(target: UnsafeRawBufferPointer) {
            var index = 1
            while index < target.count {
                let byte = target[index]
                if byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: ",") { return }
                guard index <= 16 else { return nil }
                let shift = UInt64(8 * (index - 1))
                if shift < 64 { low |= UInt64(byte) << shift } else { high |= UInt64(byte) << (shift - 64) }
                index += 1
            }
        }

        init?(segment: String) {
            let word = Array("/\(segment)".utf8).withUnsafeBytes { Word(target: $0) }
            guard let word else { return nil }
            self = word
        }
    }

    private static let other = 0
    private static let home = 1
    private static let mount = 2

    /// - Parameter mounts: The names of mounts, which share one route, because a configuration may have many of them.
    init(mounts: some Sequence<String>) {
        names = ["other", "home", "mount"] + Route.reservedNames.sorted()
        for (index, name) in names.enumerated().dropFirst(3) {
            if let word = Word(segment: name) { indices[word] = index }
        }
        for name in mounts {
            if let word = Word(segment: name) { indices[word] = Self.mount }
        }
        indices[Word()] = Self.home
        latest = (Word(), Self.home)
    }

    /// The index of the name of a target's route.
    ///
    /// - Parameter target: Empty if the request could not be parsed.
    mutating func index(of target: UnsafeRawBufferPointer) -> Int {
        guard !target.isEmpty, let word = Word(target: target) else { return Self.other }
        if word != latest.word { latest = (word, indices[word] ?? Self.other) }
        return latest.index
    }
}
