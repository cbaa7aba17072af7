internal import Fetch
internal import HTTP
internal import Media
internal import Renditions
internal import Store
internal import Telemetry

/// Answers requests for renditions of sources, for their facts, and for stored objects.
struct RenditionController: Sendable {
    let pipeline: RenditionPipeline
    let background: BackgroundRenditions
    let cache: Cache
    let hits: HitResponder
    let responder: RenditionResponder
    let problems: ProblemResponder
    let asynchronous: AsyncResponder
    let keys: SigningKeys
    /// See ``WebPolicy/av1After``.
    let av1After: Int?
    let tracer: OTLPTracer
    let log: ResponseLog

    private var facts: FactsComposer { FactsComposer(cache: cache, defaults: pipeline.defaults) }

    // MARK: Sources

    func answer(
        _ target: ParsedTarget, _ rendition: Rendition, of source: SourceURL, _ client: ClientContext,
        _ request: borrowing HTTPRequest
    ) -> HTTPReply {
        if let negotiation = target.negotiation { return answer(target, negotiation, of: source, client, request) }
        var preferred = client.request(rendition, of: source)
        preferred.sendsStillImages = target.onError == .original
        let renditionRequest = preferred
        let terms = target.terms
        let url = target.withoutCallback(request.target, keys: keys)
        if rendition.format == .json {
            let addresses = RenditionAddresses(target, of: source, keys: keys)
            return .later(in: RequestSpan(of: request, tracer)) {
                if let accepted = await asynchronous.response(to: renditionRequest, client, url: url, terms) { return accepted }
                return await factsResponse(renditionRequest, addresses, terms)
            }
        }
        let h264 = target.refusesLarger ? rendition.comparedWith.map { AliasKey(source, $0) } : nil
        let hit = hits.renditionResponse(renditionRequest.key, terms, unlessLarger: target.refusesLarger, h264: h264)
        if let hit { return .now(hit) }
        let queues = target.onMiss == .queue
        return .later(in: RequestSpan(of: request, tracer)) {
            let accepted = await asynchronous.response(
                to: renditionRequest, client, url: url, terms, orOriginalAfter: { target.sendsOriginal(after: $0) }
            ) { target.refusesLarger ? await isRefused($0, renditionRequest) : false }
            if let accepted { return accepted }
            if queues, await queue(renditionRequest) { return problems.failure(.notReady, host: source.host, terms) }
            var request = renditionRequest
            // The source, if it is sent instead, comes from the same fetch.
            request.allowance = client.allowance.countedOnce
            return await missResponse(request, onError: target.onError, refusesLarger: target.refusesLarger, terms)
        }
    }

    // MARK: Negotiation

    /// Answers a request for which `Accept` selects the rendition.
    private func answer(
        _ target: ParsedTarget, _ negotiation: Negotiation<Rendition>, of source: SourceURL, _ client: ClientContext,
        _ request: borrowing HTTPRequest
    ) -> HTTPReply {
        if let hit = hits.response(to: request) { return .now(hit) }
        let accept = AcceptField(request)
        let url = target.withoutCallback(request.target, keys: keys)
        var client = client
        // All renditions of the source come from the same fetch.
        client.allowance = client.allowance.countedOnce
        let visitor = client
        return .later(in: RequestSpan(of: request, tracer)) {
            let (selected, lacksFacts) = await self.selected(negotiation, accept, of: source, visitor)
            var preferred = visitor.request(selected, of: source)
            if selected != negotiation.original { preferred.alternative = negotiation.original }
            preferred.sendsStillImages = true
            let request = preferred
            let miss = NegotiatedMiss(
                request: request, negotiation: negotiation, accept: accept, follows: target.onMiss == .original,
                lacksFacts: lacksFacts, terms: target.terms)
            let accepted = await asynchronous.response(
                to: request, visitor, url: url, target.terms, orOriginalAfter: { target.sendsOriginal(after: $0) },
                accepts: { $1.isOfImage || target.onError == .original || responder.isAcceptable($0, accept) })
            if let accepted { return accepted }
            do throws(RenditionError) {
                return try await response(to: miss)
            } catch {
                // A client that accepts the format of the source has got the source already. A still image is always sent: without
                // Gifreel, the page would show it.
                return await errorResponse(error, request, error.isOfImage ? .original : target.onError, target.terms)
            }
        }
    }

