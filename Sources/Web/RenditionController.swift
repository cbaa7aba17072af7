internal import Cache
internal import Fetch
internal import HTTP
internal import Media
internal import Renditions
internal import Telemetry

/// Answers requests for renditions of sources, for their facts, and for stored objects.
struct RenditionController: Sendable {
    private let pipeline: RenditionPipeline
    private let background: BackgroundRenditions
    private let cache: Cache
    private let hits: HitResponder
    private let responder: RenditionResponder
    private let problems: ProblemResponder
    private let facts: FactsComposer
    private let asynchronous: AsyncResponder
    private let keys: SigningKeys
    /// See ``WebPolicy/av1After``.
    private let av1After: Int?
    private let tracer: OTLPTracer
    private let log: ResponseLog

    init(
        pipeline: RenditionPipeline, background: BackgroundRenditions, cache: Cache, hits: HitResponder,
        responder: RenditionResponder, problems: ProblemResponder, asynchronous: AsyncResponder, keys: SigningKeys,
        av1After: Int?, tracer: OTLPTracer, log: ResponseLog
    ) {
        self.pipeline = pipeline
        self.background = background
        self.cache = cache
        self.hits = hits
        self.responder = responder
        self.problems = problems
        self.asynchronous = asynchronous
        facts = FactsComposer(cache: cache, defaults: pipeline.defaults)
        self.keys = keys
        self.av1After = av1After
        self.tracer = tracer
        self.log = log
    }

    // MARK: Sources

    /// Answers a request for a rendition.
    ///
    /// - Parameters:
    ///   - named: The rendition that the target names; negotiation may select another one.
    ///   - client: The properties of the request's client.
    func answer(
        _ target: ParsedTarget, _ named: Rendition, of source: SourceURL, _ client: ClientContext,
        _ request: borrowing HTTPRequest
    ) -> HTTPReply {
        let rendition = target.negotiation?.rendition(for: AcceptField(request)) ?? named
        // If the rendition is larger than the GIF, the GIF is the negotiated response.
        let alternative = rendition.format == .original ? nil : target.negotiation?.original
        let renditionRequest = RenditionRequest(
            rendition, of: source, urgency: client.urgency, client: client.network, allowance: client.allowance,
            alternative: alternative, isOnlyFromStore: client.wantsStoredOnly)
        let terms = target.terms
        let url = target.withoutCallback(request.target, keys: keys)
        if rendition.format == .json {
            let addresses = RenditionAddresses(target, of: source, keys: keys)
            return .later(in: RequestSpan(of: request, tracer)) {
                if let accepted = await asynchronous.response(to: renditionRequest, client, url: url, terms) { return accepted }
                return await factsResponse(renditionRequest, addresses, terms)
            }
        }
        let unlessLarger = alternative != nil || target.refusesLarger
        let h264 = target.refusesLarger ? rendition.comparedWith.map { AliasKey(source, $0) } : nil
        let hit = hits.renditionResponse(renditionRequest.key, terms, unlessLarger: unlessLarger, h264: h264)
        if let hit { return .now(hit) }
        let queues = target.onMiss == .queue
        let follows = target.negotiation != nil && target.onMiss == .original
        return .later(in: RequestSpan(of: request, tracer)) {
            if let accepted = await asynchronous.response(to: renditionRequest, client, url: url, terms) { return accepted }
            if rendition == target.negotiation?.avif, let original = alternative,
                let response = await responseBeforeSequence(
                    renditionRequest, original, follows: follows, onError: target.onError, terms)
            {
                return response
            }
            if queues, await queue(renditionRequest) { return problems.failure(.notReady, host: source.host, terms) }
            var request = renditionRequest
            // The alternative and the source itself come from the same fetch.
            request.allowance = client.allowance.countedOnce
            return await missResponse(
                request, follows: follows, onError: target.onError, refusesLarger: target.refusesLarger, terms)
        }
    }

