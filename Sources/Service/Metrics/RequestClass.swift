/// What the metrics tell requests apart by: a few values, whatever clients ask for.
struct RequestClass: Hashable {
    /// How an answer used the cache, from its `Cache-Status` (RFC 9211).
    enum CacheUse: String {
        case hit
        case stale
        case miss
        case collapsed
        /// The answer was not one the cache has a part in.
        case none

        init(_ field: UnsafeRawBufferPointer) {
            if field.isEmpty {
                self = .none
                return
            }
            let text = String(decoding: field, as: UTF8.self)
            if text == "gifreel; hit" {
                self = .hit
            } else if text.contains("; hit") {
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

/// Names requests by the first segment of their target, without parsing it whole.
struct RouteNames {
    let names: [String]
    private var indices: [Word: Int] = [:]
    /// The segment before and its index: most requests are for the same route as the one before.
    private var latest = (word: Word(), index: other)

    /// A segment of up to sixteen bytes as two numbers, so that a look-up makes no string.
    private struct Word: Hashable {
        var low: UInt64 = 0
        var high: UInt64 = 0

        /// No segment at all.
        init() {}

        /// Nil where the segment is longer.
        init?(_ bytes: some Sequence<UInt8>) {
            var count = 0
            for byte in bytes {
                guard count < 16 else { return nil }
                if count < 8 { low |= UInt64(byte) << UInt64(8 * count) } else { high |= UInt64(byte) << UInt64(8 * count - 64) }
                count += 1
            }
        }
    }

    private static let other = 0
    private static let home = 1
    private static let mount = 2

    /// - Parameter mounts: Names of mounts, which share one route: they are the user's, and may be many.
    init(mounts: some Sequence<String>) {
        names = ["other", "home", "mount"] + Route.reservedNames.sorted()
        for (index, name) in names.enumerated().dropFirst(3) {
            if let word = Word(name.utf8) { indices[word] = index }
        }
        for name in mounts {
            if let word = Word(name.utf8) { indices[word] = Self.mount }
        }
        indices[Word()] = Self.home
        latest = (Word(), Self.home)
    }

    /// The index of a target's name.
    mutating func index(of target: UnsafeRawBufferPointer) -> Int {
        let segment = target.dropFirst().prefix { byte in
            byte != UInt8(ascii: "/") && byte != UInt8(ascii: "?") && byte != UInt8(ascii: ",")
        }
        guard let word = Word(segment) else { return Self.other }
        if word != latest.word { latest = (word, indices[word] ?? Self.other) }
        return latest.index
    }
}
