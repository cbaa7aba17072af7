package import Fetch
package import Media
internal import SystemIO

/// The answer to a request that does not wait for its rendition.
package enum FollowedResult: Sendable {
    /// The rendition is stored.
    case rendition(RenditionResult)
    /// The rendition is being produced. The source is the response meanwhile.
    case source(FollowedSource)
}

/// A source whose first bytes have arrived.
package struct FollowedSource: Sendable {
    package let arriving: ArrivingSource
    /// The size in bytes; nil if the origin did not declare it.
    package let length: Int?
    package let format: SourceFormat
    /// Whether caches may store a response with it, to be validated before each use. False if the origin forbids it.
    package let isStorable: Bool
    /// The memory for the piece that is being sent.
    private let buffer: AdmittedMemory

    /// Nil if no bytes have arrived or may be passed on, or the fetch has failed.
    init?(_ arriving: ArrivingSource, of url: SourceURL, _ rules: OriginRules, _ buffer: AdmittedMemory) {
        guard let start = arriving.shown else { return nil }
        self.buffer = buffer
        self.arriving = arriving
        length = start.length
        format = OriginalFile.format(start.file)
        isStorable = rules.permission(for: url, start.cacheDirectives).isAllowed
    }

    /// Passes the bytes on in order, as they arrive.
    ///
    /// - Parameter write: Called with one piece after the other; the next one is read when it returns.
    /// - Throws: ``SourceCutShort`` if the fetch fails, after the received bytes were passed on, or if the bytes were released
    ///   for other work; `CancellationError`; any error of `write`.
    package func forEachPiece(_ write: ([UInt8]) async throws -> Void) async throws {
        var done = 0
        while true {
            let progress = await arriving.progress(after: done)
            try Task.checkCancellation()
            while done < progress.count {
                let piece = try piece(after: done, count: progress.count - done)
                try await write(piece)
                done += piece.count
            }
            switch progress {
            case .arrived: continue
            case .complete: return
            case .failed: throw SourceCutShort()
            }
        }
    }

    /// Reads the next piece. The file is held only for the read, so that a slow client does not keep released bytes in memory.
    private func piece(after done: Int, count: Int) throws -> [UInt8] {
        guard let file = arriving.file else { throw SourceCutShort() }
        return try file.read(min(count, Self.pieceLimit), at: done)
    }

    /// The bytes that a client that follows a source holds in memory.
    static let pieceLimit = 64 << 10
}

/// The error of a source that breaks off while it is passed on.
package struct SourceCutShort: Error {}