    /// A request for which `Accept` selects the rendition, and whose answer is not in memory.
    private struct NegotiatedMiss {
        var request: RenditionRequest
        let negotiation: Negotiation<Rendition>
        let accept: AcceptField
        /// Whether the client gets the source as it arrives instead of waiting for the rendition.
        let follows: Bool
        /// Whether the video is selected although the facts of the source could rule it out.
        var lacksFacts: Bool
        let terms: ResponseTerms

        var original: RenditionRequest { request.with(negotiation.original) }

        /// This miss with the rendition that is selected for a source with these facts.
        func selecting(for source: SourceFacts) -> NegotiatedMiss {
            var miss = self
            miss.request = request.with(negotiation.choice(for: accept, of: source))
            if miss.request.rendition != negotiation.original { miss.request.alternative = negotiation.original }
            miss.lacksFacts = false
            return miss
        }
    }

    /// Returns the rendition that `Accept` selects. The facts of a source may rule out the video. If they are missing although a
    /// video is stored, they are produced for the next request.
    ///
    /// - Returns: The rendition, and whether facts that could rule out a video are still missing.
    private func selected(
        _ negotiation: Negotiation<Rendition>, _ accept: AcceptField, of source: SourceURL, _ client: ClientContext
    ) async -> (Rendition, lacksFacts: Bool) {
        let rendition = negotiation.choice(for: accept)
        guard rendition == negotiation.video else { return (rendition, false) }
        let facts = client.request(Rendition(format: .json), of: source)
        if let known = await pipeline.stored(facts).flatMap(FactsFile.known) {
            return (negotiation.choice(for: accept, of: known), false)
        }
        if await pipeline.stored(facts.with(rendition)) != nil { background.add(facts) }
        return (rendition, !pipeline.isKnownToFail(facts))
    }

    /// The facts of the source, which are produced if they are not stored; nil if they cannot be read.
    private func sourceFacts(_ miss: NegotiatedMiss) async -> SourceFacts? {
        guard let facts = try? await pipeline.find(miss.request.with(Rendition(format: .json))) else { return nil }
        let document = try? await cache.onThread { () throws(CacheError) in FactsFile.read(facts.rendition) }
        return document?.source.facts
    }

    /// Responds with the source if `Accept` selects an AVIF that is not stored and that the settings leave to the background.
    /// Queues the AVIF if the source was requested often enough.
    ///
    /// - Returns: Nil if clients wait for AVIFs, if the client does not accept the source, or if the outcome is known: the
    ///   sequence is stored, or is known to fail.
    private func responseBeforeSequence(_ miss: NegotiatedMiss) async throws(RenditionError) -> HTTPResponse? {
        guard let av1After, miss.request.rendition == miss.negotiation.avif, await pipeline.stored(miss.request) == nil,
            !pipeline.isKnownToFail(miss.request),
            let response = try await sourceResponse(to: miss, follows: miss.follows)
        else { return nil }
        if let uses = await pipeline.stored(miss.original)?.uses, uses >= av1After { background.add(miss.request) }
        return responder.temporary(response, miss.terms)
    }

    /// Responds with the source.
    ///
    /// - Returns: Nil if the client does not accept its format.
    private func sourceResponse(
        to miss: NegotiatedMiss, follows: Bool
    ) async throws(RenditionError) -> HTTPResponse? {
        switch try await (follows ? pipeline.findOrFollow(miss.original) : .rendition(pipeline.find(miss.original))) {
        case .rendition(let result):
            guard responder.isAcceptable(result.rendition, miss.accept) else { return nil }
            return logged(result, miss)
        case .source(let source): return response(following: source, miss)
        }
    }

    /// Responds with a source that is arriving; nil if the client does not accept its format.
    private func response(following source: FollowedSource, _ miss: NegotiatedMiss) -> HTTPResponse? {
        guard miss.accept.accepts(source.format) else { return nil }
        log.followed(miss.request.rendition, host: miss.request.source.host)
        return responder.originalResponse(source, of: miss.request.source.canonical, miss.terms)
    }

