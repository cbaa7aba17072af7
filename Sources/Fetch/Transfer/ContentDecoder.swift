internal import CSystem
internal import Glibc

/// The decoder of a body's `Content-Encoding`. Requests ask for none, but buckets may store and send objects compressed.
///
/// An unknown coding is ignored: some uploads leave `aws-chunked` or `utf-8` beside the coding of an object. A body that does
/// not begin with the signature of its coding is used undecoded, as in browsers.
///
/// A few kilobytes may take seconds to decode, because the ratios of nested codings multiply, and empty members cost time
/// without output. Decoding is therefore divided into steps of less than a millisecond, and the output of each coding is
/// limited to the maximum size of a source.
package final class ContentDecoder {
    /// The codings in the order of decoding. Each uses up its input before it gets more.
    private let layers: [Inflater]
    private let limit: Int

    /// The maximum number of nested codings. Real origins have two if both a server and a proxy compress.
    private static let maxLayers = 2

    /// - Parameters:
    ///   - codings: The codings in the order in which they were applied, in lower case.
    ///   - limit: The largest source, in bytes.
    /// - Returns: Nil if the body is used without decoding.
    package init?(_ codings: [String], limit: Int) {
        let known = codings.compactMap { Inflater.Format(coding: $0) }
        guard !known.isEmpty, known.count <= Self.maxLayers else { return nil }
        layers = known.reversed().map { Inflater($0, maxMembers: max(1024, limit >> 15)) }
        self.limit = limit
    }

    /// Adds the next part of the body. Call it only when ``step(_:)`` has returned false.
    package func add(_ bytes: [UInt8]) {
        layers[0].take(bytes)
    }

    /// Decodes a few kilobytes.
    ///
    /// - Parameter receive: Called with decoded bytes, if there are any.
    /// - Returns: False if all bytes added so far are decoded.
    package func step(_ receive: (UnsafeRawBufferPointer) throws(FetchError) -> Void) throws(FetchError) -> Bool {
        guard let index = layers.lastIndex(where: { !$0.isIdle }) else { return false }
        let output = try layers[index].step()
        guard layers[index].returned <= limit else { throw .tooLarge(limit: limit, declared: nil) }
        if output.isEmpty { return true }
        if index + 1 < layers.count {
            layers[index + 1].take(Array(output))
            return true
        }
        try output.span.bytes.withUnsafeBytes(receive)
        return true
    }

    /// Whether the encoded data is complete.
    package var isComplete: Bool { layers.allSatisfy(\.isComplete) }
}

/// A decompressor of one coding.
private final class Inflater {
    enum Format {
        /// RFC 1952, possibly with several members.
        case gzip
        /// The zlib format (RFC 1950), or raw deflate data, which some servers send under the same name.
        case deflate

        init?(coding: String) {
            switch coding {
            case "gzip", "x-gzip": self = .gzip
            case "deflate": self = .deflate
            default: return nil
            }
        }
    }

    private enum State {
        case beginning
        case inflating
        /// The body does not begin with the signature of its coding.
        case passing
        /// The data has ended, and another gzip member may follow.
        case ended
        /// Other bytes follow the data. Browsers ignore them.
        case ignoring
    }

    private let format: Format
    /// The maximum number of gzip members. Parallel compressors write one member per 64 KiB or more.
    private let maxMembers: Int
    private var state = State.beginning
    private var input: [UInt8] = []
    /// The index of the next byte of ``input``.
    private var position = 0
    /// A single first byte, which does not suffice to recognize the format.
    private var start: [UInt8] = []
    private var stream = z_stream()
    private var isOpen = false
    private var members = 0
    private var output = [UInt8](repeating: 0, count: 32 << 10)
    /// Whether zlib has more output for the input so far.
    private var hasOutput = false
    /// The number of bytes returned so far.
    private(set) var returned = 0

    private static let gzipStart: [UInt8] = [0x1f, 0x8b]
    /// The input bytes per step. The worst input takes a few microseconds per 40 bytes.
    private static let inputPerStep = 4096

    init(_ format: Format, maxMembers: Int) {
        (self.format, self.maxMembers) = (format, maxMembers)
    }

    deinit {
        if isOpen { inflateEnd(&stream) }
    }

    var isComplete: Bool {
        switch state {
        case .beginning: start.isEmpty
        case .inflating: false
        case .passing, .ended, .ignoring: true
        }
    }

    /// Whether another step needs more input.
    var isIdle: Bool { position == input.count && !hasOutput }

    func take(_ bytes: [UInt8]) {
        input = bytes
        position = 0
    }

    /// Processes a part of the input and returns the decoded bytes.
    func step() throws(FetchError) -> ArraySlice<UInt8> {
        let count = try advance()
        returned += count
        return output[..<count]
    }

    /// Processes a part of the input. Returns the number of bytes written to ``output``.
    private func advance() throws(FetchError) -> Int {
        switch state {
        case .ignoring:
            position = input.count
            return 0
        case .passing:
            let count = min(input.count - position, output.count)
            output.replaceSubrange(..<count, with: input[position..<position + count])
            position += count
            return count
        case .beginning, .ended:
            if !start.isEmpty {
                take(start + input[position...])
                start = []
            }
            guard input.count - position >= 2 else {
                start = Array(input[position...])
                position = input.count
                return 0
            }
            try begin(input[position], input[position + 1])
            return 0
        case .inflating:
            let (status, read, written) = inflate()
            position += read
            hasOutput = status == Z_OK && written == output.count
            switch status {
            case Z_STREAM_END: state = .ended
            case Z_OK: break
            // All input was already used up.
            case Z_BUF_ERROR where position == input.count: break
            default: throw .failed(.protocolViolation(cause: "its compressed data are damaged"))
            }
            return written
        }
    }

    /// Chooses the decoding by the first two bytes.
    private func begin(_ first: UInt8, _ second: UInt8) throws(FetchError) {
        let isFirst = state == .beginning
        switch format {
        case .gzip:
            guard [first, second] == Self.gzipStart else {
                state = isFirst ? .passing : .ignoring
                return
            }
            try open(windowBits: 16 + MAX_WBITS)
        case .deflate:
            guard isFirst else {
                state = .ignoring
                return
            }
            // RFC 1950 section 2.2: the method, and a checksum of both bytes.
            let isFramed = first & 0x0f == 8 && (Int(first) << 8 + Int(second)) % 31 == 0
            try open(windowBits: isFramed ? MAX_WBITS : -MAX_WBITS)
        }
    }

    private func open(windowBits: Int32) throws(FetchError) {
        members += 1
        guard members <= maxMembers else {
            throw .failed(.protocolViolation(cause: "its compressed data have more than \(maxMembers) members"))
        }
        let status = isOpen ? inflateReset(&stream) : gifreel_inflate(&stream, windowBits)
        guard status == Z_OK else { throw .exhausted(cause: "no memory to decompress") }
        isOpen = true
        state = .inflating
    }

    /// Decompresses as much as fits into ``output``. Returns zlib's status and the numbers of bytes read and written.
    private func inflate() -> (status: Int32, read: Int, written: Int) {
        input.withUnsafeBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                let available = min(input.count - position, Self.inputPerStep)
                // zlib does not write to its input.
                stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress.map { $0 + position })
                stream.avail_in = UInt32(available)
                stream.next_out = output.baseAddress
                stream.avail_out = UInt32(output.count)
                let status = CSystem.inflate(&stream, Z_NO_FLUSH)
                return (status, available - Int(stream.avail_in), output.count - Int(stream.avail_out))
            }
        }
    }
}
