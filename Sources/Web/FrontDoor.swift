package import Cache
internal import Fetch
package import HTTP
package import Logging
package import Prewarm
package import PrometheusMetrics
package import Renditions
internal import Sandbox
internal import ServiceContextModule
internal import Synchronization
package import SystemIO

/// Answers every request: reads what it asks for, and hands it to the room that knows.
///
/// Runs on the loop threads, so it only ever looks at memory; all that waits is a task of its own.
package final class FrontDoor: HTTPHandler {
    let parser: RouteParser
    private let memo = RouteMemo()
    private let store: RenditionStore
    private let answers: RenditionAnswer
    package let crossOrigin: CrossOrigin
    private let admin: AdminDesk
    private let facts: FactsDesk
    let access: AccessControl
    let pages: PageDesk
    private let metrics: MetricsDesk
    private let prewarm: PrewarmController
    private let work: WorkMeter
    private let uploads: UploadAdmission
    private let configuration: WebPolicy
    private let logger: Logger
    private let state = Atomic(State.starting.rawValue)

    /// What `/readyz` tells.
    package enum State: Int, Sendable {
        case starting
        case ready
        case draining
    }

    package init(
        configuration: WebPolicy, store: RenditionStore, registry: PrometheusRegistry, prewarm: PrewarmQueue,
        threads: WorkThreads, limiter: RateLimiter, clock: CacheClock, work: WorkMeter, uploads: UploadAdmission,
        logger: Logger
    ) {
        let access = AccessControl(configuration, limiter: limiter, clock: clock)
        let admin = AdminDesk(store: store, token: configuration.adminToken)
        self.configuration = configuration
        parser = RouteParser(mounts: configuration.mounts)
        self.store = store
        crossOrigin = CrossOrigin(allowing: configuration.allowOrigin)
        answers = RenditionAnswer(configuration, crossOrigin: crossOrigin, secondsLeft: access.signatures.secondsLeft)
        facts = FactsDesk(cache: store.cache)
        self.admin = admin
        self.access = access
        pages = PageDesk(
            configuration, store: store, answers: answers, crossOrigin: crossOrigin, parser: parser, access: access)
        metrics = MetricsDesk(
            registry: registry, allowed: configuration.metricsReaders, admin: admin, threads: threads)
        self.prewarm = PrewarmController(queue: prewarm, admin: admin, threads: threads)
        self.work = work
        self.uploads = uploads
        self.logger = logger
    }

    /// Says how the service is; any thread.
    package func become(_ new: State) {
        state.store(new.rawValue, ordering: .relaxed)
    }

    /// Whether requests are welcome; any thread.
    package var isReady: Bool { state.load(ordering: .relaxed) == State.ready.rawValue }

    package func respond(to request: borrowing HTTPRequest) -> HTTPReply {
        if let hit = hit(request) { return .now(hit) }
        if request.method == .options { return .now(crossOrigin.preflight(allow: methods(of: request.target))) }
        return crossOrigin.applied(to: reply(to: request))
    }

    private func reply(to request: borrowing HTTPRequest) -> HTTPReply {
        do throws(Problem) {
            let method = request.method
            let asked = try parser.parse(request.target, hasBody: method == .post)
            if method == .get || method == .head {
                try access.check(asked, request)
                memo.note(asked, for: request.targetBytes)
            }
            return try reply(to: request, asked)
        } catch {
            return .now(response(error, ProblemForm(request, parser)))
        }
    }

    /// The answer to a target that was asked for before and whose rendition is in use: no parsing, no strings.
    private func hit(_ request: borrowing HTTPRequest) -> HTTPResponse? {
        let method = request.method
        guard method == .get || method == .head, let known = memo.entry(for: request.targetBytes) else { return nil }
        if let expires = known.expires, access.signatures.hasExpired(expires) { return nil }
        if let alias = known.alias {
            var key = alias
            if let fallback = known.fallback {
                let prefersVideo = AcceptField(request.headers("Accept")).prefersVideo
                if !prefersVideo || store.hot(alias).map(answers.isLargerThanSource) == true { key = fallback }
            }
            guard let hot = store.hot(key) else { return nil }
            return answers.hit(hot, .source, known.terms)
        }
        guard let object = known.object, let hot = store.cache.hotObject(object.id),
            hot.fileExtension == object.fileExtension
        else { return nil }
        return answers.hit(hot, .object)
    }

    private func reply(to request: borrowing HTTPRequest, _ asked: ParsedTarget) throws(Problem) -> HTTPReply {
        let method = request.method
        let route = asked.route
        let allowed = allowedMethods(route)
        guard allowed.contains(method) else {
            let detail = "\(method.description.prefix(32)) is not allowed here. The methods are \(allowed.allowValue)."
            return .now(
                ProblemDocument.response(
                    Problem(405, "method_not_allowed", detail), headers: ["Allow": allowed.allowValue]))
        }
        switch route {
        case .health:
            return .now(HTTPResponse(status: 200, contentType: "text/plain", text: "ok\n"))
        case .readiness:
            return .now(readiness)
        case .rendition(let named, let url):
            if method == .purge { return try admin.purge(url, authorization: request.header("Authorization")) }
            let prefersVideo = asked.isNegotiable && AcceptField(request.headers("Accept")).prefersVideo
            let rendition = prefersVideo ? named : asked.fallback ?? named
            let terms = asked.terms
            if rendition.format == .html { return try page(asked, request) }
            if rendition.format == .json {
                let (urgency, allowance) = (PriorityField.urgency(request.header("Priority")), access.allowance(request))
                let addresses = RenditionAddresses(asked, of: url, keys: configuration.signingKeys)
                return later(request) { await self.facts(rendition, url, addresses, terms, urgency, allowance) }
            }
            let alias = AliasKey(sourceURL: url.canonical, rendition: rendition.canonicalText)
            // Of a video that is larger than its GIF, the GIF is the negotiated answer.
            let fallback = prefersVideo ? asked.fallback : nil
            if let hot = store.hot(alias), fallback == nil || !answers.isLargerThanSource(hot) {
                return .now(answers.hit(hot, .source, terms))
            }
            let urgency = PriorityField.urgency(request.header("Priority"))
            let allowance = access.allowance(request)
            return later(request) { await self.miss(rendition, or: fallback, url, terms, urgency, allowance) }
        case .object(let id, let fileExtension):
            if method == .purge { return try admin.purge(id, authorization: request.header("Authorization")) }
            return object(id, fileExtension)
        case .upload(let rendition):
            return .receive(try sink(for: request, asked, rendition))
        case .home:
            return .now(try pages.home())
        case .oembed(let query):
            return try oembed(query, request)
        case .prewarm(let id, let query):
            return try prewarm.answer(method, id, query, authorization: request.header("Authorization"))
        case .metrics:
            return try metrics.answer(request)
        case .cache(let query):
            return try admin.answer(method, query, authorization: request.header("Authorization"))
        }
    }

    private func allowedMethods(_ route: Route) -> [HTTPMethod] {
        switch route {
        case .rendition, .object: [.get, .head, .options] + (admin.isOn ? [.purge] : [])
        case .metrics, .health, .readiness, .home, .oembed: [.get, .head, .options]
        case .prewarm(let id, _): id == nil ? [.post, .options] : [.get, .head, .delete, .options]
        case .upload: [.post, .options]
        case .cache: [.get, .head, .delete, .options]
        }
    }

    /// The methods of the routes that a target may mean, with a body and without one. OPTIONS has neither the body nor the
    /// signature of the request that it asks about, so a target that is invalid by itself has every method.
    private func methods(of target: String) -> [HTTPMethod] {
        var methods: [HTTPMethod] = []
        for hasBody in [false, true] {
            guard let asked = try? parser.parse(target, hasBody: hasBody) else { continue }
            methods += allowedMethods(asked.route).filter { !methods.contains($0) }
        }
        return methods.isEmpty ? [.get, .head, .post, .delete, .purge, .options] : methods
    }

    private var readiness: HTTPResponse {
        switch State(rawValue: state.load(ordering: .relaxed)) {
        case .ready: HTTPResponse(status: 200, contentType: "text/plain", text: "ok\n")
        case .draining: ProblemDocument.response(.draining)
        case .starting, nil: ProblemDocument.response(Problem(503, "overloaded", "The server is starting.", retryAfter: 1))
        }
    }

    // MARK: Answers that take time

    /// A reply that takes time; the request's id and trace go with all that is done for it.
    func later(
        _ request: borrowing HTTPRequest, _ work: @escaping @Sendable () async -> HTTPResponse
    ) -> HTTPReply {
        let context = ServiceContext(request)
        return .later { await ServiceContext.withValue(context) { await work() } }
    }

    /// - Parameter fallback: The answer where the rendition is larger than its GIF.
    private func miss(
        _ rendition: Rendition, or fallback: Rendition?, _ url: SourceURL, _ terms: AnswerTerms, _ urgency: Urgency,
        _ allowance: MissAllowance
    ) async -> HTTPResponse {
        switch await store.find(rendition, of: url, urgency: urgency, allowance) {
        case .success(let found)?:
            if let fallback, answers.isLargerThanSource(found.rendition) {
                return await miss(fallback, or: nil, url, terms, urgency, .unlimited)
            }
            logAnswer(rendition, host: url.host, found)
            return answers.response(found, .source, terms)
        case .failure(let error)?: return failed(Problem(error), host: url.host, terms)
        case nil: return ProblemDocument.response(.overloaded)  // The client has left; nobody reads it.
        }
    }

    private func facts(
        _ rendition: Rendition, _ url: SourceURL, _ addresses: RenditionAddresses, _ terms: AnswerTerms, _ urgency: Urgency,
        _ allowance: MissAllowance
    ) async -> HTTPResponse {
        switch await store.find(rendition, of: url, urgency: urgency, allowance) {
        case .success(let found)?: return await composed(found, addresses, host: url.host, rendition, terms)
        case .failure(let error)?: return failed(Problem(error), host: url.host)
        case nil: return ProblemDocument.response(.overloaded)
        }
    }

    private func composed(
        _ found: RenditionStore.Found, _ addresses: RenditionAddresses?, host: String?, _ rendition: Rendition,
        _ terms: AnswerTerms = .plain
    ) async -> HTTPResponse {
        guard let document = await facts.document(found.rendition, addresses) else {
            return failed(Problem(422, "transcode_failed", "The facts could not be read."), host: host)
        }
        return answers.composed(document, rendition.format.contentType, found, terms)
    }

    private func object(_ id: ObjectID, _ fileExtension: String) -> HTTPReply {
        if let hot = store.cache.hotObject(id), hot.fileExtension == fileExtension { return .now(answers.hit(hot, .object)) }
        return .later { [store, answers] in
            guard let found = await store.cache.object(id), found.fileExtension == fileExtension else {
                return ProblemDocument.response(.notFound("No rendition is stored under this id and extension."))
            }
            return answers.hit(found, .object)
        }
    }

    private func uploaded(
        _ rendition: Rendition, _ source: Source, _ terms: AnswerTerms, _ urgency: Urgency, _ allowance: MissAllowance
    ) async -> HTTPResponse {
        work.uploaded(source.count)
        switch await store.find(rendition, of: source, urgency: urgency, allowance) {
        case .success(let found)?:
            logAnswer(rendition, host: nil, found)
            var response =
                rendition.format == .json
                ? await composed(found, nil, host: nil, rendition, terms) : answers.response(found, .object, terms)
            response.headers.append("Content-Location", RenditionAnswer.path(found.rendition))
            return response
        case .failure(let error)?: return failed(Problem(error), host: nil)
        case nil: return ProblemDocument.response(.overloaded)
        }
    }

    // MARK: Uploads

    /// Takes an uploaded GIF: the body itself, or a file in a form.
    private func sink(
        for request: borrowing HTTPRequest, _ asked: ParsedTarget, _ rendition: Rendition
    ) throws(Problem) -> any HTTPBodySink {
        guard rendition.format != .html else { throw .badRequest("A page needs the URL of a GIF; uploads have no pages.") }
        let form = try MultipartParser(form: request.header("Content-Type"))
        try access.checkLoop(request)
        // A signature covers the options of target and form together, so that of a form is checked when its fields are known.
        if form == nil { try access.check(asked) }
        // Before the body, so that a client does not send in vain what cannot be converted.
        let client = request.clientAddress.map { ClientNetwork($0) }
        guard store.hasRoom, let reservation = uploads.admit(client) else { throw .overloaded }
        let urgency = PriorityField.urgency(request.header("Priority"))
        let allowance = access.allowance(request)
        let limit = configuration.maxUploadBytes
        let context = ServiceContext(request)
        let answer = { @Sendable (rendition: Rendition, source: Source, terms: AnswerTerms) in
            defer { withExtendedLifetime(reservation) {} }
            return await ServiceContext.withValue(context) {
                await self.uploaded(rendition, source, terms, urgency, allowance)
            }
        }
        let terms = asked.terms
        guard let form else {
            return UploadSink(limit: limit, reservation: reservation) { await answer(rendition, $0, terms) }
        }
        let target = request.target
        return FormSink(parser: form, limit: limit, reservation: reservation) { fields throws(Problem) in
            let asked = try self.parser.parse(target, hasBody: true, fields: fields)
            try self.access.check(asked)
            guard case .upload(let rendition) = asked.route else {
                throw .badRequest("The target names a source, and the form has a file.")
            }
            let terms = asked.terms
            return { await answer(rendition, $0, terms) }
        }
    }

    /// Says how a request that waited was answered, and what it waited for.
    private func logAnswer(_ rendition: Rendition, host: String?, _ found: RenditionStore.Found) {
        guard logger.logLevel <= .info else { return }
        var metadata: Logger.Metadata = [
            "rendition": "\(rendition.canonicalText)", "source_host": "\(host ?? "upload")",
            "cache_status": "\(RenditionAnswer.cacheStatus(found.provenance))",
        ]
        for (name, value) in found.times.logged { metadata[name] = "\(value)" }
        logger.info("answered", metadata: metadata)
    }

    /// The response for a problem of a source, which is logged unless it was remembered.
    func failed(
        _ problem: Problem, host: String?, _ terms: AnswerTerms = .plain, form: ProblemForm = .document
    ) -> HTTPResponse {
        var headers: HTTPHeaders = terms.varies ? ["Vary": "Accept"] : [:]
        if let status = problem.cacheStatus { headers.append("Cache-Status", status) }
        if problem.isRemembered { return response(problem, form, headers: headers) }
        logger.notice(
            "not made",
            metadata: [
                "code": "\(problem.code)", "source_host": "\(host ?? "upload")", "cause": "\(problem.cause ?? problem.detail)",
            ])
        return response(problem, form, headers: headers)
    }
}
