import TestSupport
import Testing

@testable import Media

@Suite("Every field of an av1C box is inspected, in MP4 and in AVIF") struct AV1ConfigurationTests {
    /// A file with a true claim about it.
    private struct Made {
        var bytes: [UInt8]
        var claim: OutputClaim

        init?(_ transcoder: Transcoder, transparent: Bool = false) {
            var builder = GIFBuilder(width: 32, height: 24)
            for index in 0..<4 {
                let frame = GIFBuilder.Frame(width: 16, height: 24, color: UInt8(1 + index % 3))
                if transparent { builder.add(frame) } else { builder.add(color: UInt8(1 + index % 3)) }
            }
            guard let made = try? Converted(builder.finish(), transcoder) else { return nil }
            bytes = made.bytes
            claim = OutputClaim(transcoder, made.result)
        }

        /// The positions of the contents of all boxes of this kind.
        func contents(of kind: String) -> [Int] {
            bytes.indices.dropLast(4).filter { bytes[$0..<$0 + 4].elementsEqual(kind.utf8) }.map { $0 + 4 }
        }

        func flaw(_ change: (inout [UInt8]) -> Void) throws -> OutputFlaw? {
            var changed = bytes
            change(&changed)
            return try inspectionFlaw(changed, claim)
        }
    }

    private static let mp4 = Made(Transcoder(options: TranscodeOptions(codec: .av1)))
    private static let avif = Made(Transcoder(output: .avif), transparent: true)

    /// Bits of the third byte: tier, bit depth above 8, bit depth 12, monochrome, and both axes of subsampling.
    private static let formatBits: [UInt8] = [0x80, 0x40, 0x20, 0x10, 0x08, 0x04]

    @Test(
        "A changed field of the configuration in an MP4 is found", .enabled(if: AV1ConfigurationTests.mp4 != nil),
        arguments: [
            // Marker and version; profile; a delay of presentation; the unit's type, extension flag and size flag.
            (0, 0x80, OutputFlaw.wrongCodec), (0, 0x02, .wrongCodec), (1, 0x20, .wrongCodec), (1, 0x80, .wrongCodec),
            (3, 0x01, .wrongCodec), (3, 0x10, .wrongCodec), (4, 0x18, .wrongCodec), (4, 0x04, .wrongCodec),
            (4, 0x02, .wrongCodec),
            // The unit's size: of two bytes, too large and too small.
            (5, 0x80, .malformed), (5, 0x40, .malformed), (5, 0x01, .malformed),
        ] as [(Int, UInt8, OutputFlaw)])
    func changedFieldsAreFound(_ offset: Int, _ bit: UInt8, _ expected: OutputFlaw) throws {
        let made = try #require(Self.mp4)
        let places = made.contents(of: "av1C")
        let place = try #require(places.first)
        #expect(places.count == 1)
        #expect(try made.flaw { $0[place + offset] ^= bit } == expected)
    }

    @Test(.enabled(if: AV1ConfigurationTests.mp4 != nil), arguments: Self.formatBits)
    func anotherSampleFormatInAnMP4IsFound(_ bit: UInt8) throws {
        let made = try #require(Self.mp4)
        let place = try #require(made.contents(of: "av1C").first)
        #expect(try made.flaw { $0[place + 2] ^= bit } == .wrongCodec)
    }

    @Test(.enabled(if: AV1ConfigurationTests.mp4 != nil))
    func anEmptyUnitIsFound() throws {
        let made = try #require(Self.mp4)
        let place = try #require(made.contents(of: "av1C").first)
        #expect(try made.flaw { $0[place + 5] = 0 } == .malformed)
    }

    @Test(.enabled(if: AV1ConfigurationTests.mp4 != nil))
    func levelAndChromaPositionMayBeAny() throws {
        let made = try #require(Self.mp4)
        let place = try #require(made.contents(of: "av1C").first)
        #expect(try made.flaw { $0[place + 1] ^= 0x1f } == nil)
        #expect(try made.flaw { $0[place + 2] ^= 0x03 } == nil)
    }

    @Test(.enabled(if: AV1ConfigurationTests.avif != nil))
    func aChangedFieldInAnyBoxOfAnAVIFIsFound() throws {
        let made = try #require(Self.avif)
        let places = made.contents(of: "av1C")
        // Properties of both items, and entries of both tracks.
        #expect(places.count == 4)
        let changes: [(Int, UInt8)] =
            [(0, 0x80), (0, 0x02), (1, 0x20), (1, 0x80), (3, 0x01)] + Self.formatBits.dropFirst().map { (2, $0) }
        for place in places {
            for (offset, bit) in changes {
                #expect(try made.flaw { $0[place + offset] ^= bit } == .wrongCodec, "\(place) \(offset) \(bit)")
            }
        }
    }
}
