import Glibc
import TestSupport
import Testing

@testable import Media

@Suite("WebM, AVIF, animated WebP and GIF of a worker are believed only byte by byte", .timeLimit(.minutes(10)))
struct WebMInspectionTests {
    private struct Made: CustomStringConvertible {
        let format: OutputFormat
        let bytes: [UInt8]
        let claim: OutputClaim
        let description: String

        init(_ name: String, _ format: OutputFormat, _ gif: [UInt8], _ options: TranscodeOptions = TranscodeOptions()) throws {
            let transcoder = Transcoder(output: format, options: options)
            let made = try Converted(gif, transcoder)
            self.format = format
            bytes = made.bytes
            claim = OutputClaim(transcoder, made.result)
            description = "\(name) \(format)"
        }
    }

    private static let made: [Made] = {
        var thirds = TranscodeOptions()
        thirds.time = TimeOptions(speed: 3000, loops: 3)
        var twice = TranscodeOptions()
        twice.time.loops = 2
        let sources: [(String, [UInt8], TranscodeOptions)] = [
            ("opaque", GIFBuilder.animation(frames: 6), TranscodeOptions()),
            ("transparent", WebMTests.sprite(), TranscodeOptions()),
            ("looped", WebMTests.sprite([7, 11], loop: 5), thirds),
            // Both plays of the source are in the file, which is therefore played once.
            ("looped once", WebMTests.sprite([7, 11], loop: 1), twice),
            ("still", GIFBuilder.animation(frames: 1), TranscodeOptions()),
            ("transparent still", WebMTests.sprite([40], loop: nil), thirds),
        ]
        return sources.flatMap { name, gif, options in
            [OutputFormat.webm, .avif, .awebp, .gif].compactMap { try? Made(name, $0, gif, options) }
        }
    }()

