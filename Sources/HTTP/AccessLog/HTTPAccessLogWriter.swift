internal import Synchronization
package import SystemIO

/// Writes the access log: one line per request, in batches.
///
/// Text lines have these columns, with `-` for empty values:
/// `time client "method target" status bytes duration_ms request_id "cache_status"`, and a final `cut` if the client did not
/// receive the whole response. JSON lines are objects with these names as members. If client fields are included, `"referer"`
/// and `"user_agent"` follow the cache status.
///
/// Lines are written through a ``LineWriter``: if they cannot be written fast enough, they are dropped and counted.
package final class HTTPAccessLogWriter: HTTPObserver {
    /// The number of bytes at which encoded lines are queued. The queue accepts or drops all lines of a call at once, and a
    /// batch of long targets may exceed its capacity.
    private static let pieceSize = 64 * 1024

    private let output: LineWriter
    private let encoder: Mutex<AccessLineEncoder>

    /// Creates a log on a duplicate of `descriptor`, such as standard output.
    ///
    /// - Parameters:
    ///   - includesClientFields: Whether lines include `Referer` and `User-Agent`.
    ///   - capacity: The maximum number of queued bytes.
    /// - Throws: ``SystemError`` if the descriptor is not open.
    package init(
        duplicating descriptor: Int32, format: LogFormat, includesClientFields: Bool = false, capacity: Int = 4 << 20
    ) throws(SystemError) {
        output = try LineWriter(duplicating: descriptor, capacity: capacity, name: "gifreel-access") { dropped in
            let encoder = AccessLineEncoder(format: format)
            encoder.append(lost: dropped)
            return Array(encoder.bytes)
        }
        encoder = Mutex(AccessLineEncoder(format: format, includesClientFields: includesClientFields))
    }

    package func requestsFinished(_ batch: HTTPAccessBatch) {
        encoder.withLock { encoder in
            batch.forEach {
                encoder.append($0)
                if encoder.bytes.count >= Self.pieceSize { handOver(encoder) }
            }
            if batch.lost > 0 { encoder.append(lost: batch.lost) }
            handOver(encoder)
        }
    }

    private func handOver(_ encoder: AccessLineEncoder) {
        output.append(encoder.bytes)
        encoder.removeAll()
    }

    /// Lines dropped since the start, because the reader of a pipe stalled or a write failed.
    package var droppedLines: Int { output.droppedLines }

    /// Waits until all lines are written or `limit` has passed. Later lines are dropped. Blocks.
    package func close(within limit: Duration = .seconds(1)) {
        output.close(within: limit)
    }
}
