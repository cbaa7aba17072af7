internal import Cache
internal import Fetch
internal import Glibc
internal import Renditions
internal import Synchronization

/// What the targets seen lately ask for, so that a hit neither parses a URL nor hashes one.
///
/// A table of one place a hash value, in which the newer target replaces the older: bounded, and right whatever
/// collides, because the target's bytes are compared. Routes depend on the target alone, so nothing ever goes out of date.
final class RouteMemo: Sendable {
    /// A target that was understood.
    final class Entry: Sendable {
        fileprivate let target: [UInt8]
        /// When the request's signature ends, in seconds since 1970; nil where it does not.
        let expires: Int64?
        /// The key of a rendition's alias, where what is stored under it is the answer; nil for other routes.
        let alias: AliasKey?
        /// The key of what clients get that do not name the video; nil where all get the same.
        let fallback: AliasKey?
        /// The content that is asked for by its id; nil for other routes.
        let object: (id: ObjectID, fileExtension: String)?
        let terms: AnswerTerms

        fileprivate init(target: UnsafeRawBufferPointer, _ parsed: ParsedTarget) {
            self.target = Array(target)
            expires = parsed.credentials?.expires
            terms = parsed.terms
            object = if case .object(let id, let fileExtension) = parsed.route { (id, fileExtension) } else { nil }
            if case .rendition(let rendition, let url) = parsed.route, rendition.format.isAnsweredAsStored {
                alias = AliasKey(sourceURL: url.canonical, rendition: rendition.canonicalText)
                fallback = parsed.fallback.map { AliasKey(sourceURL: url.canonical, rendition: $0.canonicalText) }
            } else {
                alias = nil
                fallback = nil
            }
        }
    }

    /// Targets longer than this are parsed each time, so that the table cannot be made large.
    private static let longestTarget = 512
    private let places: Mutex<[Entry?]>
    private let mask: Int

    /// - Parameter capacity: A power of two.
    init(capacity: Int = 4096) {
        places = Mutex(Array(repeating: nil, count: capacity))
        mask = capacity - 1
    }

    /// What the target was found to ask for, when it is still in the table.
    func entry(for target: UnsafeRawBufferPointer) -> Entry? {
        guard target.count <= Self.longestTarget else { return nil }
        let place = Self.hash(target) & mask
        guard let entry = places.withLock({ $0[place] }), entry.target.count == target.count,
            Self.areEqual(entry.target, target)
        else { return nil }
        return entry
    }

    /// Notes what a target asks for, once it has been found that it may be asked.
    func note(_ parsed: ParsedTarget, for target: UnsafeRawBufferPointer) {
        guard target.count <= Self.longestTarget else { return }
        let entry = Entry(target: target, parsed)
        let place = Self.hash(target) & mask
        places.withLock { $0[place] = entry }
    }

    /// Whether the bytes are the same; both have the same count.
    private static func areEqual(_ known: [UInt8], _ target: UnsafeRawBufferPointer) -> Bool {
        known.withUnsafeBytes { known in
            guard let left = known.baseAddress, let right = target.baseAddress else { return known.isEmpty }
            return memcmp(left, right, known.count) == 0
        }
    }

    /// FNV-1a over words of eight bytes: it only has to spread, since bytes are compared.
    private static func hash(_ bytes: UnsafeRawBufferPointer) -> Int {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        var offset = 0
        while offset + 8 <= bytes.count {
            hash = (hash ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) &* 0x100_0000_01b3
            hash ^= hash >> 29
            offset += 8
        }
        while offset < bytes.count {
            hash = (hash ^ UInt64(bytes[offset])) &* 0x100_0000_01b3
            offset += 1
        }
        return Int(truncatingIfNeeded: hash ^ hash >> 32)
    }
}