    @Test func trueFilesPass() throws {
        #expect(Self.made.count == 24)
        for made in Self.made { #expect(try inspectionFlaw(made.bytes, made.claim) == nil, "\(made)") }
    }

    @Test func theClaimMustBeTrue() throws {
        let paths: [WritableKeyPath<OutputClaim, Int>] = [\.bytes, \.width, \.height, \.duration, \.samples, \.timescale]
        for made in Self.made {
            for path in paths {
                for change in [-1, 1] {
                    // The one picture of a still image has no time.
                    if path == \.timescale && made.format != .webm && made.claim.samples == 1 { continue }
                    var lie = made.claim
                    lie[keyPath: path] += change
                    #expect(try inspectionFlaw(made.bytes, lie) != nil, "\(made) \(path) \(change)")
                }
                for absurd in [Int.max, Int.min, 0] where made.claim[keyPath: path] != absurd {
                    if path == \.timescale && made.format != .webm && made.claim.samples == 1 { continue }
                    var lie = made.claim
                    lie[keyPath: path] = absurd
                    #expect(try inspectionFlaw(made.bytes, lie) != nil, "\(made) \(path) \(absurd)")
                }
            }
        }
    }

    @Test func theNumberOfPlaysMustBeThatOfTheSource() throws {
        for made in Self.made where made.format != .webm && made.claim.samples > 1 {
            for count in [nil, 0, 1] as [Int?] where count != made.claim.loopCount {
                var lie = made.claim
                lie.loopCount = count
                // Two plays are allowed for a loop count of 1, and one play for none.
                if made.claim.loopCount == 5 && count == 1 || made.claim.loopCount == 1 && count == nil { continue }
                #expect(try inspectionFlaw(made.bytes, lie) != nil, "\(made) \(String(describing: count))")
            }
        }
    }

    @Test func nothingMayFollowAndNothingMayBeMissing() throws {
        for made in Self.made {
            for extra in [[0], [0xec, 0x80], [0, 0, 0, 8, 0x66, 0x72, 0x65, 0x65]] as [[UInt8]] {
                var claim = made.claim
                claim.bytes += extra.count
                let isFreeBox = made.format == .avif && extra.count == 8
                if !isFreeBox { #expect(try inspectionFlaw(made.bytes + extra, claim) != nil, "\(made)") }
            }
            for count in stride(from: 0, to: made.bytes.count, by: 7) {
                var claim = made.claim
                claim.bytes = count
                #expect(try inspectionFlaw(Array(made.bytes[..<count]), claim) != nil, "\(made) \(count)")
            }
        }
    }

    /// Damages every byte in front of the first picture in several ways. Whatever is found, the inspection comes to an end; most
    /// bytes are found.
    @Test func everyByteOfTheHeadCanBeDamaged() throws {
        for made in Self.made {
            let end = min(made.bytes.count, 1200)
            var found = 0
            var tried = 0
            for index in 0..<end {
                for value in [0xff, 0, made.bytes[index] ^ 1, made.bytes[index] ^ 0x80] where value != made.bytes[index] {
                    var bytes = made.bytes
                    bytes[index] = value
                    tried += 1
                    if try inspectionFlaw(bytes, made.claim) != nil { found += 1 }
                }
            }
            #expect(found > tried / 4, "\(made): \(found) of \(tried)")
        }
    }

    @Test func theLengthInTheHeadOfAWebPIsThatOfTheFile() throws {
        for made in Self.made where made.format == .awebp {
            for index in 4..<8 {
                var bytes = made.bytes
                bytes[index] ^= 1
                #expect(try inspectionFlaw(bytes, made.claim) == .malformed, "\(made) \(index)")
            }
        }
    }

    private func position(of bytes: [UInt8], in file: [UInt8]) throws -> Int {
        try #require(file.indices.first { file[$0...].starts(with: bytes) })
    }

    @Test(
        "A changed element of a WebM is found",
        arguments: [
            ("V_VP9", OutputFlaw.wrongCodec), ("webm", .wrongSignature),
        ])
    func changedTextsAreFound(_ text: String, _ expected: OutputFlaw) throws {
        let made = try #require(Self.made.first { $0.description == "transparent webm" })
        var bytes = made.bytes
        bytes[try position(of: Array(text.utf8), in: bytes)] ^= 1
        #expect(try inspectionFlaw(bytes, made.claim) == expected)
    }

    @Test(
        "A changed part of a WebM is found",
        arguments: [
            // The scale of times; the first block's time; the number of its addition; the mode of alpha; the blocks' durations.
            ([0x2a, 0xd7, 0xb1, 0x83], 4, OutputFlaw.wrongDuration), ([0x81, 0x00, 0x00, 0x00], 2, .wrongDuration),
            ([0xee, 0x81, 0x01], 2, .malformed), ([0x53, 0xc0, 0x81], 3, .malformed),
            ([0x9b, 0x81, 100], 2, .wrongDuration), ([0x9b, 0x81, 70], 2, .wrongDuration),
            ([0x9b, 0x82, 1, 0x90], 3, .wrongDuration),
        ] as [([UInt8], Int, OutputFlaw)])
    func changedNumbersAreFound(_ pattern: [UInt8], _ offset: Int, _ expected: OutputFlaw) throws {
        let made = try #require(Self.made.first { $0.description == "transparent webm" })
        var bytes = made.bytes
        bytes[try position(of: pattern, in: bytes) + offset] ^= 2
        #expect(try inspectionFlaw(bytes, made.claim) == expected)
    }

    /// By a nanosecond, and by a tick.
    @Test(arguments: [1, -1, 1_000_000, -1_000_000]) func aFalseDurationOfAllPicturesIsFound(_ change: Int) throws {
        for name in ["opaque webm", "still webm"] {
            let made = try #require(Self.made.first { $0.description == name })
            var bytes = made.bytes
            let size = try position(of: [0x23, 0xe3, 0x83], in: bytes) + 3
            let place = size + 1..<size + 1 + Int(bytes[size] & 0x7f)
            let duration = bytes[place].reduce(0) { $0 << 8 | Int($1) }
            #expect(duration == 100_000_000)
            let changed = EBML.bigEndian(UInt64(duration + change))
            try #require(changed.count == place.count)
            bytes.replaceSubrange(place, with: changed)
            #expect(try inspectionFlaw(bytes, made.claim) == .wrongDuration)
        }
    }

    @Test(
        "A changed box of an AVIF is found",
        arguments: [
            ("auxl", OutputFlaw.missingPart), ("auxC", .missingPart), ("av1C", .missingPart), ("elst", .missingPart),
            ("auxv", .malformed), ("nclx", .wrongCodec), ("url ", .foreignData), ("moov", .missingPart), ("pitm", .missingPart),
            ("stss", .missingPart), ("urn:mpeg", .malformed),
        ])
    func changedBoxesAreFound(_ kind: String, _ expected: OutputFlaw) throws {
        let made = try #require(Self.made.first { $0.description == "transparent avif" })
        var bytes = made.bytes
        bytes[try position(of: Array(kind.utf8), in: bytes)] ^= 1
        #expect(try inspectionFlaw(bytes, made.claim) == expected)
    }

    @Test func itemsAndSamplesOutsideTheDataAreFound() throws {
        let made = try #require(Self.made.first { $0.description == "transparent avif" })
        for (kind, offset) in [("iloc", 4 + 8 + 6), ("stco", 12)] {
            var bytes = made.bytes
            bytes[try position(of: Array(kind.utf8), in: bytes) + offset] = 0x7f
            #expect(try inspectionFlaw(bytes, made.claim) == .strayingSamples, "\(kind)")
        }
    }
}
