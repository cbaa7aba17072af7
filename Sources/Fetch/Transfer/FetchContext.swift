internal import Synchronization

/// The configuration of a fetcher with the values derived from it. Immutable.
final class FetchSettings: Sendable {
    let configuration: FetchConfiguration
    let policy: SourcePolicy
    /// The header fields of every request.
    let headers: [String]
    /// The header fields of every request that sends a document.
    let deliveryHeaders: [String]

    init(_ configuration: FetchConfiguration) {
        self.configuration = configuration
        policy = configuration.sourcePolicy
        headers = [
            "Accept: image/gif, */*;q=0.1",
            // Compression makes no GIF smaller.
            "Accept-Encoding: identity",
            "CDN-Loop: \(configuration.loopName)",
        ]
        deliveryHeaders = [
            "Accept: */*", "Content-Type: application/json", "CDN-Loop: \(configuration.loopName)",
        ]
    }

    /// The additional fields of a request.
    ///
    /// A source that redirects to a private origin must not have its credentials, and neither must a host to which that origin
    /// redirects.
    ///
    /// - Parameters:
    ///   - url: That of the request.
    ///   - source: That of the fetch, from which redirects may have led to `url`.
    func fields(of url: SourceURL, source: SourceURL) -> [String] {
        configuration.originFields.filter { $0.apply(to: url) && $0.apply(to: source) }.flatMap(\.fields)
    }

    /// Throws for a URL to which a source may not redirect, whatever addresses its host has.
    func check(_ url: SourceURL, redirectedFrom source: SourceURL) throws(FetchError) {
        try check(url)
        // The request for the source may have been without the signature that the target's need.
        if configuration.signedSources.contains(where: { $0.contains(url) && !$0.contains(source) }) {
            throw .notAllowed(.pattern)
        }
    }

    /// Throws for a URL that may not be fetched, whatever addresses its host has.
    func check(_ url: SourceURL) throws(FetchError) {
        if let refusal = policy.refusal(of: url) { throw .notAllowed(refusal) }
        // A reload may have removed the mount, or moved it to another service.
        if let bucket = url.bucket, !(configuration.buckets[bucket].map { url.requestText.hasPrefix($0.root) } ?? false) {
            throw .notAllowed(.pattern)
        }
        if let file = url.file, !configuration.directories.contains(file.directory) { throw .notAllowed(.pattern) }
    }
}

/// The state that a fetcher shares with its transfer loop. Any thread.
final class FetchContext: Sendable {
    private let current: Mutex<FetchSettings>
    let ownEndpoints = OwnEndpoints()
    let metrics = FetchMetrics()

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

/// The counters of a fetcher since its start, and its present load.
package struct FetchCounters: Sendable {
    /// Redirects followed.
    package fileprivate(set) var redirects = 0
    /// Bytes of bodies received, also by fetches that failed.
    package fileprivate(set) var bytes = 0
    /// Connections opened.
    package fileprivate(set) var connections = 0
    /// Connections refused because of their address or port.
    package fileprivate(set) var refusedAddresses = 0
    /// Fetches with a request in progress now.
    package fileprivate(set) var active = 0
    /// Fetches in the queue now.
    package fileprivate(set) var waiting = 0
}

/// The counters of a fetcher. Any thread.
final class FetchMetrics: Sendable {
    private let counters = Mutex(FetchCounters())

    func snapshot() -> FetchCounters {
        counters.withLock { $0 }
    }

    func countRedirect() {
        counters.withLock { $0.redirects += 1 }
    }

    func count(_ transfer: Transfer) {
        let (bytes, opened, refused) = (transfer.bodyBytes, transfer.openedSockets, transfer.refusedSockets)
        counters.withLock { counters in
            counters.bytes += bytes
            counters.connections += opened
            counters.refusedAddresses += refused
        }
    }

    func count(file bytes: Int) {
        counters.withLock { $0.bytes += bytes }
    }

    func setLoad(active: Int, waiting: Int) {
        counters.withLock { counters in
            counters.active = active
            counters.waiting = waiting
        }
    }
}
