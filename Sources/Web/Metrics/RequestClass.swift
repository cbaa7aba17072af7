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
