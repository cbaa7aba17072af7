/// What every loop of a server shares: the settings in the units the loop counts in, and whom it serves.
struct LoopSettings: Sendable {
    let handler: any HTTPHandler
    let errorResponse: @Sendable (HTTPProtocolError) -> HTTPResponse
    let recordsClientFields: Bool
    let proxies: TrustedProxies
    let parser: RequestHeadParser
    let maxDiscarded: Int
    let maxBody: Int
    /// Times in nanoseconds.
    let headTimeout: UInt64
    let idleTimeout: UInt64
    let drainTimeout: UInt64
    let bodyTimeout: UInt64
    let bodyRateWindow: UInt64
    /// Bytes a body must move in one window.
    let bodyBytesPerWindow: Int
    /// Nanoseconds between two looks at all deadlines: how late one may be noticed.
    let sweepInterval: UInt64
    let admission: Admission
    /// Whether the kernel is asked about clients on this machine that have closed their sending half.
    let looksUpLocalPeers: Bool

    init(_ configuration: HTTPServerConfiguration, handler: any HTTPHandler) throws(HTTPServerError) {
        try configuration.validate()
        self.handler = handler
        errorResponse = configuration.errorResponse
        recordsClientFields = configuration.recordsClientFields
        do {
            proxies = try TrustedProxies(configuration.trustedProxies)
        } catch {
            throw .invalidSetting(name: "trusted_proxies", problem: "has \(error.entry)")
        }
        var limits = HeadLimits()
        limits.head = configuration.maxHeadBytes
        limits.target = configuration.maxTargetBytes
        parser = RequestHeadParser(limits: limits)
        maxDiscarded = configuration.maxDiscardedBytes
        maxBody = configuration.maxBodyBytes
        headTimeout = configuration.headTimeout.nanoseconds
        idleTimeout = configuration.idleTimeout.nanoseconds
        drainTimeout = configuration.drainTimeout.nanoseconds
        bodyTimeout = configuration.bodyTimeout.nanoseconds
        bodyRateWindow = configuration.bodyRateWindow.nanoseconds
        bodyBytesPerWindow = configuration.minBodyRate * Int(bodyRateWindow / 1_000_000) / 1000
        let shortest = min(headTimeout, idleTimeout, bodyTimeout, bodyRateWindow)
        sweepInterval = max(10_000_000, min(1_000_000_000, shortest / 8))
        looksUpLocalPeers = configuration.looksUpLocalPeers
        admission = Admission(limit: configuration.maxConnections)
    }
}