    /// Responds with the source where `Accept` selects an AVIF that is not stored and that the settings leave to the
    /// background. Queues the AVIF if the source was requested often enough.
    ///
    /// - Returns: Nil if clients wait for AVIFs, or if there is an answer: the sequence is stored, or is known to fail.
    private func responseBeforeSequence(
        _ sequence: RenditionRequest, _ original: Rendition, follows: Bool, onError: Mount.OnError, _ terms: ResponseTerms
    ) async -> HTTPResponse? {
        guard let av1After, await pipeline.stored(sequence) == nil, !pipeline.isKnownToFail(sequence) else { return nil }
        let source = sequence.with(original)
        let response = await missResponse(
            source, follows: follows, onError: onError, terms.limited(to: RenditionResponder.composedMaxAge))
        if let uses = await pipeline.stored(source)?.uses, uses >= av1After { background.add(sequence) }
        return response
    }

    /// Queues a rendition that is not stored.
    ///
    /// - Returns: False if there is an answer: the rendition is stored, or is known to fail.
    private func queue(_ request: RenditionRequest) async -> Bool {
        guard !request.isOnlyFromStore, await pipeline.stored(request) == nil, !pipeline.isKnownToFail(request) else {
            return false
        }
        // A page offers both encodings, so its visitors wait for this one.
        let encodedAsH264 = request.rendition.encoded(by: .h264).map(request.with)
        background.add(request, after: encodedAsH264?.key == request.key ? nil : encodedAsH264)
        return true
    }

    /// Responds with the rendition, which the pipeline finds in the cache or produces, or with its alternative if that is smaller.
    ///
    /// - Parameters:
    ///   - follows: Whether the client gets the GIF as it arrives, rather than wait for the rendition.
    ///   - onError: The answer if the rendition cannot be produced.
    ///   - refusesLarger: Whether the response is a problem if the rendition is larger than the source.
    ///   - larger: The rendition that was larger than the GIF, if this is the alternative.
    private func missResponse(
        _ request: RenditionRequest, follows: Bool, onError: Mount.OnError, refusesLarger: Bool = false,
        insteadOf larger: RenditionResult? = nil, _ terms: ResponseTerms
    ) async -> HTTPResponse {
        do throws(RenditionError) {
            var result: RenditionResult
            switch try await (follows ? pipeline.findOrFollow(request) : .rendition(pipeline.find(request))) {
            case .rendition(let found): result = found
            case .source(let source):
                log.followed(request.rendition, host: request.source.host)
                return responder.originalResponse(source, terms)
            }
            if let alternative = request.alternative, responder.isLargerThanSource(result.rendition) {
                let request = request.with(alternative)
                return await missResponse(request, follows: follows, onError: onError, insteadOf: result, terms)
            }
            // If the alternative was a hit, it was stored by the flight of the larger rendition.
            if let larger, result.provenance == .hit { (result.provenance, result.times) = (larger.provenance, larger.times) }
            log.answered(request.rendition, host: request.source.host, result)
            if refusesLarger, await isRefused(result.rendition, request) {
                return problems.failure(.notSmaller, host: request.source.host, terms)
            }
            return responder.response(result, .source, terms)
        } catch {
            return await errorResponse(error, request, onError, terms)
        }
    }

    /// Whether a rendition is larger than its source or, in AV1, not clearly smaller than the stored one in H.264.
    private func isRefused(_ rendition: CachedRendition, _ request: RenditionRequest) async -> Bool {
        if responder.isLargerThanSource(rendition) { return true }
        guard let other = request.rendition.comparedWith, let video = await pipeline.stored(request.with(other)) else {
            return false
        }
        return !Rendition.isWorthOffering(av1: rendition.length, besideH264: video.length)
    }

    private func errorResponse(
        _ error: RenditionError, _ request: RenditionRequest, _ onError: Mount.OnError, _ terms: ResponseTerms
    ) async -> HTTPResponse {
        do throws(RenditionError) {
            if onError == .original, let original = try await pipeline.original(insteadOf: error, for: request) {
                return responder.response(original, .source, terms)
            }
            return problems.failure(Problem(error), host: request.source.host, terms)
        } catch {
            return problems.failure(Problem(error), host: request.source.host, terms)
        }
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
        return responder.documentResponse(document, Rendition.Format.json.contentType, result, terms)
    }

    // MARK: Uploads

    /// Responds to a complete upload.
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

    /// Answers a request for a stored object.
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
        // The facts of an upload, as the response to the upload had them.
        guard let document = await facts.compose(found, nil) else { return ProblemDocument.response(Self.noObject) }
        return responder.documentResponse(document, Rendition.Format.json.contentType)
    }
}
