internal import Foundation
internal import HTTP
internal import Renditions

/// Shows the statuses of this node to the other nodes of a cluster, and theirs to clients of this one.
struct StatusSharing: Sendable {
    let book: any SharedStatusBook
    let registry: StatusRegistry

    /// Shows a new request to the other nodes, and its progress until the end, at most once per interval.
    ///
    /// Returns after the first write, so that the client finds the status on every node.
    func share(_ request: AsyncRequest) async {
        let first = StatusDocument(request)
        if await write(first, of: request) { return }
        Task {
            var (last, writtenAt) = (first, ContinuousClock.now)
            while !last.isFinal {
                await request.awaitEnd(within: registry.timings.sharing)
                let document = StatusDocument(request)
                // A status that does not change has to be written again before it expires.
                guard document != last || writtenAt.duration(to: .now) >= registry.timings.sharing * 5 else { continue }
                if await write(document, of: request) { return }
                (last, writtenAt) = (document, .now)
            }
        }
    }

    /// Writes a status, or removes it if no client wants it any more.
    ///
    /// - Returns: Whether nothing is left to be written.
    private func write(_ document: StatusDocument, of request: AsyncRequest) async -> Bool {
        guard isWanted(request) else {
            await book.remove(request.id)
            return true
        }
        let lifetime = document.isFinal ? registry.timings.lifetime : registry.timings.sharing * 15
        let isLeft = await book.write(request.id, JSONText.encode(document), for: lifetime)
        // A client may have removed the status while it was written.
        guard isLeft || !isWanted(request) else { return false }
        registry.remove(request)
        await book.remove(request.id)
        return true
    }

    /// Whether clients may still ask for the status.
    private func isWanted(_ request: AsyncRequest) -> Bool { !request.isLeft && registry.find(request.id) != nil }
}

/// The events of a status that another node has. They are read from the cluster once per interval.
struct SharedEventStream: Sendable {
    /// The part of a status that tells whether another follows.
    private struct Progress: Decodable {
        let state: String
    }

    let id: UInt128
    let book: any SharedStatusBook
    let timings: StatusRegistry.Timings

    /// Sends events until the end of the work, or until the status is gone.
    ///
    /// - Parameter first: The status that was read before.
    func send(_ first: [UInt8], to writer: HTTPBodyWriter) async throws {
        var next: [UInt8]? = first
        var last: [UInt8]?
        var sentAt = ContinuousClock.now
        while let document = next, !Task.isCancelled {
            let isFinal = Self.isFinal(document)
            if document != last {
                try await writer.write(EventStream.event(document, isFinal: isFinal))
                (last, sentAt) = (document, .now)
            } else if sentAt.duration(to: .now) >= timings.heartbeat {
                try await writer.write(EventStream.comment)
                sentAt = .now
            }
            if isFinal { return }
            try await Task.sleep(for: timings.sharing)
            next = await book.read(id)
        }
    }

    private static func isFinal(_ document: [UInt8]) -> Bool {
        let state = try? JSONDecoder().decode(Progress.self, from: Data(document)).state
        return state == nil || state == StatusDocument.State.done.rawValue || state == StatusDocument.State.failed.rawValue
    }
}
