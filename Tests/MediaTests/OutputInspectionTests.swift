import Glibc
import TestSupport
import Testing

@testable import Media

/// What the server checks in a worker's file.
@Suite("Inspection refuses files that differ from the worker's claim")
struct OutputInspectionTests {
    /// A real MP4 and a true claim about it.
    private static let video: (bytes: [UInt8], claim: OutputClaim) = {
        guard let mp4 = try? Converted(GIFBuilder.animation(frames: 6)) else {
            return ([], OutputClaim(format: .mp4, bytes: 0, width: 0, height: 0))
        }
        return (mp4.bytes, OutputClaim(Transcoder(), mp4.result))
    }()

    @Test func everyOutputPassesItsOwnInspection() throws {
        for output in OutputFormat.allCases {
            let made = try Converted(GIFBuilder.animation(frames: 6), Transcoder(output: output))
            #expect(try inspectionFlaw(made.bytes, OutputClaim(Transcoder(output: output), made.result)) == nil, "\(output)")
        }
    }

    @Test func timesOfMoreThan32BitsPass() throws {
        var builder = GIFBuilder(width: 8, height: 8)
        for index in 0..<100 { builder.add(color: UInt8(1 + index % 2), delay: 65_535) }
        var options = TranscodeOptions()
        options.time.speed = 101
        let made = try Converted(
            builder.finish(), Transcoder(options: options, limits: MediaLimits(duration: 1 << 40)))
        let claim = OutputClaim(Transcoder(), made.result)
        #expect(claim.duration > 1 << 32)
        #expect(try inspectionFlaw(made.bytes, claim) == nil)
        var wrong = claim
        wrong.duration += 1
        #expect(try inspectionFlaw(made.bytes, wrong) == .wrongDuration)
    }

    private func position(of kind: String, in bytes: [UInt8]) throws -> Int {
        // In the index, whose end `mdat` marks; `avc1` is also a name in `ftyp`, before.
        let places = (4..<bytes.count - 4).filter { bytes[$0..<$0 + 4].elementsEqual(kind.utf8) }
        let end = (4..<bytes.count - 4).first { bytes[$0..<$0 + 4].elementsEqual("mdat".utf8) } ?? bytes.count
        return try #require(places.last { $0 <= end })
    }

    @Test func aTrueFilePasses() throws {
        #expect(Self.video.claim.samples == 6 && Self.video.claim.duration == 60)
        #expect(try inspectionFlaw(Self.video.bytes, Self.video.claim) == nil)
    }

    @Test func aFileOverTheLimitDoesNotPass() throws {
        #expect(try inspectionFlaw(Self.video.bytes, Self.video.claim, limit: 100) == .wrongLength)
    }

    @Test func whatTheWorkerSaysMustBeSo() throws {
        let (bytes, claim) = Self.video
        let cases: [(WritableKeyPath<OutputClaim, Int>, OutputFlaw)] = [
            (\.bytes, .wrongLength), (\.width, .wrongSize), (\.height, .wrongSize), (\.duration, .wrongDuration),
            (\.samples, .wrongSampleCount),
        ]
        for (path, expected) in cases {
            for change in [-1, 1] {
                var lie = claim
                lie[keyPath: path] += change
                let found = try inspectionFlaw(bytes, lie)
                #expect(found == expected || found == .wrongSampleCount, "\(expected) \(change)")
            }
            var absurd = claim
            absurd[keyPath: path] = .max
            #expect(try inspectionFlaw(bytes, absurd) != nil)
            absurd[keyPath: path] = .min
            #expect(try inspectionFlaw(bytes, absurd) != nil)
        }
    }

    @Test(arguments: [
        ("ftyp", OutputFlaw.wrongSignature), ("moov", .missingPart), ("mdat", .missingPart), ("trak", .unknownPart),
        ("mdhd", .unknownPart), ("avc1", .wrongCodec), ("avcC", .unknownPart), ("stsz", .unknownPart),
        ("url ", .foreignData),
    ])
    func aPartThatIsMissingIsMissed(_ kind: String, _ expected: OutputFlaw) throws {
        var bytes = Self.video.bytes
        bytes[try position(of: kind, in: bytes)] = UInt8(ascii: "x")
        #expect(try inspectionFlaw(bytes, Self.video.claim) == expected)
    }

