internal import Fetch
internal import HTTP
internal import SystemIO
internal import Telemetry

/// Handles `/metrics`.
///
/// Clients at the addresses of `metrics.allow` need no token. All others need the admin token, because metrics reveal the load of
/// the service. So do clients behind a proxy that does not report their addresses. The `Host` of a request without a token must be
/// a name that no web page can point at this server: requests of a page whose name resolves to the server's address (DNS rebinding)
/// come from the browser's address, and the page may read their responses.
struct MetricsController: Sendable {
    let registry: PrometheusRegistry
    let allowed: ClientList
    let hosts: [SourcePattern]
    let publicHost: String?
    let admin: AdminController
    /// Reading the metrics requires system calls, which would delay an event loop.
    let threads: WorkThreads

    /// Whether a request may read the metrics by the address of its client alone, without the admin token.
    func isGrantedByAddress(_ request: borrowing HTTPRequest) -> Bool {
        guard isAllowed(request), isOwnName(request.host) else { return false }
        return (try? admin.authorize(request)) == nil
    }

    func answer(_ request: borrowing HTTPRequest) throws(Problem) -> HTTPReply {
        let isAllowed = isAllowed(request)
        if !isAllowed || !isOwnName(request.host) {
            do throws(Problem) {
                try admin.authorize(request)
            } catch {
                throw isAllowed ? Self.wrongHost : error
            }
        }
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

    private func isAllowed(_ request: borrowing HTTPRequest) -> Bool {
        allowed.contains(request.clientAddress) && !request.isOfUnknownClient
    }

    private static let wrongHost = Problem(
        401, "unauthorized",
        "Without the admin token, metrics are available under an address, a local name or a name in metrics.hosts.")

    /// Endings of names that the public DNS does not resolve.
    private static let localEndings = [".localhost", ".local", ".internal", ".home.arpa"]

    /// Whether no web page can use the name as its own.
    ///
    /// - Parameter host: The `Host` of a request; nil for none. Browsers always send one.
    private func isOwnName(_ host: String?) -> Bool {
        guard let host else { return true }
        guard let url = try? SourceURL("http://\(host)/") else { return false }
        let name = url.host
        return IPAddress(name) != nil || !name.contains(".") || name == publicHost
            || Self.localEndings.contains(where: name.hasSuffix) || hosts.contains { $0.matches(url) }
    }
}
