import Glibc
import SystemIO
import TestSupport
import Testing

@testable import Media

@Suite("Packets wait in the output file") struct PacketSpoolTests {
    /// Longer than the buffer of the copies.
    private static let sizes = [200_000, 1, 0, 70_000]

    private let folder: ScratchDirectory
    private let file: SharedDescriptor

    init() throws {
        folder = try ScratchDirectory()
        let number = open(folder.path("file"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        file = SharedDescriptor(OwnedDescriptor(taking: number))
    }

    private func packet(_ number: Int) -> [UInt8] {
        (0..<Self.sizes[number]).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8 &+ number) }
    }

    private func append(_ number: Int, to spool: inout PacketSpool) throws -> Range<Int> {
        try packet(number).withUnsafeBytes { bytes in
            Result { () throws(TranscodeError) in try spool.append(bytes) }
        }.get()
    }

    @Test func theFirstPacketsCanBeReadAndRemoved() throws {
        var spool = PacketSpool(descriptor: file.number)
        let first = try append(0, to: &spool)
        #expect(try spool.read(first) == packet(0))
        let others = try [1, 2, 3].map { try append($0, to: &spool) }
        try spool.removeFirst(first.count)
        #expect(spool.length == 70_001)
        var layout = FileLayout()
        layout.append(Array("head".utf8))
        for range in others { layout.append(packet: range.lowerBound - first.count..<range.upperBound - first.count) }
        #expect(try spool.assemble(layout) == 70_005)
        #expect(try DescriptorIO.read(1 << 20, from: file.number, at: 0) == Array("head".utf8) + packet(1) + packet(3))
    }

    /// The packets of a small file may come in any order and more than once; those of a large one follow the spool.
    @Test(arguments: [[3, 1], [0, 3, 1, 3]]) func packetsMoveBehindAHead(_ order: [Int]) throws {
        let used = Set(order).sorted()
        var spool = PacketSpool(descriptor: file.number)
        var places: [Int: Range<Int>] = [:]
        for number in used.count == 3 ? [0, 3, 1] : used { places[number] = try append(number, to: &spool) }
        #expect((spool.length > PacketSpool.mostInAnyOrder) == (used.count == 3))
        var layout = FileLayout()
        layout.append(Array("head".utf8))
        for number in order { layout.append(packet: try #require(places[number])) }
        let contents = Array("head".utf8) + order.flatMap(packet)
        #expect(try spool.assemble(layout) == contents.count)
        #expect(try DescriptorIO.read(1 << 20, from: file.number, at: 0) == contents)
    }

    /// A reader that shows pictures as they arrive needs both planes of a picture together. In a small file, each plane is one
    /// chunk, in each of the rounds.
    @Test(arguments: [([3, 1], false), ([0, 3], true)])
    func bothPlanesOfAPictureAreTogetherInALargeAVIF(_ colors: [Int], _ isLarge: Bool) throws {
        let alphas = [1, 2]
        var spool = PacketSpool(descriptor: file.number)
        var pictures: [EncodedPicture] = []
        for (color, alpha) in zip(colors, alphas) {
            let places = (try append(color, to: &spool), try append(alpha, to: &spool))
            pictures.append(
                EncodedPicture(time: 10 * pictures.count, isKey: pictures.isEmpty, color: places.0, alpha: places.1))
        }
        #expect((spool.length > PacketSpool.mostInAnyOrder) == isLarge)
        // The reduced sequence header of a still picture.
        let stream = try #require(AV1Stream([0x0a, 2, 8, 0], isMonochrome: false))
        let writer = AVIFWriter(width: 8, height: 8, timescale: 100, color: stream, alpha: stream, plays: nil)
        let layout = writer.layout(pictures, end: 20, rounds: 2)
        #expect(try spool.assemble(layout) == layout.length)
        let boxes = try AVIFBoxes(try DescriptorIO.read(1 << 20, from: file.number, at: 0))
        #expect(boxes.tracks.map(\.chunkCount) == (isLarge ? [4, 4] : [2, 2]))
        let planes: [[[UInt8]]] = [colors, alphas].map { numbers in numbers.map(packet) }
        let isSame = boxes.tracks.map(\.samples) == planes.map { $0 + $0 }
        let hasItems = boxes.items == planes.map { $0[0] }
        #expect(isSame && hasItems)
    }
}