    private func logged(_ result: RenditionResult, _ miss: NegotiatedMiss) -> HTTPResponse {
        log.answered(miss.request.rendition, host: miss.request.source.host, result)
        return responder.response(result, .source, of: miss.request.source.canonical, miss.terms)
    }

    /// Responds with the selected rendition; with the source, if negotiation keeps it or until the rendition exists; or else
    /// with a GIF. A client that accepts none of the server's formats still gets one of these. If the source that negotiation
    /// keeps cannot be sent now, the rendition is the response.
    private func response(to miss: NegotiatedMiss) async throws(RenditionError) -> HTTPResponse {
        if let response = try await responseBeforeSequence(miss) { return response }
        if miss.request.rendition == miss.negotiation.original {
            if let response = try await sourceResponse(to: miss, follows: miss.follows) { return response }
            return logged(try await pipeline.find(miss.request.with(miss.negotiation.gif)), miss)
        }
        var found: RenditionResult?
        if miss.follows {
            switch try await pipeline.findOrFollow(miss.request) {
            case .rendition(let result): found = result
            case .source(let source): if let response = response(following: source, miss) { return response }
            }
        }
        // This is the source in place of a rendition that is known to fail.
        if let result = found, result.rendition.isOriginal {
            if responder.isAcceptable(result.rendition, miss.accept) { return logged(result, miss) }
            found = nil
        }
        let result = if let found { found } else { try await pipeline.find(miss.request) }
        // The flight of a video also produces the facts.
        if miss.lacksFacts, let facts = await sourceFacts(miss) {
            let selecting = miss.selecting(for: facts)
            if selecting.request.rendition != miss.request.rendition { return try await response(to: selecting) }
        }
        guard !result.rendition.isPoster, responder.staysSource(result.rendition) else { return logged(result, miss) }
        var original: RenditionResult
        do throws(RenditionError) {
            original = try await pipeline.find(miss.original)
        } catch {
            if error.forbidsRenditions { throw error }
            return logged(result, miss)
        }
        guard responder.isAcceptable(original.rendition, miss.accept) else { return logged(result, miss) }
        // If the source was a hit, it was stored by the flight of the rendition.
        if original.provenance == .hit { (original.provenance, original.times) = (result.provenance, result.times) }
        return logged(original, miss)
    }

    // MARK: Misses

    /// Queues a rendition that is not stored.
    ///
    /// - Returns: False if the outcome is known: the rendition is stored, or is known to fail.
    private func queue(_ request: RenditionRequest) async -> Bool {
        guard !request.isOnlyFromStore, await pipeline.stored(request) == nil, !pipeline.isKnownToFail(request) else {
            return false
        }
        // Pages offer both encodings, so their visitors wait for H.264: it is produced first.
        let encodedAsH264 = request.rendition.encoded(by: .h264).map(request.with)
        background.add(request, after: encodedAsH264?.key == request.key ? nil : encodedAsH264)
        return true
    }

    /// Responds with the rendition, which the pipeline finds in the cache or produces.
    private func missResponse(
        _ request: RenditionRequest, onError: Mount.OnError, refusesLarger: Bool, _ terms: ResponseTerms
    ) async -> HTTPResponse {
        do throws(RenditionError) {
            let result = try await pipeline.find(request)
            log.answered(request.rendition, host: request.source.host, result)
            if refusesLarger, await isRefused(result.rendition, request) {
                return problems.failure(.notSmaller, host: request.source.host, terms)
            }
            return responder.response(result, .source, of: request.source.canonical, terms)
        } catch {
            return await errorResponse(error, request, onError, terms)
        }
    }

    /// Whether a rendition is larger than its source or, in AV1, not clearly smaller than the stored one in H.264.
    private func isRefused(_ rendition: CachedRendition, _ request: RenditionRequest) async -> Bool {
        if responder.isLargerThanSource(rendition) { return true }
        guard !rendition.isOriginal, let other = request.rendition.comparedWith,
            let video = await pipeline.stored(request.with(other))
        else { return false }
        return !Rendition.isWorthOffering(av1: rendition.length, besideH264: video.length)
    }

