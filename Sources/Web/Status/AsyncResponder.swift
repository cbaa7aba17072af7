internal import Fetch
internal import HTTP
internal import Renditions
internal import Store
internal import SystemIO

/// Answers asynchronous requests (`Prefer: respond-async`, RFC 7240 section 4.1) with 202 and the address of a status.
struct AsyncResponder: Sendable {
    let pipeline: RenditionPipeline
    let registry: StatusRegistry
    /// Nil for a node that works alone.
    let sharing: StatusSharing?
    let webhooks: Webhooks
    let log: ResponseLog

    /// The receiver of the outcome, if the target names one and the request can be answered with 202.
    ///
    /// - Throws: `bad_option`.
    func receiver(_ target: ParsedTarget, _ client: ClientContext) throws(Problem) -> SourceURL? {
        guard let callback = target.callback else { return nil }
        guard registry.isOn else { throw .badOption("callback", "is not available on this server") }
        guard client.prefersAsync else { throw .badOption("callback", "requires the field Prefer: respond-async") }
        return try webhooks.receiver(callback)
    }

    /// Starts the work for a request that prefers not to wait, and returns the response.
    ///
    /// - Parameters:
    ///   - url: The address of the finished rendition.
    ///   - terms: The properties on which the other answers to the request depend.
    ///   - sendsOriginal: Whether the answer to a waiting request would be the source after the error.
    ///   - isRefused: Whether the answer to a waiting request would be `not_smaller` instead of the finished rendition.
    ///   - accepts: Whether the client accepts the source that would be sent after the error.
    /// - Returns: Nil if the request is answered like any other: it does not prefer 202, or no wait is needed, because the
    ///   rendition is stored or is known to fail.
    func response(
        to request: RenditionRequest, _ client: ClientContext, url: String, _ terms: ResponseTerms,
        orOriginalAfter sendsOriginal: @escaping @Sendable (RenditionError) -> Bool = { _ in false },
        isRefused: @escaping @Sendable (CachedRendition) async -> Bool = { _ in false },
        accepts: @escaping @Sendable (CachedRendition, RenditionError) -> Bool = { _, _ in true }
    ) async -> HTTPResponse? {
        guard client.prefersAsync, !client.wantsStoredOnly, registry.isOn, await pipeline.stored(request) == nil,
            !pipeline.isKnownToFail(request)
        else { return nil }
        guard pipeline.hasCapacity(for: request) else { return Self.varying(ProblemDocument.response(.overloaded), terms) }
        let response = await accept(
            client, request.allowance, host: request.source.host, isRefused: isRefused
        ) { watch throws(RenditionError) in
            var request = request
            request.watch = watch
            request.allowance = request.allowance.counted
            let result: RenditionResult
            do throws(RenditionError) {
                result = try await pipeline.find(request)
            } catch {
                guard sendsOriginal(error), let original = try await pipeline.original(insteadOf: error, for: request),
                    accepts(original.rendition, error)
                else { throw error }
                return (url, original)
            }
            log.answered(request.rendition, host: request.source.host, result)
            return (url, result)
        }
        return Self.varying(response, terms)
    }

    /// Returns the response with the names of the request fields on which it depends.
    private static func varying(_ response: HTTPResponse, _ terms: ResponseTerms) -> HTTPResponse {
        var response = response
        if let vary = terms.vary { response.headers.append("Vary", vary) }
        return response
    }

    /// Starts the work for a complete upload whose client prefers not to wait, and returns the response; nil if it is answered
    /// like any other.
    ///
    /// - Parameter reservation: A reference that accounts for the upload's bytes until the end of the work.
    func response(
        to upload: UploadRequest, _ client: ClientContext, holding reservation: any Sendable
    ) async -> HTTPResponse? {
        guard client.prefersAsync, registry.isOn, await !pipeline.isStored(upload) else { return nil }
        return await accept(client, upload.allowance, host: nil, isRefused: { _ in false }) { watch throws(RenditionError) in
            defer { withExtendedLifetime(reservation) {} }
            var upload = upload
            upload.watch = watch
            upload.allowance = upload.allowance.counted
            let result = try await pipeline.find(upload)
            log.answered(upload.rendition, host: nil, result)
            // The address in the status would not exist.
            guard result.isStored else { throw .storageFailed(cause: "the result of an upload is not stored") }
            return (RenditionResponder.path(result.rendition), result)
        }
    }

    /// Registers the request, starts its work, and returns the response.
    private func accept(
        _ client: ClientContext, _ allowance: MissAllowance, host: String?,
        isRefused: @escaping @Sendable (CachedRendition) async -> Bool,
        _ work: @escaping @Sendable (MissWatch) async throws(RenditionError) -> (url: String, RenditionResult)
    ) async -> HTTPResponse {
        let request: AsyncRequest
        do throws(Problem) {
            try translating(try allowance.use(), to: Problem.init)
            do throws(Problem) {
                request = try registry.open(client.share)
            } catch {
                allowance.giveBack()
                throw error
            }
        } catch {
            return ProblemDocument.response(error)
        }
        request.start { [log] watch in
            do throws(RenditionError) {
                let (url, result) = try await work(watch)
                if await isRefused(result.rendition) { return .failed(.notSmaller) }
                return .done(url: url, RenditionFacts(stored: result.rendition.facts))
            } catch {
                let problem = Problem(error)
                log.failed(problem, host: host)
                return .failed(problem)
            }
        } ended: { [registry, webhooks] in
            registry.ended(request)
            guard let callback = client.callback else { return }
            webhooks.deliver(StatusDocument(request).encoded, of: request.path, to: callback)
        }
        await sharing?.share(request)
        return .json(
            StatusDocument(request), status: 202, ["Location": request.path, "Preference-Applied": "respond-async"])
    }
}
