internal import Fetch
internal import HTTP
internal import Renditions
internal import Store
internal import Synchronization

/// Responds to hits, from the bytes of a target to the head and file of the response.
///
/// Runs on event loop threads. A hit parses nothing, allocates no strings and waits for nothing: the target is looked up in
/// ``RouteMemo``, the rendition in the cache's memory, and the response's fields were prepared when the rendition was first
/// used.
struct HitResponder: Sendable {
    private let memo = RouteMemo()
    let cache: Cache
    let responder: RenditionResponder
    let access: AccessControl

    /// The response to a GET or HEAD of a target that was requested before, if its rendition is in memory and fresh.
    func response(to request: borrowing HTTPRequest) -> HTTPResponse? {
        let method = request.method
        guard method == .get || method == .head, let entry = memo.entry(for: request.targetBytes) else { return nil }
        if let expires = entry.expires, access.signatures.hasExpired(expires) { return nil }
        if let alias = entry.alias {
            let found =
                if let (keys, facts) = entry.negotiated {
                    negotiated(keys, facts: facts, AcceptField(request)) ?? stillImage(keys.original)
                } else {
                    fresh(alias)
                }
            guard let (rendition, remaining) = found else { return nil }
            if entry.refusesLarger, mayBeRefused(rendition, entry.h264) { return nil }
            if let key = entry.key { access.countHit(key) }
            return responder.hit(rendition, .source, remaining: remaining, entry.terms)
        }
        guard let object = entry.object else { return nil }
        return objectResponse(object.id, object.fileExtension)
    }

    /// Returns the rendition that `Accept` selects, or the source if negotiation keeps it; nil if it is not in memory or not
    /// fresh.
    private func negotiated(
        _ keys: Negotiation<AliasKey>, facts: AliasKey, _ accept: AcceptField
    ) -> (rendition: CachedRendition, remaining: Int64)? {
        var key = keys.choice(for: accept)
        if key == keys.video {
            guard let stored = cache.hotAlias(facts), cache.freshness(of: stored).isUsable,
                let facts = FactsFile.known(stored)
            else { return nil }
            key = keys.choice(for: accept, of: facts)
        }
        guard let found = fresh(key) else { return nil }
        if key == keys.original { return responder.isAcceptable(found.rendition, accept) ? found : fresh(keys.gif) }
        if !responder.staysSource(found.rendition) { return found }
        guard let original = fresh(keys.original) else { return nil }
        return responder.isAcceptable(original.rendition, accept) ? original : found
    }

    /// Returns the source if it is a still image, which is sent whatever `Accept` selects; nil if it is not in memory or not
    /// fresh.
    private func stillImage(_ original: AliasKey) -> (rendition: CachedRendition, remaining: Int64)? {
        fresh(original).flatMap { responder.isStillImage($0.rendition) ? $0 : nil }
    }

    /// The response with a rendition of a source, if it is in memory and fresh.
    ///
    /// - Parameter h264: The key of the same rendition in H.264, if this one is in AV1.
    func renditionResponse(
        _ key: AliasKey, _ terms: ResponseTerms, unlessLarger: Bool, h264: AliasKey? = nil
    ) -> HTTPResponse? {
        guard let (rendition, remaining) = fresh(key) else { return nil }
        if unlessLarger, mayBeRefused(rendition, h264) { return nil }
        return responder.hit(rendition, .source, remaining: remaining, terms)
    }

    /// Whether a request that refuses larger renditions may refuse this one; true if that is unknown because the H.264
    /// rendition is not in memory.
    private func mayBeRefused(_ rendition: CachedRendition, _ h264: AliasKey?) -> Bool {
        if responder.isLargerThanSource(rendition) { return true }
        guard let h264 else { return false }
        guard let (video, _) = fresh(h264) else { return true }
        return !Rendition.isWorthOffering(av1: rendition.length, besideH264: video.length)
    }

    /// The response with a stored object, if it is in memory. Facts are composed for each request.
    func objectResponse(_ id: ObjectID, _ fileExtension: String) -> HTTPResponse? {
        guard fileExtension != Rendition.Format.json.rawValue, let rendition = cache.hotObject(id),
            rendition.fileExtension == fileExtension
        else { return nil }
        return responder.hit(rendition)
    }

