internal import Synchronization
package import SystemIO

/// An observer that writes the access log: one line per request, in batches.
///
/// Text has these columns, with `-` for an empty one:
/// `time client "method target" status bytes duration_ms request_id "cache_status"`, and a last one, `cut`, if the client did not
/// receive the whole response. JSON has one object per line with these names as members. With the fields of clients, `"referer"`
/// and `"user_agent"` follow the cache status.
///
/// The lines go through a ``LineWriter``: if they cannot be written fast enough they are dropped and counted.
package final class HTTPAccessLogWriter: HTTPObserver {
    /// The form of a line.
    package enum Format: Sendable {
        case text, json
    }

    /// Encoded lines are queued once they have this many bytes. The queue takes or drops all lines of one call, and a batch of long
    /// targets exceeds its capacity.
    private static let pieceSize = 64 * 1024

    private let output: LineWriter
    private let encoder: Mutex<AccessLineEncoder>

    /// A log on a duplicate of `descriptor`, such as standard output.
    ///
    /// - Parameters:
    ///   - includesClientFields: Whether lines have `Referer` and `User-Agent`.
    ///   - capacity: Bytes of lines that may wait to be written.
    /// - Throws: ``SystemError`` if the descriptor is not open.
    package init(
        duplicating descriptor: Int32, format: Format, includesClientFields: Bool = false, capacity: Int = 4 << 20
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

    /// Queues the lines of the encoder.
    private func handOver(_ encoder: AccessLineEncoder) {
        output.append(encoder.bytes)
        encoder.removeAll()
    }

    /// Lines that were dropped since the start, because the reader of a pipe stalled or a write failed.
    package var droppedLines: Int { output.droppedLines }

    /// Waits until all lines are written, or `limit` has passed. Later lines are dropped. Blocks.
    package func close(within limit: Duration) {
        output.close(within: limit)
    }
}