    /// Players fetch other files by some boxes, and read others that the inspection does not know.
    @Test(arguments: [
        ("mvhd", "rmra"), ("mvhd", "mvex"), ("mvhd", "uuid"), ("mvhd", "free"), ("mvhd", "meta"), ("mvhd", "udta"),
        ("vmhd", "uuid"), ("ctts", "saiz"), ("colr", "sinf"), ("colr", "pasp"),
    ])
    func aBoxThatTheMuxerDoesNotWriteIsRefused(_ known: String, _ kind: String) throws {
        var bytes = Self.video.bytes
        let place = try position(of: known, in: bytes)
        bytes.replaceSubrange(place..<place + 4, with: kind.utf8)
        #expect(try inspectionFlaw(bytes, Self.video.claim) == .unknownPart)
    }

    @Test func freeSpaceIsRefused() throws {
        var claim = Self.video.claim
        let bytes = Self.video.bytes + [0, 0, 0, 16] + Array("free<script>".utf8)
        claim.bytes = bytes.count
        #expect(try inspectionFlaw(bytes, claim) == .missingPart)
    }

    @Test func samplesOutsideTheDataAreFound() throws {
        var bytes = Self.video.bytes
        let chunks = try position(of: "stco", in: bytes)
        bytes[chunks + 12] = 0x7f
        #expect(try inspectionFlaw(bytes, Self.video.claim) == .strayingSamples)
    }

    @Test func noByteMakesTheInspectionFail() throws {
        // Changes every byte of the index in turn. Whatever is found, the inspection comes to an end.
        let (bytes, claim) = Self.video
        let end = try position(of: "mdat", in: bytes) + 8
        var found = 0
        for index in 0..<end {
            for value: UInt8 in [0xff, bytes[index] ^ 1] where value != bytes[index] {
                var changed = bytes
                changed[index] = value
                if try inspectionFlaw(changed, claim) != nil { found += 1 }
            }
        }
        #expect(found > end / 3)
        for count in stride(from: 0, to: bytes.count, by: 31) {
            var short = claim
            short.bytes = count
            #expect(try inspectionFlaw(Array(bytes[..<count]), short) != nil)
        }
    }

    // MARK: Pictures

    private func picture(_ format: OutputFormat, _ bytes: [UInt8], width: Int = 300, height: Int = 200) -> OutputClaim {
        OutputClaim(format: format, bytes: bytes.count, width: width, height: height)
    }

    private static func chunk(_ kind: String, _ content: [UInt8]) -> [UInt8] {
        [0, 0, UInt8(content.count >> 8), UInt8(content.count & 255)] + Array(kind.utf8) + content + [0, 0, 0, 0]
    }

    private static let pngSignature: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
    private static let pngHeader = chunk("IHDR", [0, 0, 1, 44, 0, 0, 0, 200, 8, 6, 0, 0, 0])
    private static let png = pngSignature + pngHeader + chunk("IDAT", [1, 2, 3]) + chunk("IEND", [])

    @Test func aPNGIsToldByItsChunks() throws {
        #expect(try inspectionFlaw(Self.png, picture(.png, Self.png)) == nil)
        #expect(try inspectionFlaw(Self.png, picture(.png, Self.png, width: 301)) == .wrongSize)
        #expect(try inspectionFlaw(Self.png, picture(.jpg, Self.png)) == .wrongSignature)
        let trailing = Self.png + [0]
        #expect(try inspectionFlaw(trailing, picture(.png, trailing)) == .malformed)
        let text =
            Self.pngSignature + Self.pngHeader + Self.chunk("tEXt", [1]) + Self.chunk("IDAT", [1]) + Self.chunk("IEND", [])
        #expect(try inspectionFlaw(text, picture(.png, text)) == .malformed)
        let empty = Self.pngSignature + Self.pngHeader + Self.chunk("gAMA", [0, 0, 0, 0]) + Self.chunk("IEND", [])
        #expect(try inspectionFlaw(empty, picture(.png, empty)) == .malformed)
    }

    @Test func theHeaderOfAPNGHasItsOwnLength() throws {
        for length in [8, 12, 14, 4000] {
            let header = Self.chunk("IHDR", [0, 0, 1, 44, 0, 0, 0, 200] + Array(repeating: 0, count: length - 8))
            let file = Self.pngSignature + header + Self.chunk("IDAT", [1, 2, 3]) + Self.chunk("IEND", [])
            #expect(try inspectionFlaw(file, picture(.png, file)) == .malformed, "\(length)")
        }
    }

