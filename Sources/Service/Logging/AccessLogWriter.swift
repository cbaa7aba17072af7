internal import Foundation
internal import Glibc
package import HTTP
internal import Synchronization

/// Writes a line a request to standard output: client, time, request, status, bytes, duration, cache status, request id.
///
/// Called on the server's log thread with batches, so that a request costs the loop threads one copy.
package final class AccessLogWriter: HTTPObserver {
    private let format: ServiceConfiguration.LogFormat
    private let descriptor: Int32
    private let buffer = Mutex([UInt8]())

    package init(format: ServiceConfiguration.LogFormat, descriptor: Int32 = 1) {
        self.format = format
        self.descriptor = descriptor
    }

    package func requestsFinished(_ batch: HTTPAccessBatch) {
        buffer.withLock { buffer in
            buffer.removeAll(keepingCapacity: true)
            batch.forEach { record in
                switch format {
                case .text: Self.appendText(record, to: &buffer)
                case .json: Self.appendJSON(record, to: &buffer)
                }
            }
            if batch.lost > 0 { buffer.append(contentsOf: "# \(batch.lost) requests are not logged: too many at once\n".utf8) }
            write(buffer)
        }
    }

    private static func appendText(_ record: borrowing HTTPAccessRecord, to buffer: inout [UInt8]) {
        buffer.append(contentsOf: "\(record.client?.description ?? "-") \(record.time) \"".utf8)
        append(record.method, to: &buffer)
        buffer.append(UInt8(ascii: " "))
        append(record.target, to: &buffer)
        buffer.append(contentsOf: "\" \(record.status) \(record.bytes) \(record.duration) \"".utf8)
        append(record.cacheStatus, to: &buffer)
        buffer.append(contentsOf: "\" ".utf8)
        append(record.requestID, to: &buffer)
        buffer.append(contentsOf: (record.isComplete ? "\n" : " broken-off\n").utf8)
    }

    private static func appendJSON(_ record: borrowing HTTPAccessRecord, to buffer: inout [UInt8]) {
        let client = record.client?.description ?? "-"
        buffer.append(contentsOf: "{\"client\":\"\(client)\",\"time\":\(record.time),\"method\":\"".utf8)
        append(record.method, to: &buffer)
        buffer.append(contentsOf: "\",\"target\":\"".utf8)
        append(record.target, to: &buffer)
        buffer.append(
            contentsOf: "\",\"status\":\(record.status),\"bytes\":\(record.bytes),\"duration\":\(record.duration),\"cache\":\"".utf8)
        append(record.cacheStatus, to: &buffer)
        buffer.append(contentsOf: "\",\"id\":\"".utf8)
        append(record.requestID, to: &buffer)
        buffer.append(contentsOf: "\",\"complete\":\(record.isComplete)}\n".utf8)
    }

    /// Appends what a client sent, with nothing that could end a quoted text or a line.
    private static func append(_ bytes: UnsafeRawBufferPointer, to buffer: inout [UInt8]) {
        for byte in bytes {
            switch byte {
            case 0x22, 0x5c, 0..<0x20, 0x7f...: buffer.append(contentsOf: "%".utf8 + Self.hex(byte))
            default: buffer.append(byte)
            }
        }
    }

    private static func hex(_ byte: UInt8) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }

    /// Writes all; a log that nobody takes any more is not worth stopping for.
    private func write(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { bytes in
            var done = 0
            while done < bytes.count {
                let written = Glibc.write(descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done)
                if written < 0 && errno == EINTR { continue }
                if written <= 0 { return }
                done += written
            }
        }
    }
}