    /// The response to a request whose rendition cannot be produced: the source, or the problem.
    func errorResponse(
        _ error: RenditionError, _ request: RenditionRequest, _ onError: Mount.OnError, _ terms: ResponseTerms,
        form: ProblemForm = .document
    ) async -> HTTPResponse {
        var cause = error
        do throws(RenditionError) {
            if onError == .original, let original = try await pipeline.original(insteadOf: error, for: request) {
                return responder.response(original, .source, of: request.source.canonical, terms)
            }
        } catch {
            cause = error
        }
        return problems.failure(Problem(cause), host: request.source.host, terms, form: form)
    }

    private func factsResponse(
        _ request: RenditionRequest, _ addresses: RenditionAddresses, _ terms: ResponseTerms
    ) async -> HTTPResponse {
        do throws(RenditionError) {
            let result = try await pipeline.find(request)
            if result.provenance != .hit { log.answered(request.rendition, host: request.source.host, result) }
            return await document(result, addresses, host: request.source.host, terms)
        } catch {
            return problems.failure(Problem(error), host: request.source.host, terms)
        }
    }

    private func document(
        _ result: RenditionResult, _ addresses: RenditionAddresses?, host: String?, _ terms: ResponseTerms
    ) async -> HTTPResponse {
        guard let document = await facts.compose(result.rendition, addresses) else {
            let problem = Problem(422, "transcode_failed", "The facts could not be read.")
            return problems.failure(problem, host: host, terms)
        }
        return responder.documentResponse(document, result, terms)
    }

    // MARK: Uploads

    func uploadResponse(_ request: UploadRequest, _ terms: ResponseTerms) async -> HTTPResponse {
        do throws(RenditionError) {
            let result = try await pipeline.find(request)
            log.answered(request.rendition, host: nil, result)
            var response =
                request.rendition.format == .json
                ? await document(result, nil, host: nil, terms) : responder.response(result, .object, terms)
            if result.isStored { response.headers.append("Content-Location", RenditionResponder.path(result.rendition)) }
            return response
        } catch {
            return problems.failure(Problem(error), host: nil, terms, form: .unstored)
        }
    }

    // MARK: Objects

    func object(
        _ id: ObjectID, _ fileExtension: String, _ client: ClientContext, _ request: borrowing HTTPRequest
    ) -> HTTPReply {
        if let hit = hits.objectResponse(id, fileExtension) { return .now(hit) }
        return .later(in: RequestSpan(of: request, tracer)) {
            await objectResponse(id, fileExtension, client)
        }
    }

    private static let noObject = Problem.notFound("No rendition is stored under this id and extension.")

    private func objectResponse(
        _ id: ObjectID, _ fileExtension: String, _ client: ClientContext
    ) async -> HTTPResponse {
        let stored: CachedRendition?
        do throws(RenditionError) {
            stored = try await pipeline.object(
                id, fileExtension: fileExtension, allowance: client.allowance, isOnlyFromStore: client.wantsStoredOnly)
        } catch {
            return ProblemDocument.response(Problem(error))
        }
        guard let found = stored, found.fileExtension == fileExtension else {
            return ProblemDocument.response(Self.noObject)
        }
        guard fileExtension == Rendition.Format.json.rawValue else {
            log.answered(object: RenditionResponder.path(found))
            return responder.hit(found)
        }
        // These are the facts of an upload, as in the response to the upload.
        guard let document = await facts.compose(found, nil) else { return ProblemDocument.response(Self.noObject) }
        return responder.documentResponse(document)
    }
}

extension ParsedTarget {
    /// Whether the source is sent after that error of its rendition. Where `Accept` selects the rendition, a still image always
    /// is: without Gifreel, the page would show it.
    func sendsOriginal(after error: RenditionError) -> Bool {
        if case .rendition(let rendition, _) = route, rendition.format == .json { return false }
        return error.permitsOriginal
            && (onError == .original || (negotiation != nil && (onMiss == .original || error.isOfImage)))
    }
}
