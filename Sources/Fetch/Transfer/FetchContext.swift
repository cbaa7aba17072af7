internal import HTTPClient
internal import Synchronization
internal import SystemIO

/// The configuration of a fetcher with the values derived from it. Immutable.
final class FetchSettings: Sendable {
    let configuration: FetchConfiguration
    let rules: SourceRules
    /// The header fields of every request, besides `Accept`.
    let headers: [String]
    /// The header fields of every request that sends a document.
    let deliveryHeaders: [String]

    init(_ configuration: FetchConfiguration) {
        self.configuration = configuration
        rules = configuration.rules
        headers = [
            // Compression does not make GIFs smaller.
            "Accept-Encoding: identity",
            "CDN-Loop: \(configuration.loopName)",
        ]
        deliveryHeaders = [
            "Accept: */*", "Content-Type: application/json", "CDN-Loop: \(configuration.loopName)",
        ]
    }

    /// The limits of the HTTP client.
    var limits: HTTPClient.Limits {
        HTTPClient.Limits(
            running: configuration.concurrency, runningPerKey: configuration.perHost, waiting: configuration.queue,
            waitingPerKey: configuration.queuePerHost)
    }

    func request(_ method: String, _ url: String, fields: [String], body: ClientRequest.Body? = nil) -> ClientRequest {
        var request = ClientRequest(
            method, url, fields: fields, body: body, timeout: configuration.timeout,
            connectTimeout: configuration.connectTimeout)
        request.stallRate = configuration.stallRate
        request.stallWindow = configuration.stallTimeout
        request.maxHeadBytes = configuration.maxHeadBytes
        request.userAgent = configuration.userAgent ?? request.userAgent
        request.certificateAuthorities = configuration.certificateAuthorities
        return request
    }
}

/// The state that a fetcher shares with its calls. Thread-safe.
final class FetchContext: Sendable {
    private let current: Mutex<FetchSettings>
    let ownEndpoints = OwnEndpoints()
    /// The threads for bodies with a `Content-Encoding`. Each body has at most one turn in the queue.
    let decodingThreads = WorkThreads(count: 2, limit: .max, name: "fetch-decode")
    /// The counters that the HTTP client does not keep.
    let counters = Meter(FetchCounters())

    init(_ configuration: FetchConfiguration) {
        current = Mutex(FetchSettings(configuration))
    }

    /// The settings for requests that start now. A request reads them once and keeps them until it ends.
    var settings: FetchSettings { current.withLock { $0 } }

    func replaceSettings(_ configuration: FetchConfiguration) {
        let next = FetchSettings(configuration)
        current.withLock { $0 = next }
    }
}

/// The check of the addresses that one request connects to.
struct AddressJudge {
    private let url: WebAddress
    private let addresses: AddressPolicy
    private let ownEndpoints: OwnEndpoints
    private(set) var refusal: AddressRefusal?

    init(_ url: WebAddress, _ settings: FetchSettings, _ context: FetchContext) {
        self.url = url
        addresses = settings.rules.addresses
        ownEndpoints = context.ownEndpoints
    }

    /// - Parameter address: Nil if the address is not an IP address.
    mutating func allows(_ address: IPAddress?, port: Int) -> Bool {
        let refusal: AddressRefusal? =
            if let address {
                ownEndpoints.contains(address, port: port) ? .itself : addresses.refusal(of: address, port: port, for: url)
            } else {
                .address(purpose: "not an IP address")
            }
        if let refusal { self.refusal = refusal }
        return refusal == nil
    }
}

/// The counters of a fetcher since its start, and its current load.
package struct FetchCounters: Sendable {
    /// Redirects followed.
    package internal(set) var redirects = 0
    /// Bytes of files read.
    var fileBytes = 0
    var client = HTTPClient.Counters()

    /// Bytes of bodies received, including failed fetches.
    package var bytes: Int { client.bytes + fileBytes }
    /// Connections opened.
    package var connections: Int { client.connections }
    /// Connections refused because of their address or port.
    package var refusedAddresses: Int { client.refusedAddresses }
    /// Fetches with a request in progress.
    package var active: Int { client.active }
    /// Fetches in the queue.
    package var waiting: Int { client.waiting }
}