    /// Records the meaning of a target, after access to it was granted.
    func remember(_ target: ParsedTarget, for bytes: UnsafeRawBufferPointer) {
        memo.insert(target, for: bytes)
    }

    /// Returns the rendition and the seconds for which it remains fresh.
    private func fresh(_ key: AliasKey) -> (rendition: CachedRendition, remaining: Int64)? {
        guard let found = cache.hotAlias(key), case .fresh(let remaining) = cache.freshness(of: found) else { return nil }
        return (found, remaining)
    }
}

/// The meanings of recent targets, so that a hit neither parses a target nor hashes a URL.
///
/// A direct-mapped table: a newer target replaces an older one in the same slot. Entries never expire, because the meaning of
/// a target depends on its bytes and the policy alone. Any thread.
final class RouteMemo: Sendable {
    final class Entry: Sendable {
        fileprivate let target: [UInt8]
        /// The expiry of the signature, in seconds since 1970, or nil.
        let expires: Int64?
        /// The key of a rendition that is sent unchanged from the store; nil for other routes.
        let alias: AliasKey?
        /// The keys of the renditions from which `Accept` selects, and of the facts; nil without negotiation.
        let negotiated: (keys: Negotiation<AliasKey>, facts: AliasKey)?
        /// The object that the target names; nil for other routes.
        let object: (id: ObjectID, fileExtension: String)?
        let refusesLarger: Bool
        /// The key of the H.264 rendition with which an AV1 rendition that may be refused is compared; nil for other
        /// renditions.
        let h264: AliasKey?
        let terms: ResponseTerms
        /// The name of the key that has signed the target; nil for none.
        let key: String?

        fileprivate init(target: UnsafeRawBufferPointer, _ parsed: ParsedTarget) {
            self.target = Array(target)
            expires = parsed.credentials?.expires
            refusesLarger = parsed.refusesLarger
            terms = parsed.terms
            key = parsed.key?.name
            object = if case .object(let id, let fileExtension) = parsed.route { (id, fileExtension) } else { nil }
            if case .rendition(let rendition, let url) = parsed.route, rendition.format.isSentAsStored {
                alias = AliasKey(url, rendition)
                h264 = parsed.refusesLarger ? rendition.comparedWith.map { AliasKey(url, $0) } : nil
                negotiated = parsed.negotiation.map { negotiation in
                    (negotiation.map { AliasKey(url, $0) }, AliasKey(url, Rendition(format: .json)))
                }
            } else {
                alias = nil
                h264 = nil
                negotiated = nil
            }
        }
    }

    /// Longer targets are not stored, which bounds the memory of the table.
    private static let maxTargetLength = 512
    private let slots: Mutex<[Entry?]>
    private let mask: Int
    /// Random numbers that keep clients from choosing targets that displace those of others.
    private let secret = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max) | 1)

    /// - Parameter capacity: A power of two.
    init(capacity: Int = 4096) {
        slots = Mutex(Array(repeating: nil, count: capacity))
        mask = capacity - 1
    }

    /// The entry of a target; nil if the table has none.
    func entry(for target: UnsafeRawBufferPointer) -> Entry? {
        guard target.count <= Self.maxTargetLength else { return nil }
        let slot = slot(of: target)
        guard let entry = slots.withLock({ $0[slot] }), entry.target.withUnsafeBytes(target.equals) else { return nil }
        return entry
    }

    /// Stores the meaning of a target. Access to it must have been granted.
    func insert(_ parsed: ParsedTarget, for target: UnsafeRawBufferPointer) {
        guard target.count <= Self.maxTargetLength else { return }
        let entry = Entry(target: target, parsed)
        let slot = slot(of: target)
        slots.withLock { $0[slot] = entry }
    }

    /// Multiplies and folds words of eight bytes, as wyhash does.
    private func slot(of target: UnsafeRawBufferPointer) -> Int {
        var hash = secret.0 ^ UInt64(target.count)
        var offset = 0
        func mix(_ word: UInt64) {
            let product = (hash ^ word).multipliedFullWidth(by: secret.1)
            hash = product.high ^ product.low
        }
        while offset + 8 <= target.count {
            mix(target.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            offset += 8
        }
        var last: UInt64 = 0
        while offset < target.count {
            last = last << 8 | UInt64(target[offset])
            offset += 1
        }
        mix(last)
        return Int(truncatingIfNeeded: hash) & mask
    }
}
