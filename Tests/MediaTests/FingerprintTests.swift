import TestSupport
import Testing

@testable import Media

@Suite("Fingerprints stay when a picture is changed a little")
struct FingerprintTests {
    /// Tiles in the colours of the palette, the same at every size.
    private static func tiles(_ width: Int, _ height: Int, shift: Int = 0) -> GIFBuilder.Frame {
        let pixels = (0..<width * height).map { index in
            let (x, y) = (index % width, index / width)
            return UInt8(((x * 9 / width) * 3 + (y * 7 / height) * 5 + x * y * 30 / (width * height) + shift) % 8)
        }
        return GIFBuilder.Frame(width: width, height: height, pixels: pixels)
    }

    private static func gif(_ frames: [GIFBuilder.Frame], delay: Int = 10) -> [UInt8] {
        var builder = GIFBuilder(width: frames[0].width, height: frames[0].height)
        for frame in frames { builder.add(frame) { $0.delay = delay } }
        return builder.finish()
    }

    private static func fingerprints(_ gif: [UInt8]) throws -> [Fingerprint] {
        let facts = try Converted(gif, as: .facts) { $0.facts = .fingerprints }
        return try #require(Fingerprint.list(FactsOutput.parts(facts.bytes, frames: facts.result.frames).requested))
    }

    /// The hashes that the package pdqhash 0.2.7 computes of the same pictures.
    @Test(arguments: [
        (200, 150, "3969e343d234da6c83fc27760ce703177f77ee63e201ff70ee30e040df040f10"),
        (40, 30, "3c257d41d2d1fb6cf26c1374ce67890e377fef776201fd10af30f040cf400e11"),
        (700, 500, "3d69e343d294fa6c82fc07762ce7031f7f73ef636201ff70ee30e040cf800f10"),
        (64, 64, "3ca96949d291fb6cc26c9376e667011f377f6773e201ff30af30f040cf040f11"),
    ])
    func theyAreThoseOfThePublishedAlgorithm(_ width: Int, _ height: Int, _ text: String) throws {
        let fingerprint = try #require(try Self.fingerprints(Self.gif([Self.tiles(width, height)])).first)
        let hash = try #require(PDQHash(text: text.utf8))
        #expect(fingerprint.hash.distance(to: hash) <= 2, "\(fingerprint.hash.text)")
        #expect(fingerprint.quality == 100)
    }

    @Test func aSmallerPictureIsNearAndAnotherIsFar() throws {
        let large = try Self.fingerprints(Self.gif([Self.tiles(320, 240)]))[0].hash
        let small = try Self.fingerprints(Self.gif([Self.tiles(160, 120)]))[0].hash
        let other = try Self.fingerprints(GIFBuilder.noise(frames: 1, width: 320, height: 240))[0].hash
        #expect(large.distance(to: small) <= PDQHash.nearDistance)
        #expect(large.distance(to: other) > 90)
        #expect(large.distance(to: large) == 0)
    }

    @Test func theQualityOfAPictureWithoutDetailIsLow() throws {
        let plain = GIFBuilder.Frame(width: 60, height: 60, color: 3)
        #expect(try Self.fingerprints(Self.gif([plain]))[0].quality == 0)
        // Too small for the algorithm.
        let tiny = try Self.fingerprints(Self.gif([Self.tiles(40, 4)]))[0]
        #expect(tiny == Fingerprint(hash: PDQHash(.zero), quality: 0))
    }

    @Test func whatIsTransparentIsWhite() throws {
        let clear = Self.gif([GIFBuilder.Frame(width: 64, height: 64, color: 1)])
        var builder = GIFBuilder(width: 64, height: 64)
        builder.add(Self.tiles(64, 64)) { $0.transparent = 0 }
        var opaque = GIFBuilder(width: 64, height: 64)
        var tiles = Self.tiles(64, 64)
        tiles.pixels = tiles.pixels.map { $0 == 0 ? 1 : $0 }
        opaque.add(tiles)
        #expect(try Self.fingerprints(builder.finish()) == Self.fingerprints(opaque.finish()))
        #expect(try Self.fingerprints(clear)[0].quality == 0)
    }

