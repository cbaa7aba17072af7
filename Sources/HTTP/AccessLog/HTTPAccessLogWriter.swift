internal import Glibc
internal import Synchronization
package import SystemIO

/// Writes the access log: one line a request, in batches.
///
/// Text has its columns in this order, with `-` for what is empty:
/// `time client "method target" status bytes milliseconds id "cache status"`, and a last one, `cut`, where the client did not
/// take the whole answer. JSON has one object a line with the same names.
package final class HTTPAccessLogWriter: HTTPObserver {
    /// How a line looks.
    package enum Format: Sendable {
        case text, json
    }

    private let descriptor: SharedDescriptor
    private let encoder: Mutex<AccessLineEncoder>

    /// A log on an open descriptor, such as a duplicate of standard output.
    package init(_ descriptor: SharedDescriptor, format: Format) {
        self.descriptor = descriptor
        encoder = Mutex(AccessLineEncoder(format: format))
    }

    package func requestsFinished(_ batch: HTTPAccessBatch) {
        encoder.withLock { encoder in
            batch.forEach { encoder.append($0) }
            if batch.lost > 0 { encoder.append(lost: batch.lost) }
            write(encoder.bytes)
            encoder.removeAll()
        }
    }

    /// Where the log cannot be written (its pipe was closed, its disk is full), lines are lost; answers are not.
    private func write(_ bytes: UnsafeRawBufferPointer) {
        var done = 0
        while done < bytes.count {
            let written = Glibc.write(descriptor.number, bytes.baseAddress.map { $0 + done }, bytes.count - done)
            if written > 0 {
                done += written
            } else if errno != EINTR {
                return
            }
        }
    }
}
