internal import CZlib
internal import Glibc

/// The decoder of a body's `Content-Encoding`. Requests ask for none, but objects of buckets may be stored compressed, and are sent so.
///
/// As in browsers, a body with a coding that is not known here is the source itself, and so is a body that does not begin as its
/// coding does.
final class ContentDecoder {
    private let layers: [Inflater]

    /// Codings that are applied to one another. Real origins have two where both a server and a proxy compress.
    private static let maxLayers = 2

    /// - Parameter codings: The codings in the order in which they were applied, in lower case.
    /// - Returns: Nil if the body is to be taken as it is.
    init?(_ codings: [String]) {
        let known = codings.filter { $0 != "identity" }.map { Inflater.Format(coding: $0) }
        guard !known.isEmpty, known.count <= Self.maxLayers, !known.contains(nil) else { return nil }
        layers = known.compactMap { $0 }.reversed().map { Inflater($0) }
    }

    /// Decodes a part of the body.
    ///
    /// - Parameter receive: Gets the decoded bytes in pieces.
    func decode(
        _ bytes: UnsafeRawBufferPointer, _ receive: (UnsafeRawBufferPointer) throws(FetchError) -> Void
    ) throws(FetchError) {
        try pass(bytes, to: 0, receive)
    }

    private func pass(
        _ bytes: UnsafeRawBufferPointer, to index: Int, _ receive: (UnsafeRawBufferPointer) throws(FetchError) -> Void
    ) throws(FetchError) {
        guard index < layers.count else { return try receive(bytes) }
        try layers[index].inflate(bytes) { piece throws(FetchError) in try pass(piece, to: index + 1, receive) }
    }

    /// Whether the coded data has ended.
    var isComplete: Bool { layers.allSatisfy(\.isComplete) }
}

/// A decompressor of one coding.
private final class Inflater {
    enum Format {
        /// RFC 1952, with joined members.
        case gzip
        /// zlib's format (RFC 1950), or its data without their frame, which some servers send under the same name.
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
        /// The body does not begin as its coding does.
        case passing
        /// The data have ended, and another member of gzip may follow.
        case ended
        /// Other bytes follow the data. Browsers ignore them.
        case ignoring
    }

    private let format: Format
    private var state = State.beginning
    /// The first bytes, until they tell the format.
    private var start: [UInt8] = []
    private var stream = z_stream()
    private var isOpen = false
    private var piece = [UInt8](repeating: 0, count: 32 << 10)

    private static let gzipStart: [UInt8] = [0x1f, 0x8b]

    init(_ format: Format) {
        self.format = format
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

    func inflate(
        _ bytes: UnsafeRawBufferPointer, _ receive: (UnsafeRawBufferPointer) throws(FetchError) -> Void
    ) throws(FetchError) {
        switch state {
        case .ignoring: return
        case .passing: try receive(bytes)
        case .inflating: try run(bytes, receive)
        case .beginning, .ended:
            start.append(contentsOf: bytes)
            guard start.count >= 2 else { return }
            let first = start
            start = []
            try begin(first)
            if state == .ignoring { return }
            var failure: FetchError?
            first.withUnsafeBytes { first in
                do throws(FetchError) {
                    if state == .passing { try receive(first) } else { try run(first, receive) }
                } catch {
                    failure = error
                }
            }
            if let failure { throw failure }
        }
    }

    /// Decides by the first two bytes how the data are read.
    private func begin(_ start: [UInt8]) throws(FetchError) {
        let isFirst = state == .beginning
        switch format {
        case .gzip:
            guard start.starts(with: Self.gzipStart) else {
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
            let isFramed = start[0] & 0x0f == 8 && (Int(start[0]) << 8 + Int(start[1])) % 31 == 0
            try open(windowBits: isFramed ? MAX_WBITS : -MAX_WBITS)
        }
    }

    private func open(windowBits: Int32) throws(FetchError) {
        if isOpen { inflateEnd(&stream) }
        stream = z_stream()
        isOpen = gifreel_inflate(&stream, windowBits) == Z_OK
        guard isOpen else { throw .exhausted(cause: "no memory to decompress") }
        state = .inflating
    }

    private func run(
        _ bytes: UnsafeRawBufferPointer, _ receive: (UnsafeRawBufferPointer) throws(FetchError) -> Void
    ) throws(FetchError) {
        var rest = bytes
        while true {
            let (status, read, written) = step(rest)
            rest = UnsafeRawBufferPointer(rebasing: rest[read...])
            if written > 0 {
                var failure: FetchError?
                piece.withUnsafeBytes { piece in
                    do throws(FetchError) {
                        try receive(UnsafeRawBufferPointer(rebasing: piece[..<written]))
                    } catch {
                        failure = error
                    }
                }
                if let failure { throw failure }
            }
            switch status {
            case Z_STREAM_END:
                state = .ended
                if !rest.isEmpty { try inflate(rest, receive) }
                return
            // All input is used up, and all output was received.
            case Z_OK where rest.isEmpty && written < piece.count, Z_BUF_ERROR: return
            case Z_OK: continue
            default: throw .failed(.protocolViolation(cause: "its compressed data are damaged"))
            }
        }
    }

    /// Decompresses as much as fits into ``piece``. Returns zlib's status and the numbers of bytes that were read and written.
    private func step(_ input: UnsafeRawBufferPointer) -> (status: Int32, read: Int, written: Int) {
        piece.withUnsafeMutableBufferPointer { output in
            let available = min(input.count, Int(CInt.max))
            // zlib does not write to its input.
            stream.next_in = UnsafeMutablePointer(
                mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
            stream.avail_in = UInt32(available)
            stream.next_out = output.baseAddress
            stream.avail_out = UInt32(output.count)
            let status = CZlib.inflate(&stream, Z_NO_FLUSH)
            return (status, available - Int(stream.avail_in), output.count - Int(stream.avail_out))
        }
    }
}