    @Test func aHashIsItsText() throws {
        let text = "0123456789abcdef00000000000000ffffffffffffffffff8000000000000001"
        let hash = try #require(PDQHash(text: text.utf8))
        #expect(hash.text == text && hash.bits[0] == 0x8000_0000_0000_0001 && hash.bits[3] == 0x0123_4567_89ab_cdef)
        #expect(PDQHash(text: text.uppercased().utf8) == hash)
        for wrong in ["", String(text.dropLast()), text + "0", text.replacing("f", with: "g"), text.replacing("0", with: "é")] {
            #expect(PDQHash(text: wrong.utf8) == nil)
        }
    }

    // MARK: The pictures of an animation

    @Test func allPicturesOfAShortAnimationHaveOne() throws {
        let frames = (0..<5).map { Self.tiles(64, 48, shift: $0) }
        #expect(try Self.fingerprints(Self.gif(frames)).count == 5)
        #expect(Fingerprint.frames(of: Array(repeating: 10, count: 16)) == Array(0..<16))
    }

    @Test func thoseOfALongOneAreSpreadOverItsTime() {
        #expect(Fingerprint.frames(of: Array(repeating: 10, count: 32)) == (0..<16).map { 2 * $0 + 1 })
        // The same at another speed.
        let delays = (0..<100).map { 2 + $0 * 7 % 13 }
        #expect(Fingerprint.frames(of: delays) == Fingerprint.frames(of: delays.map { $0 * 3 }))
        // The same times, where frames are repeated.
        let doubled = Fingerprint.frames(of: delays.flatMap { [$0, $0] }).map { $0 / 2 }
        #expect(doubled == Fingerprint.frames(of: delays))
    }

    @Test func framesThatFillTheTimeLeaveRoomForOthers() {
        for delays in [
            [100_000] + Array(repeating: 1, count: 40), Array(repeating: 0, count: 20), Array(repeating: 1, count: 17),
        ] {
            let frames = Fingerprint.frames(of: delays)
            #expect(frames.count == 16 && Set(frames).count == 16 && frames.allSatisfy(delays.indices.contains))
        }
    }

    /// The summary of the file counts frames that cannot be decoded.
    @Test(arguments: [TranscodeOptions.Facts.fingerprints, .flashes])
    func damagedFramesAndThoseAfterThemDoNotCount(_ kind: TranscodeOptions.Facts) throws {
        func requested(_ webp: inout WebPBuilder) throws -> [UInt8] {
            let facts = try Converted(webp.finish(), as: .facts) { $0.facts = kind }
            #expect(facts.result.frames == 17)
            return Array(FactsOutput.parts(facts.bytes, frames: 17).requested)
        }
        var whole = WebPBuilder(width: 8, height: 8)
        for index in 0..<17 {
            whole.add(WebPBuilder.Frame(width: 8, height: 8, word: index % 2 == 0 ? Word.red : Word.blue))
        }
        var damaged = whole
        let frame = WebPBuilder.Frame(width: 8, height: 8, word: Word.red)
        // The header of a picture without its codes.
        damaged.addChunks(Array("VP8L".utf8) + [6, 0, 0, 0, 0x2f, 7, 0xc0, 1, 0, 0xff], for: frame)
        for _ in 0..<6 { damaged.add(frame) }
        #expect(try requested(&damaged) == requested(&whole))
    }

    @Test func anotherSpeedGivesTheSame() throws {
        let frames = (0..<24).map { Self.tiles(64, 48, shift: $0) }
        #expect(try Self.fingerprints(Self.gif(frames, delay: 4)) == Self.fingerprints(Self.gif(frames, delay: 20)))
    }

    // MARK: The file

    @Test func theyFollowTheOtherFactsAndOnlyOnRequest() throws {
        let gif = Self.gif((0..<3).map { Self.tiles(64, 48, shift: $0) })
        let plain = try Converted(gif, as: .facts) { _ in }
        let facts = try Converted(gif, as: .facts) { $0.facts = .fingerprints }
        #expect(facts.bytes.starts(with: plain.bytes))
        #expect(facts.bytes.count == plain.bytes.count + 3 * 33)
        var claim = OutputClaim(Transcoder(output: .facts), plain.result)
        #expect(try inspectionFlaw(plain.bytes, claim) == nil)
        claim.facts = .fingerprints
        #expect(try inspectionFlaw(plain.bytes, claim) == .wrongLength)
        claim.bytes = facts.bytes.count
        #expect(try inspectionFlaw(facts.bytes, claim) == nil)
        var wrong = facts.bytes
        wrong[wrong.count - 1] = 101
        #expect(try inspectionFlaw(wrong, claim) == .malformed)
    }
}
