internal import Glibc

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

        /// What nearly all say.
        private static let plainHit: StaticString = "gifreel; hit"

        init(_ field: UnsafeRawBufferPointer) {
            guard let base = field.baseAddress, !field.isEmpty else {
                self = .none
                return
            }
            if field.count == Self.plainHit.utf8CodeUnitCount, memcmp(base, Self.plainHit.utf8Start, field.count) == 0 {
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
                put(byte, at: count)
                count += 1
            }
        }

        /// The first segment of a target; nil where it is longer.
        init?(target: UnsafeRawBufferPointer) {
            var index = 1
            while index < target.count {
                let byte = target[index]
                if byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: ",") { return }
                guard index <= 16 else { return nil }
                put(byte, at: index - 1)
                index += 1
            }
        }

        @inline(__always)
        private mutating func put(_ byte: UInt8, at index: Int) {
            if index < 8 { low |= UInt64(byte) << UInt64(8 * index) } else { high |= UInt64(byte) << UInt64(8 * index - 64) }
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
        guard let word = Word(target: target) else { return Self.other }
        if word != latest.word { latest = (word, indices[word] ?? Self.other) }
        return latest.index
    }
}
