internal import Foundation
internal import HTTP

/// Publishes this node's statuses to its cluster, and serves those of other nodes to its own clients.
struct StatusSharing: Sendable {
    /// The other nodes' copy of a status.
    private struct Shown {
        /// The last document that was written; nil before the first one.
        var document: StatusDocument?
        var writtenAt = ContinuousClock.now
        /// The time of the first attempt to write the final document.
        var endedAt: ContinuousClock.Instant?
    }

    let book: any SharedStatusBook
    let registry: StatusRegistry

    /// Publishes a new request to the other nodes, and its progress until the end, at most once per interval.
    ///
    /// Returns after the first write, so that the client finds the status on every node. A write that fails is repeated until
    /// the status expires.
    func share(_ request: AsyncRequest) async {
        var first = Shown()
        if await update(&first, of: request) { return }
        Task { [first] in
            var shown = first
            repeat {
                if shown.endedAt == nil {
                    await request.awaitEnd(within: registry.timings.sharing)
                } else {
                    // After the end, only a failed write remains to be retried.
                    try? await Task.sleep(for: registry.timings.sharing)
                }
            } while await !update(&shown, of: request)
        }
    }

    /// Writes the status if the other nodes do not have it, or removes it if no client wants it any more.
    ///
    /// - Returns: Whether nothing is left to be written.
    private func update(_ shown: inout Shown, of request: AsyncRequest) async -> Bool {
        guard isWanted(request) else {
            try? await book.remove(request.key)
            return true
        }
        let (document, now) = (StatusDocument(request), ContinuousClock.now)
        // A status that does not change has to be written again before it expires.
        guard document != shown.document || shown.writtenAt.duration(to: now) >= registry.timings.sharing * 5 else {
            return false
        }
        if document.isFinal, shown.endedAt == nil { shown.endedAt = now }
        let age = shown.endedAt.map { $0.duration(to: now) }
        let lifetime = age.map { registry.timings.lifetime - $0 } ?? registry.timings.sharedLifetime
        let isCancelled: Bool
        do {
            isCancelled = try await book.write(request.key, document.encoded, for: lifetime)
        } catch {
            return false
        }
        (shown.document, shown.writtenAt) = (document, now)
        // A client may have removed the status while it was written.
        guard isCancelled || !isWanted(request) else { return document.isFinal }
        registry.remove(request)
        try? await book.remove(request.key)
        return true
    }

    /// Whether clients may still ask for the status.
    private func isWanted(_ request: AsyncRequest) -> Bool { registry.find(request.id) != nil }
}

/// The events of a status that another node holds. They are read from the cluster once per interval.
struct SharedEventStream: Sendable {
    /// The part of a status that shows whether another follows.
    private struct Progress: Decodable {
        let state: String
    }

    /// The id of the request in hexadecimal.
    let id: String
    let book: any SharedStatusBook
    let registry: StatusRegistry

    /// Sends events until the end of the work, or until the status is gone. While the statuses are unavailable, it sends
    /// comments. At shutdown, it ends without the last event, so that a browser reconnects to another node.
    ///
    /// - Parameter first: The status that was already read.
    func send(_ first: [UInt8], to writer: HTTPBodyWriter) async throws {
        let timings = registry.timings
        var document = first
        var last: [UInt8]?
        var (sentAt, readAt) = (ContinuousClock.now, ContinuousClock.now)
        var failedAt: ContinuousClock.Instant?
        while !Task.isCancelled, !registry.isClosed, readAt.duration(to: .now) < timings.lifetime {
            let isFinal = Self.isFinal(document)
            if document != last {
                try await writer.write(EventStream.event(document, isFinal: isFinal))
                (last, sentAt) = (document, .now)
            } else if sentAt.duration(to: .now) >= timings.heartbeat {
                try await writer.write(EventStream.comment)
                sentAt = .now
            }
            if isFinal { return }
            await registry.awaitClose(within: timings.sharing)
            do {
                if let next = try await book.read(id) {
                    (document, readAt) = (next, .now)
                } else if !mayReturn(after: failedAt) {
                    return
                }
            } catch {
                failedAt = .now
            }
        }
    }

    /// Whether a status that is gone may be written again: it may have expired while its node could not write it either.
    private func mayReturn(after failedAt: ContinuousClock.Instant?) -> Bool {
        guard let failedAt else { return false }
        return failedAt.duration(to: .now) < registry.timings.sharedLifetime
    }

    private static func isFinal(_ document: [UInt8]) -> Bool {
        let state = try? JSONDecoder().decode(Progress.self, from: Data(document)).state
        return state == nil || state == StatusDocument.State.done.rawValue || state == StatusDocument.State.failed.rawValue
    }
}

/// The statuses of requests that other nodes of a cluster hold, by the ids of the requests in hexadecimal. Every function may
/// throw at any time, while the statuses cannot be read or written.
package protocol SharedStatusBook: Sendable {
    /// Publishes a status to the other nodes.
    ///
    /// - Parameter lifetime: The time after which it is forgotten, unless it is written again.
    /// - Returns: Whether a client has cancelled the request through another node.
    /// - Throws: If the status may not have been written.
    func write(_ id: String, _ document: [UInt8], for lifetime: Duration) async throws -> Bool

    /// Returns the status that another node has published; nil if there is none.
    func read(_ id: String) async throws -> [UInt8]?

    /// Cancels a request of another node, and returns whether there is one.
    func cancel(_ id: String) async throws -> Bool

    /// Removes a status that this node has published. If that fails, the status is forgotten after its lifetime.
    func remove(_ id: String) async throws
}
