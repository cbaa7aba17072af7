internal import HTTP
internal import Renditions
internal import Store

/// Responds to hits: from the bytes of a target to the head and file that are sent.
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
            let found = if let keys = entry.negotiated { negotiated(keys, AcceptField(request)) } else { fresh(alias) }
            guard let (rendition, remaining) = found else { return nil }
            if entry.refusesLarger, mayBeRefused(rendition, entry.h264) { return nil }
            if let key = entry.key { access.countHit(key) }
            return responder.hit(rendition, .source, remaining: remaining, entry.terms)
        }
        guard let object = entry.object else { return nil }
        return objectResponse(object.id, object.fileExtension)
    }

    /// The rendition that `Accept` selects, or the source if that stays; nil if it is not in memory or not fresh.
    private func negotiated(
        _ keys: NegotiatedKeys, _ accept: AcceptField
    ) -> (rendition: CachedRendition, remaining: Int64)? {
        var preference = accept.preference(offersAVIF: keys.avif != nil, offersWebP: keys.webp != nil)
        if preference == .video {
            // A video of a transparent source would have a background.
            guard let facts = cache.hotAlias(keys.facts).flatMap(FactsFile.known) else { return nil }
            if facts.transparent {
                preference = accept.preference(
                    offersAVIF: keys.avif != nil, offersWebP: keys.webp != nil, offersVideo: false)
            }
        }
        let key: AliasKey? =
            switch preference {
            case .video: keys.video
            case .avif: keys.avif
            case .webp: keys.webp
            case .original: nil
            }
        guard let key else {
            guard let original = fresh(keys.original) else { return nil }
            return responder.isAcceptable(original.rendition, accept) ? original : fresh(keys.gif)
        }
        guard let found = fresh(key) else { return nil }
        if !responder.staysSource(found.rendition) { return found }
        guard let original = fresh(keys.original) else { return nil }
        return responder.isAcceptable(original.rendition, accept) ? original : found
    }

    /// The response with a rendition of a source, if it is in memory and fresh.
    ///
    /// - Parameters:
    ///   - unlessLarger: Whether to return nil if the rendition is larger than its source.
    ///   - h264: The key of the same rendition in H.264, if this one is in AV1.
    func renditionResponse(
        _ key: AliasKey, _ terms: ResponseTerms, unlessLarger: Bool, h264: AliasKey? = nil
    ) -> HTTPResponse? {
        guard let (rendition, remaining) = fresh(key) else { return nil }
        if unlessLarger, mayBeRefused(rendition, h264) { return nil }
        return responder.hit(rendition, .source, remaining: remaining, terms)
    }

    /// Whether a request that refuses larger renditions may refuse this one, which is unknown if the H.264 is not in memory.
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

    /// The rendition, and the seconds for which it is fresh.
    private func fresh(_ key: AliasKey) -> (rendition: CachedRendition, remaining: Int64)? {
        guard let found = cache.hotAlias(key), case .fresh(let remaining) = cache.freshness(of: found) else { return nil }
        return (found, remaining)
    }
}
