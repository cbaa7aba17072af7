internal import CMedia
internal import Glibc
internal import SystemIO

/// Moves the index of an MP4 (`moov`) in front of the data, and omits parts that no player reads.
///
/// libavformat can move the index, but always adds free space and metadata that only describes the form of metadata.
struct MP4Index: ~Copyable {
    private let file: PacketSpool
    private let descriptor: Int32

    /// - Parameter descriptor: A file in which libavformat has written `ftyp`, the data and the index.
    init(of descriptor: Int32, length: Int) {
        file = PacketSpool(descriptor: descriptor, length: length)
        self.descriptor = descriptor
    }

    private static var malformed: TranscodeError { .failed(.mux, code: gifreel_averror(EINVAL)) }

    /// - Parameter level: The lowest level that an H.264 track may declare; nil to keep what it declares.
    /// - Returns: The length of the file.
    consuming func moveToFront(level: UInt8?) throws(TranscodeError) -> Int {
        let (type, data, dataHead, moov) = try parts()
        try HeapBuffer.check(bytes: 2 * moov.count)
        var index = try file.read(moov)
        let children = try Self.boxes(index, 8..<index.count)
        let dropped = children.filter { $0.kind == "udta" }
        var head = try file.read(type)
        let tail = try file.read(dataHead)
        let distance = head.count + index.count - dropped.reduce(0) { $0 + $1.range.count } + tail.count - data.lowerBound
        for child in children where child.kind == "trak" {
            for (kind, range) in try Self.leaves(index, child.range, header: 8) {
                switch kind {
                case "stco", "co64": try Self.moveChunks(range, ofSize: kind == "stco" ? 4 : 8, of: &index, by: distance)
                case "avcC": if let level { try Self.raiseLevel(range, of: &index, to: level) }
                default: break
                }
            }
        }
        for box in dropped.reversed() { index.removeSubrange(box.range) }
        try Self.store(index.count, 4, at: 0, in: &index)
        head += index
        head += tail
        var layout = FileLayout()
        layout.append(head)
        layout.append(packet: data)
        let length = try file.assemble(layout)
        try FileOutput.truncate(descriptor, to: length)
        return length
    }

    /// Returns the ranges of `ftyp`, the data, the header of its box, and `moov`.
    private func parts() throws(TranscodeError) -> (
        type: Range<Int>, data: Range<Int>, dataHead: Range<Int>, moov: Range<Int>
    ) {
        var ranges: [String: Range<Int>] = [:]
        var dataBegin = 0
        var position = 0
        while position + 8 <= file.length {
            let head = try file.read(position..<min(position + 16, file.length))
            let isLong = Self.number(head, 0, 4) == 1 && head.count == 16 && head[8] == 0
            let size = isLong ? Self.number(head, 8, 8) : Self.number(head, 0, 4)
            guard size >= (isLong ? 16 : 8), size <= file.length - position else { throw Self.malformed }
            let kind = String(decoding: head[4..<8], as: UTF8.self)
            if kind == "mdat" { dataBegin = position + (isLong ? 16 : 8) }
            ranges[kind] = position..<position + size
            position += size
        }
        guard let type = ranges["ftyp"], let data = ranges["mdat"], let moov = ranges["moov"], moov.upperBound == file.length,
            data.upperBound <= moov.lowerBound, type.upperBound <= data.lowerBound
        else { throw Self.malformed }
        return (type, dataBegin..<data.upperBound, data.lowerBound..<dataBegin, moov)
    }

    /// Returns the boxes that fill a part of `bytes`, with their headers.
    private static func boxes(
        _ bytes: [UInt8], _ part: Range<Int>
    ) throws(TranscodeError) -> [(kind: String, range: Range<Int>)] {
        let boxes = try translating(try MP4Box.all(in: ByteReader(bytes[part]))) { (_: OutputFlaw) in malformed }
        return boxes.map { ($0.kind, $0.content.rest.startIndex - 8..<$0.content.rest.endIndex) }
    }

    /// The boxes that contain others, and the bytes in front of these.
    private static let containers = ["mdia": 8, "minf": 8, "stbl": 8, "stsd": 16, "avc1": 86]

    /// Returns the boxes inside a box, at any depth, that contain no others.
    private static func leaves(
        _ bytes: [UInt8], _ box: Range<Int>, header: Int
    ) throws(TranscodeError) -> [(kind: String, range: Range<Int>)] {
        var found: [(kind: String, range: Range<Int>)] = []
        for (kind, range) in try boxes(bytes, box.lowerBound + header..<box.upperBound) {
            if let header = containers[kind] {
                found += try leaves(bytes, range, header: header)
            } else {
                found.append((kind, range))
            }
        }
        return found
    }

    /// Adds to the positions of chunks (`stco` and `co64`, ISO/IEC 14496-12 §8.7.5).
    private static func moveChunks(
        _ box: Range<Int>, ofSize size: Int, of index: inout [UInt8], by distance: Int
    ) throws(TranscodeError) {
        guard box.count >= 16, number(index, box.lowerBound + 12, 4) * size == box.count - 16 else { throw malformed }
        for place in stride(from: box.lowerBound + 16, to: box.upperBound, by: size) {
            try store(number(index, place, size) + distance, size, at: place, in: &index)
        }
    }

    /// Raises the level in `avcC`, and in its sequence parameter set (ISO/IEC 14496-15 §5.3.3.1, ITU-T H.264 §7.3.2.1.1). No
    /// `level_idc` is so low that emulation prevention concerns it.
    private static func raiseLevel(_ box: Range<Int>, of index: inout [UInt8], to level: UInt8) throws(TranscodeError) {
        // The levels are the fourth bytes of the record and of the set, which follows 8 bytes of the record.
        guard box.count > 19 else { throw malformed }
        for place in [box.lowerBound + 11, box.lowerBound + 19] { index[place] = max(index[place], level) }
    }

    private static func number(_ bytes: [UInt8], _ position: Int, _ count: Int) -> Int {
        bytes[position..<position + count].reduce(0) { $0 << 8 | Int($1) }
    }

    private static func store(
        _ value: Int, _ count: Int, at position: Int, in bytes: inout [UInt8]
    ) throws(TranscodeError) {
        guard value >= 0, count == 8 || value < 1 << 32 else { throw malformed }
        bytes.replaceSubrange(position..<position + count, with: [UInt8].number(value, count))
    }
}