    @Test func aPictureHasNoMoreChunksThanItsSizeExplains() throws {
        let data = Array(repeating: Self.chunk("IDAT", [1]), count: 100).flatMap { $0 }
        let png = Self.pngSignature + Self.pngHeader + data + Self.chunk("IEND", [])
        #expect(try inspectionFlaw(png, picture(.png, png)) == .malformed)
        let lossy: [UInt8] = [0x10, 0, 0, 0x9d, 0x01, 0x2a, 44, 1, 200, 0, 1, 2]
        let webp = Self.riff(Array(repeating: ("ALPH", [1, 2]), count: 20) + [("VP8 ", lossy)])
        #expect(try inspectionFlaw(webp, picture(.webp, webp)) == .malformed)
    }

    @Test func aLargePNGOfManyChunksPasses() throws {
        let transcoder = Transcoder(output: .png)
        let made = try Converted(GIFBuilder.noise(frames: 1, width: 1000, height: 1000), transcoder)
        // More than 64 chunks of 4 KiB.
        #expect(made.bytes.count > 64 * 4096)
        #expect(try inspectionFlaw(made.bytes, OutputClaim(transcoder, made.result)) == nil)
    }

    @Test func aJPEGIsToldByItsSegments() throws {
        let frame: [UInt8] = [0xff, 0xc0, 0, 17, 8, 0, 200, 1, 44, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]
        let scan: [UInt8] = [0xff, 0xda, 0, 12, 3, 1, 0, 2, 0x11, 3, 0x11, 0, 0x3f, 0, 1, 2, 3, 0xff, 0xd9]
        let jpeg = [0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2] + frame + scan
        #expect(try inspectionFlaw(jpeg, picture(.jpg, jpeg)) == nil)
        #expect(try inspectionFlaw(jpeg, picture(.jpg, jpeg, height: 199)) == .wrongSize)
        let cut = Array(jpeg.dropLast())
        #expect(try inspectionFlaw(cut, picture(.jpg, cut)) == .malformed)
        let frameless = [0xff, 0xd8] + scan
        #expect(try inspectionFlaw(frameless, picture(.jpg, frameless)) == .missingPart)
        let exif = [0xff, 0xd8, 0xff, 0xe1, 0, 4, 1, 2] + frame + scan
        #expect(try inspectionFlaw(exif, picture(.jpg, exif)) == .malformed)
    }

    private static func riff(_ chunks: [(String, [UInt8])]) -> [UInt8] {
        var body = Array("WEBP".utf8)
        for (kind, content) in chunks {
            body += Array(kind.utf8)
            body += [UInt8(content.count), 0, 0, 0]
            body += content
            if content.count % 2 == 1 { body.append(0) }
        }
        let head: [UInt8] = Array("RIFF".utf8) + [UInt8(body.count), 0, 0, 0]
        return head + body
    }

    @Test func aWebPIsToldByItsChunks() throws {
        let lossy: [UInt8] = [0x10, 0, 0, 0x9d, 0x01, 0x2a, 44, 1, 200, 0, 1, 2]
        // 299 and 199 in 14 bits each.
        let bits = 299 | 199 << 14
        let lossless: [UInt8] = [0x2f] + (0..<4).map { UInt8(bits >> (8 * $0) & 255) } + [1, 2, 3, 4, 5, 6]
        let header: [UInt8] = [0x10, 0, 0, 0, 43, 1, 0, 199, 0, 0]
        for file in [
            Self.riff([("VP8 ", lossy)]), Self.riff([("VP8L", lossless)]),
            Self.riff([("VP8X", header), ("ALPH", [1, 2, 3]), ("VP8 ", lossy)]),
        ] {
            #expect(try inspectionFlaw(file, picture(.webp, file)) == nil)
            #expect(try inspectionFlaw(file, picture(.webp, file, width: 299)) == .wrongSize)
        }
        let animated = Self.riff([("VP8X", header), ("ANIM", [0, 0, 0, 0, 0, 0]), ("VP8 ", lossy)])
        #expect(try inspectionFlaw(animated, picture(.webp, animated)) == .malformed)
        let smaller = Self.riff([("VP8X", [0x10, 0, 0, 0, 42, 1, 0, 199, 0, 0]), ("VP8 ", lossy)])
        #expect(try inspectionFlaw(smaller, picture(.webp, smaller)) == .wrongSize)
    }
}
