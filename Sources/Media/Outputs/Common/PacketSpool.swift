internal import CMedia
internal import Glibc
internal import SystemIO

/// Encoded packets at the front of an output file, where they wait until the size of the container's header is known.
///
/// Memory holds one packet at a time, regardless of the size of the output. The descriptor is borrowed. Not thread-safe.
struct PacketSpool: ~Copyable {
    private static let bufferSize = 64 * 1024
    /// The most bytes of packets that a ``FileLayout`` may reorder freely.
    static let mostInAnyOrder = 256 * 1024

    private let descriptor: Int32
    /// The bytes appended so far.
    private(set) var length = 0

    /// - Parameter length: The length of the packets already in the seekable file.
    init(descriptor: Int32, length: Int = 0) {
        self.descriptor = descriptor
        self.length = length
    }

    /// Appends a packet. Returns its position, for use in a ``FileLayout``.
    mutating func append(_ bytes: UnsafeRawBufferPointer) throws(TranscodeError) -> Range<Int> {
        try translating(try DescriptorIO.write(bytes, to: descriptor, at: length), to: TranscodeError.writing)
        defer { length += bytes.count }
        return length..<length + bytes.count
    }

    /// Reads the bytes of a packet.
    func read(_ range: Range<Int>) throws(TranscodeError) -> [UInt8] {
        try translating(try readExactly(range.count, at: range.lowerBound), to: TranscodeError.writing)
    }

    /// Removes the first `count` bytes. The positions of all later packets decrease by `count`.
    mutating func removeFirst(_ count: Int) throws(TranscodeError) {
        do throws(SystemError) {
            for start in stride(from: count, to: length, by: Self.bufferSize) {
                let bytes = try readExactly(min(Self.bufferSize, length - start), at: start)
                try DescriptorIO.write(bytes, to: descriptor, at: start - count)
            }
            length -= count
            guard ftruncate(descriptor, off_t(length)) == 0 else { throw .last("ftruncate") }
        } catch {
            throw .writing(error)
        }
    }

    private func readExactly(_ count: Int, at position: Int) throws(SystemError) -> [UInt8] {
        let bytes = try DescriptorIO.read(count, from: descriptor, at: position)
        guard bytes.count == count else { throw SystemError("pread", code: EIO) }
        return bytes
    }

    /// Writes the file: moves the packets to their final positions, then writes the bytes around them. Returns the file's
    /// length.
    ///
    /// - Precondition: The packets have at most ``mostInAnyOrder`` bytes. Otherwise, the layout starts with bytes, then
    ///   contains each packet once in the order of the spool, followed by all repetitions of packets.
    consuming func assemble(_ layout: FileLayout) throws(TranscodeError) -> Int {
        do throws(SystemError) {
            if length <= Self.mostInAnyOrder { return try assembleFromMemory(layout) }
            // Packets move towards the end, and repetitions follow the last packet. In reverse order, nothing is overwritten
            // before it has been read.
            var end = layout.length
            for piece in layout.pieces.reversed() {
                end -= piece.count
                if case .packet(let range) = piece { try copy(range, to: end) }
            }
            for piece in layout.pieces {
                if case .bytes(let bytes) = piece { try DescriptorIO.write(bytes, to: descriptor, at: end) }
                end += piece.count
            }
            return end
        } catch {
            throw .writing(error)
        }
    }

    private func assembleFromMemory(_ layout: FileLayout) throws(SystemError) -> Int {
        let packets = try readExactly(length, at: 0)
        var end = 0
        for piece in layout.pieces {
            switch piece {
            case .bytes(let bytes): try DescriptorIO.write(bytes, to: descriptor, at: end)
            case .packet(let range): try DescriptorIO.write(Array(packets[range]), to: descriptor, at: end)
            }
            end += piece.count
        }
        return end
    }

    /// Copies part of the file to a later position, which may overlap it.
    private func copy(_ range: Range<Int>, to target: Int) throws(SystemError) {
        var left = range.count
        while left > 0 {
            let count = min(left, Self.bufferSize)
            left -= count
            let bytes = try readExactly(count, at: range.lowerBound + left)
            try DescriptorIO.write(bytes, to: descriptor, at: target + left)
        }
    }
}

/// The contents of a file in order: bytes in memory, and packets of a ``PacketSpool``.
struct FileLayout {
    enum Piece {
        case bytes([UInt8])
        case packet(Range<Int>)

        var count: Int {
            switch self {
            case .bytes(let bytes): bytes.count
            case .packet(let range): range.count
            }
        }
    }

    /// The most memory per picture for building a layout: pieces, headers and tables, some of them twice while they grow.
    static let mostBytes = 512

    private(set) var pieces: [Piece] = []
    /// The length of the file in bytes.
    private(set) var length = 0

    mutating func append(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        length += bytes.count
        if case .bytes(let last) = pieces.last {
            pieces[pieces.count - 1] = .bytes(last + bytes)
        } else {
            pieces.append(.bytes(bytes))
        }
    }

    mutating func append(packet: Range<Int>) {
        pieces.append(.packet(packet))
        length += packet.count
    }

    mutating func append(_ other: FileLayout) {
        for piece in other.pieces {
            switch piece {
            case .bytes(let bytes): append(bytes)
            case .packet(let range): append(packet: range)
            }
        }
    }
}

/// A picture of an animation after encoding.
struct EncodedPicture {
    /// The time at which it appears, in units of the timeline.
    var time: Int
    /// Whether a decoder can start here, in both planes.
    var isKey: Bool
    /// The positions of the packets in the ``PacketSpool``.
    var color: Range<Int>
    var alpha: Range<Int>?

    /// Shifts the positions of the packets by a number of bytes.
    mutating func move(by distance: Int) {
        color = color.moved(by: distance)
        alpha = alpha?.moved(by: distance)
    }
}

extension Range<Int> {
    fileprivate func moved(by distance: Int) -> Range<Int> {
        lowerBound + distance..<upperBound + distance
    }
}
