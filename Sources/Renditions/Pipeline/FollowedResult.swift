package import Fetch
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
    private let start: ArrivingSource.Start
    /// Whether caches may store a response with it, to be validated before each use. False if the origin forbids it.
    package let isStorable: Bool

    /// Nil if no bytes have arrived, or the fetch has failed.
    init?(_ arriving: ArrivingSource, of url: SourceURL, _ rules: OriginRules) {
        guard let start = arriving.start else { return nil }
        self.arriving = arriving
        self.start = start
        isStorable = rules.permission(for: url, start.cacheDirectives).isAllowed
    }

    /// The size in bytes; nil if the origin did not declare it.
    package var length: Int? { start.length }

    package var mediaType: String { OriginalFile.mediaType(start.file) }

    /// Passes the bytes on in order, as they arrive.
    ///
    /// - Parameter write: Called with one piece after the other; the next one is read when it returns.
    /// - Throws: ``SourceCutShort`` if the fetch fails, after what has arrived was passed on; `CancellationError`; any error of
    ///   `write`.
    package func forEachPiece(_ write: ([UInt8]) async throws -> Void) async throws {
        var done = 0
        while true {
            let progress = await arriving.progress(after: done)
            try Task.checkCancellation()
            while done < progress.count {
                let piece = try start.file.read(min(progress.count - done, Self.pieceLimit), at: done)
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

    private static let pieceLimit = 128 << 10
}

/// The error of a source that breaks off while it is passed on.
package struct SourceCutShort: Error {}
