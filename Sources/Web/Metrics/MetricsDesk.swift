internal import HTTP
internal import PrometheusMetrics
internal import SystemIO

/// Answers `/metrics`.
///
/// Who may read it: clients at the addresses of `metrics.allow` without further ado, all others with the admin token.
/// What it tells is no secret of anybody's, but how busy a service is concerns its owners only.
struct MetricsDesk: Sendable {
    private let registry: PrometheusRegistry
    private let allowed: ClientList
    private let admin: AdminDesk
    /// Reading takes system calls, which do not belong on a loop thread.
    private let threads: WorkThreads

    init(registry: PrometheusRegistry, allowed: ClientList, admin: AdminDesk, threads: WorkThreads) {
        self.registry = registry
        self.allowed = allowed
        self.admin = admin
        self.threads = threads
    }

    func answer(_ request: borrowing HTTPRequest) throws(Problem) -> HTTPReply {
        if !allowed.contains(request.clientAddress) { try admin.authorize(request.header("Authorization")) }
        let format = ExpositionFormat.preferred(accept: request.header("Accept"))
        return .later { [registry, threads] in
            guard let text = await threads.run({ registry.text(format) }) else {
                return ProblemDocument.response(.draining)
            }
            return HTTPResponse(
                status: 200, contentType: format.contentType, text: text,
                headers: ["Cache-Control": "no-store", "Vary": "Accept"])
        }
    }
}
