internal import Fetch
internal import HTTP
internal import Renditions
internal import Store
internal import SystemIO

/// Handles `GET /explain`: why a source is or is not converted.
struct ExplainController: Sendable {
    /// The explained request, and the settings that apply to it.
    struct Subject: Sendable {
        let request: RenditionRequest
        let target: ParsedTarget
        let mount: String?
        let mounts: [String]
        let rule: String?
        let lacksSignature: Bool
        let refusal: Problem?

        /// Returns the name of a key's rendition: the requested one, or one with the default options; nil for any other.
        func name(of key: AliasKey) -> String? {
            if key == request.key { return request.rendition.canonicalText }
            return Rendition.Format.allCases.map { Rendition(format: $0) }
                .first { AliasKey(request.source, $0) == key }?.canonicalText
        }
    }

    let policy: WebPolicy
    let parser: RouteParser
    let access: AccessControl
    let admin: AdminController

    /// Explains the source, or the rendition's address on this server, that the query's `url` names. With `fetch=true`, tries
    /// that rendition without storing anything.
    func answer(_ query: [QueryItem]) throws(Problem) -> HTTPReply {
        let urls = query.filter { $0.name == "url" }
        let fetches = query.filter { $0.name == "fetch" }
        guard urls.count == 1, fetches.count <= 1, urls.count + fetches.count == query.count,
            fetches.allSatisfy({ ["true", "false"].contains($0.value) })
        else { throw .badRequest("GET /explain takes url, and fetch=true to try the rendition without storing it.") }
        let subject = try subject(of: try target(urls[0].value))
        let tries = fetches.first?.value == "true"
        return .attempt { [admin] () throws(Problem) in
            let outlook = try await translating(
                awaiting: try await admin.pipeline.outlook(of: subject.request), to: Problem.init)
            let stored = try await translating(
                awaiting: try await admin.cache.list(of: subject.request.source.canonical), to: AdminController.problem)
            let trial = tries && subject.refusal == nil ? await self.trial(of: subject.request) : nil
            let refusal = admin.cache.statistics().refusal ?? admin.cache.space()?.refusal
            return .json(Explanation(subject, stored: stored, outlook, notStoring: refusal?.token, trial: trial))
        }
    }

    private func trial(of request: RenditionRequest) async -> Explanation.Trial {
        do throws(RenditionError) {
            return Explanation.Trial(try await admin.pipeline.tryOut(request))
        } catch {
            return Explanation.Trial(Explanation.Failure(Problem(error)))
        }
    }

    /// Returns the target of an address on this server, or the target of a source's MP4.
    private func target(_ text: String) throws(Problem) -> ParsedTarget {
        if let target = try admin.ownTarget(text) { return target }
        return try parser.parse(parser.path(ofMountedSource: text, "mp4") ?? "/mp4?url=\(PercentEncoding.encode(text))")
    }

    private func subject(of target: ParsedTarget) throws(Problem) -> Subject {
        guard case .rendition(let rendition, let source) = target.route else {
            throw .badRequest("url must be the URL of a source, or the address of a rendition on this server.")
        }
        let mounts = parser.mounts.filter { $0.value.rule.serves(source) }.keys.sorted()
        let (lacksSignature, refusal) = access.judge(target)
        // A page is composed from the facts, and is not stored itself.
        let stored = rendition.format == .html ? Rendition(format: .json) : rendition
        return Subject(
            request: RenditionRequest(stored, of: source), target: target,
            mount: target.mount.flatMap { mount in parser.mounts.filter { $0.value == mount }.keys.min() }, mounts: mounts,
            rule: mounts.first.map { "mounts.\($0)" }
                ?? policy.sources.pattern(allowing: source).map { "sources.allow: \($0)" },
            lacksSignature: lacksSignature, refusal: refusal)
    }
}
