internal import Fetch
package import HTTP
package import Logging
package import Prewarm
package import Renditions
package import Store
internal import Synchronization
package import SystemIO
package import Telemetry

/// The HTTP interface: parses a request's target, checks access, and calls the controller of its route.
///
/// Each reload creates a new handler from the new policy. Runs on event loop threads and never blocks them: work that waits
/// runs in a task.
package final class WebHandler: HTTPHandler {
    /// The parts of the process that the handler uses. They live as long as the process.
    package struct Dependencies: Sendable {
        let cache: Cache
        let state: RenditionState
        let purges: Purges
        package let prewarm: PrewarmQueue
        package let background: BackgroundRenditions
        let registry: PrometheusRegistry
        let meter: WorkMeter
        package let limits: ClientLimits
        package let hooks: PurgeHooks
        package let uploads: UploadAdmission
        package let statuses: StatusRegistry
        let sharedStatuses: (any SharedStatusBook)?
        package let webhooks: Webhooks
        let factsLists = FactsLists()
        package let usage: UsageBoard
        let tracer: OTLPTracer
        let clock: TimeSource
        let threads: WorkThreads
        let metricsThreads: WorkThreads
        let sharing: @Sendable () async -> SharingStatus

        /// - Parameters:
        ///   - sharedStatuses: The statuses of other nodes; nil for a node that works alone.
        ///   - threads: The threads that run the blocking parts of operators' requests.
        ///   - metricsThreads: The threads that collect the metrics, which must not wait for operators' requests: a prewarm list
        ///     may take long.
        package init(
            cache: Cache, state: RenditionState, purges: Purges, prewarm: PrewarmQueue,
            background: BackgroundRenditions, registry: PrometheusRegistry,
            meter: WorkMeter, limits: ClientLimits, hooks: PurgeHooks, uploads: UploadAdmission, statuses: StatusRegistry,
            sharedStatuses: (any SharedStatusBook)?, webhooks: Webhooks, usage: UsageBoard, tracer: OTLPTracer,
            clock: TimeSource, threads: WorkThreads, metricsThreads: WorkThreads,
            sharing: @escaping @Sendable () async -> SharingStatus
        ) {
            self.cache = cache
            self.state = state
            self.purges = purges
            self.prewarm = prewarm
            self.background = background
            self.registry = registry
            self.meter = meter
            self.limits = limits
            self.hooks = hooks
            self.uploads = uploads
            self.statuses = statuses
            self.sharedStatuses = sharedStatuses
            self.webhooks = webhooks
            self.usage = usage
            self.tracer = tracer
            self.clock = clock
            self.threads = threads
            self.metricsThreads = metricsThreads
            self.sharing = sharing
        }

        /// Ends the threads. Blocks.
        package func close() {
            for threads in [threads, metricsThreads, factsLists.threads] { threads.close() }
        }
    }

    /// The state that `/readyz` reports.
    private enum Readiness: Int {
        case starting
        case ready
        case draining
    }

    private let crossOrigin: CrossOrigin
    private let parser: RouteParser
    private let access: AccessControl
    private let hits: HitResponder
    private let problems: ProblemResponder
    private let renditions: RenditionController
    private let uploads: UploadController
    private let site: SiteController
    private let facts: FactsController
    private let pages: PageController
    private let admin: AdminController
    private let explain: ExplainController
    private let top: TopController
    private let metrics: MetricsController
    private let statuses: StatusController
    private let asynchronous: AsyncResponder
    private let prewarm: PrewarmController
    private let readiness = Atomic(Readiness.starting.rawValue)

    package init(_ policy: WebPolicy, pipeline: RenditionPipeline, _ dependencies: Dependencies, logger: Logger) {
        parser = RouteParser(mounts: policy.mounts, defaults: pipeline.defaults)
        access = AccessControl(policy, limits: dependencies.limits, clock: dependencies.clock)
        crossOrigin = CrossOrigin(allowing: policy.head.allowOrigin)
        let log = ResponseLog(logger: logger)
        problems = ProblemResponder(
            errorPage: ErrorPage(version: policy.version), log: log, secondsLeft: access.signatures.secondsLeft)
        let responder = RenditionResponder(
            policy, cache: dependencies.cache, crossOrigin: crossOrigin, secondsLeft: access.signatures.secondsLeft)
        hits = HitResponder(cache: dependencies.cache, responder: responder, access: access)
        statuses = StatusController(registry: dependencies.statuses, book: dependencies.sharedStatuses)
        asynchronous = AsyncResponder(
            pipeline: pipeline, registry: dependencies.statuses,
            sharing: dependencies.sharedStatuses.map { StatusSharing(book: $0, registry: dependencies.statuses) },
            webhooks: dependencies.webhooks, log: log)
        renditions = RenditionController(
            pipeline: pipeline, background: dependencies.background, cache: dependencies.cache, hits: hits,
            responder: responder, problems: problems, asynchronous: asynchronous, keys: policy.signingKeys,
            av1After: policy.av1After, tracer: dependencies.tracer, log: log)
        uploads = UploadController(
            renditions: renditions, access: access, parser: parser, admission: dependencies.uploads,
            meter: dependencies.meter, maxBytes: policy.maxUploadBytes)
        facts = FactsController(
            pipeline: pipeline, cache: dependencies.cache, background: dependencies.background,
            lists: dependencies.factsLists, parser: parser, access: access, keys: policy.signingKeys)
        site = SiteController(policy, pipeline.defaults, crossOrigin: crossOrigin)
        pages = PageController(
            policy: policy, renditions: renditions, pages: PageResolver(policy: policy, parser: parser, access: access),
            playerPage: PlayerPage(policy.preview))
        admin = AdminController(
            pipeline: pipeline, purges: dependencies.purges, cache: dependencies.cache, state: dependencies.state,
            sharing: dependencies.sharing, hooks: dependencies.hooks, parser: parser, signatures: access.signatures,
            publicURL: policy.publicURL, tokens: AdminController.digests(of: policy))
        explain = ExplainController(policy: policy, parser: parser, access: access, admin: admin)
        top = TopController(board: dependencies.usage)
        metrics = MetricsController(
            registry: dependencies.registry, allowed: policy.metricsReaders, hosts: policy.metricsHosts,
            publicHost: policy.publicURL.flatMap { try? SourceURL($0) }?.host, admin: admin,
            threads: dependencies.metricsThreads)
        prewarm = PrewarmController(
            queue: dependencies.prewarm, webhooks: dependencies.webhooks, threads: dependencies.threads)
    }

    /// Makes `/readyz` return 200, unless the handler is draining. Any thread.
    package func becomeReady() {
        _ = readiness.compareExchange(
            expected: Readiness.starting.rawValue, desired: Readiness.ready.rawValue, ordering: .relaxed)
    }

    /// Makes `/readyz` return 503 from now on. Any thread.
    package func drain() {
        readiness.store(Readiness.draining.rawValue, ordering: .relaxed)
    }

    /// Whether `/readyz` reports 200. Any thread.
    package var isReady: Bool { readiness.load(ordering: .relaxed) == Readiness.ready.rawValue }

    package func respond(to request: borrowing HTTPRequest) -> HTTPReply {
        if access.limitsBytes, let refusal = byteRefusal(request) { return crossOrigin.applied(to: .now(refusal)) }
        if let hit = hits.response(to: request) { return .now(hit) }
        if request.method == .options { return .now(crossOrigin.preflight(allow: methods(of: request.target))) }
        return route(request)
    }

    /// A problem document, as for errors of the handler.
    package func response(to error: HTTPProtocolError) -> HTTPResponse {
        crossOrigin.applied(
            to: ProblemDocument.response(Problem(error.status, error.code, error.sentence, retryAfter: error.retryAfter)))
    }

    /// The response to a client that has received too many bytes. Operators' routes stay open to it, and so do requests whose
    /// responses have no body.
    private func byteRefusal(_ request: borrowing HTTPRequest) -> HTTPResponse? {
        do throws(Problem) {
            guard request.method == .get || request.method == .post else { return nil }
            try access.checkBytes(request.clientAddress.map(ClientNetwork.init))
        } catch {
            switch try? parse(request).route {
            case .rendition, .upload, .object, .oembed, .facts, .factsModule:
                return problems.response(error, ProblemForm(request, parser))
            default: return nil
            }
        }
        return nil
    }

    private func route(_ request: borrowing HTTPRequest) -> HTTPReply {
        do throws(Problem) {
            let method = request.method
            var target = try parse(request)
            if method == .get || method == .head {
                try access.check(&target, request)
                // Each visitor's parameters would make a source of their own.
                if case .rendition(let rendition, _) = target.route, rendition.format == .html, target.key == nil,
                    let redirect = redirect(request)
                {
                    return redirect
                }
                // The width of a client is not in the bytes of its target, and a callback is checked each time.
                if !target.hasAutomaticWidth && target.callback == nil { hits.remember(target, for: request.targetBytes) }
            }
            let resolved = target.hasAutomaticWidth ? target.resolved(WidthHints { request.header($0) }) : target
            let reply = try dispatch(request, resolved)
            // With cross-origin fields, any page could read the metrics in the browser of a client whose address suffices.
            if case .metrics = target.route, metrics.isGrantedByAddress(request) { return reply }
            return crossOrigin.applied(to: reply)
        } catch {
            if error.status == 400 || error.isBadSignature, let redirect = redirect(request) { return redirect }
            return crossOrigin.applied(to: .now(problemResponse(error, request)))
        }
    }

    /// Redirects a client whose address has parameters that other sites append to links: they are no options, and a signature
    /// does not cover them. Nil for any other address.
    private func redirect(_ request: borrowing HTTPRequest) -> HTTPReply? {
        guard request.method == .get || request.method == .head, let target = RouteParser.withoutTrackers(request.target) else {
            return nil
        }
        // Relative, because a proxy may serve this server below a path.
        let (path, query) = target.pathAndQuery
        let name = "./\(path.parts(at: UInt8(ascii: "/"), keepingEmpty: true).last ?? "")\(query)"
        let headers: HTTPHeaders = ["Location": name, "Cache-Control": "no-store"]
        return crossOrigin.applied(to: .now(HTTPResponse(status: 302, headers: headers)))
    }

    /// Returns the response with the problem of a request. If the target is valid with another method, the method is the
    /// problem.
    private func problemResponse(_ problem: Problem, _ request: borrowing HTTPRequest) -> HTTPResponse {
        let method = request.method
        // An upload's problem lies in its target, even if the target is valid with another method.
        if ![.get, .head, .post].contains(method) {
            let methods = routeMethods(of: request.target)
            if !methods.isEmpty && !methods.contains(method) { return methodNotAllowed(methods, request) }
        }
        return problems.response(problem, ProblemForm(request, parser))
    }

    /// Parses the target of a request. The target of a form may lack options that the form contains.
    private func parse(_ request: borrowing HTTPRequest) throws(Problem) -> ParsedTarget {
        if request.method == .purge {
            return try parser.parse(parser.linked(try parser.splitWait(request.target).target, access.signatures))
        }
        let hasBody = request.method == .post
        let isForm = hasBody && MultipartParser.isForm(request.headerBytes("Content-Type"))
        return try parser.parse(request.target, hasBody: hasBody, fields: isForm ? nil : [])
    }

    private func dispatch(_ request: borrowing HTTPRequest, _ target: ParsedTarget) throws(Problem) -> HTTPReply {
        let method = request.method
        guard target.route.methods.contains(method) else {
            return .now(methodNotAllowed(target.route.methods, request))
        }
        if target.route.needsToken { try admin.authorize(request) }
        switch target.route {
        case .health:
            return .now(Self.ok)
        case .readiness:
            return .now(readinessResponse)
        case .rendition(_, let source) where method == .purge:
            return try purge(.url(source.canonical), request)
        case .rendition(let rendition, let source):
            var client = ClientContext(request, access, target.key)
            client.callback = try asynchronous.receiver(target, client)
            if rendition.format == .html {
                return try pages.player(target, client, ProblemForm(request, parser), request)
            }
            return renditions.answer(target, rendition, of: source, client, request)
        case .object(let id, _) where method == .purge:
            return try purge(.object(id), request)
        case .purge(let id):
            return admin.progress(ofPurge: id)
        case .object(let id, let fileExtension):
            return renditions.object(id, fileExtension, ClientContext(request, access), request)
        case .upload(let rendition):
            return .receive(try uploads.sink(target, rendition, ClientContext(request, access), request))
        case .facts(let query):
            return .receive(try facts.sink(query, ClientContext(request, access), request))
        case .factsModule(let query):
            return try facts.module(query, ClientContext(request, access), request)
        case .home:
            return .now(try site.home())
        case .openAPI:
            return .now(HTTPResponse(site.openAPI))
        case .file(let file):
            return .now(site.file(file))
        case .oembed(let query):
            return try pages.oembed(query, ClientContext(request, access), request)
        case .prewarm(let id, let query):
            return try prewarm.answer(method, id, query, key: request.header("Idempotency-Key"))
        case .status(let id):
            return try statuses.answer(method, id, request)
        case .metrics:
            return try metrics.answer(request)
        case .top(let query):
            return try top.answer(query)
        case .explain(let query):
            return try explain.answer(query)
        case .cache(let query):
            return try admin.answer(method, query, within: PurgeWait.preferred(request))
        }
    }

    /// Handles the method `PURGE`. The wait is in the query or in the field `Prefer`.
    private func purge(_ scope: PurgeScope, _ request: borrowing HTTPRequest) throws(Problem) -> HTTPReply {
        let wait = try parser.splitWait(request.target).wait
        let limit: Duration? = if let wait { try PurgeWait.duration(wait) } else { PurgeWait.preferred(request) }
        try admin.authorize(request)
        return admin.purge(scope, within: limit)
    }

    /// Calls the hooks for a purge that this node has applied later than others. Any thread.
    package func appliedLate(_ scope: PurgeScope) {
        admin.appliedLate(scope)
    }

    // MARK: Methods

    /// The methods that a preflight of a target allows. A preflight contains neither the body nor the signature of the actual
    /// request, so an invalid target has all methods.
    private func methods(of target: String) -> [HTTPMethod] {
        let methods = routeMethods(of: target)
        return methods.isEmpty ? [.get, .head, .post, .delete, .purge, .options] : allowed(methods)
    }

    /// The methods of the routes of a target, with a body and without one; empty for an invalid target.
    private func routeMethods(of target: String) -> [HTTPMethod] {
        var methods: [HTTPMethod] = []
        for hasBody in [false, true] {
            guard let parsed = try? parser.parse(target, hasBody: hasBody) else { continue }
            methods += parsed.route.methods.filter { !methods.contains($0) }
        }
        return methods
    }

    /// Returns the methods of a route that responses name, without `PURGE` while the admin interface is off: it then answers
    /// 404.
    private func allowed(_ methods: [HTTPMethod]) -> [HTTPMethod] {
        methods.filter { $0 != .purge || admin.isOn }
    }

    private func methodNotAllowed(_ methods: [HTTPMethod], _ request: borrowing HTTPRequest) -> HTTPResponse {
        let allowed = allowed(methods).allowValue
        let method = request.method.description.prefix(32)
        let detail = "\(method) is not allowed for this route. The allowed methods are \(allowed)."
        var response = problems.response(Problem(405, "method_not_allowed", detail), ProblemForm(request, parser))
        response.headers.append("Allow", allowed)
        return response
    }

    /// A cache in front must not answer for a server that has ended.
    private static let ok = HTTPResponse(
        status: 200, contentType: "text/plain", text: "ok\n", headers: ["Cache-Control": "no-store"])

    private var readinessResponse: HTTPResponse {
        switch Readiness(rawValue: readiness.load(ordering: .relaxed)) {
        case .ready: Self.ok
        case .draining: ProblemDocument.response(.draining)
        case .starting, nil: ProblemDocument.response(Problem(503, "overloaded", "The server is starting.", retryAfter: 1))
        }
    }
}
