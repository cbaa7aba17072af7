internal import HTTP
internal import SystemIO
internal import Telemetry

/// Handles `/metrics`.
///
/// Clients at the addresses of `metrics.allow` need no token. All others need the admin token, because metrics reveal the load
/// of the service.
struct MetricsController: Sendable {
    private let registry: PrometheusRegistry
    private let allowed: ClientList
    private let admin: AdminController
    /// Reading the metrics takes system calls, which would delay an event loop.
    private let threads: WorkThreads

    init(registry: PrometheusRegistry, allowed: ClientList, admin: AdminController, threads: WorkThreads) {
        self.registry = registry
        self.allowed = allowed
        self.admin = admin
        self.threads = threads
    }

    /// Whether a request may read the metrics by the address of its client alone, without the admin token.
    func isGrantedByAddress(_ request: borrowing HTTPRequest) -> Bool {
        guard allowed.contains(request.clientAddress) else { return false }
        return (try? admin.authorize(request.header("Authorization"))) == nil
    }

    func answer(_ request: borrowing HTTPRequest) throws(Problem) -> HTTPReply {
        if !allowed.contains(request.clientAddress) { try admin.authorize(request.header("Authorization")) }
        let format: ExpositionFormat = AcceptField(request).prefersOpenMetrics ? .openMetrics : .prometheus
        return .later { [registry, threads] in
            guard let text = await threads.run({ registry.text(format) }) else {
                return ProblemDocument.response(.busy)
            }
            return HTTPResponse(
                status: 200, contentType: format.contentType, text: text,
                headers: ["Cache-Control": "no-store", "Vary": "Accept"])
        }
    }
}
