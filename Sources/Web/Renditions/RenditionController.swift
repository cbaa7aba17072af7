internal import Cache
internal import Fetch
internal import HTTP
internal import Renditions

/// Answers requests for renditions of sources, for their facts, and for stored objects.
struct RenditionController: Sendable {
    private let pipeline: RenditionPipeline
    private let cache: Cache
    private let hits: HitResponder
    private let responder: RenditionResponder
    private let problems: ProblemResponder
    private let facts: FactsComposer
    private let keys: SigningKeys
    private let log: ResponseLog

    init(
        pipeline: RenditionPipeline, cache: Cache, hits: HitResponder, responder: RenditionResponder,
        problems: ProblemResponder, keys: SigningKeys, log: ResponseLog
    ) {
        self.pipeline = pipeline
        self.cache = cache
        self.hits = hits
        self.responder = responder
        self.problems = problems
        facts = FactsComposer(cache: cache)
        self.keys = keys
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
        let prefersVideo = target.isNegotiable && AcceptField(request.headers("Accept")).prefersVideo
        let rendition = prefersVideo ? named : target.fallback ?? named
        let renditionRequest = RenditionRequest(rendition, of: source, urgency: client.urgency, allowance: client.allowance)
        let terms = target.terms
        if rendition.format == .json {
            let addresses = RenditionAddresses(target, of: source, keys: keys)
            return .later(for: request) { await factsResponse(renditionRequest, addresses, terms) }
        }
        // If the video is larger than the GIF, the GIF is the negotiated response.
        let alternative = prefersVideo ? target.fallback : nil
        if let hit = hits.rendition(renditionRequest.key, terms, unlessLargerFor: alternative) { return .now(hit) }
        return .later(for: request) { await missResponse(renditionRequest, alternative, terms) }
    }

    /// Responds with the rendition, which the pipeline finds in the cache or produces.
    ///
    /// - Parameter alternative: Sent if the rendition is larger than its source.
    private func missResponse(
        _ request: RenditionRequest, _ alternative: Rendition?, _ terms: ResponseTerms
    ) async -> HTTPResponse {
        do throws(RenditionError) {
            let result = try await pipeline.find(request)
            if let alternative, responder.isLargerThanSource(result.rendition) {
                var request = request.with(alternative)
                // The client has used its allowance already.
                request.allowance = .unlimited
                return await missResponse(request, nil, terms)
            }
            log.answered(request.rendition, host: request.source.host, result)
            return responder.response(result, .source, terms)
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
            return problems.failure(Problem(error), host: request.source.host)
        }
    }

    private func document(
        _ result: RenditionResult, _ addresses: RenditionAddresses?, host: String?, _ terms: ResponseTerms
    ) async -> HTTPResponse {
        guard let document = await facts.document(result.rendition, addresses) else {
            return problems.failure(Problem(422, "transcode_failed", "The facts could not be read."), host: host)
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
            response.headers.append("Content-Location", RenditionResponder.path(result.rendition))
            return response
        } catch {
            return problems.failure(Problem(error), host: nil)
        }
    }

    // MARK: Objects

    /// Answers a request for a stored object.
    func object(_ id: ObjectID, _ fileExtension: String, _ request: borrowing HTTPRequest) -> HTTPReply {
        if let hit = hits.object(id, fileExtension) { return .now(hit) }
        return .later(for: request) {
            guard let found = await pipeline.object(id, fileExtension: fileExtension), found.fileExtension == fileExtension
            else {
                return ProblemDocument.response(.notFound("No rendition is stored under this id and extension."))
            }
            log.answered(object: RenditionResponder.path(found))
            return responder.hit(found, .object)
        }
    }
}
