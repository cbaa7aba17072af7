import Foundation
import TestSupport
import Testing

@testable import Media

@Suite("Containers are read by their brands, the roles of their tracks and what they state") struct ClipContainerTests {
    private static func clip(
        _ arguments: String = "-c:v libx264 -pix_fmt yuv420p", _ fileExtension: String = "mp4", inputs: [String]? = nil
    ) throws -> [UInt8] {
        let inputs = inputs ?? ["testsrc2=s=96x64:r=10:d=0.6"]
        return try FFmpeg.make(
            inputs.flatMap { ["-f", "lavfi", "-i", $0] } + arguments.split(separator: " ").map(String.init), fileExtension)
    }

    /// An image sequence with alpha: red, 200 ms a picture.
    private static func sequence(loop: Int? = 0) throws -> [UInt8] {
        try Converted(WebMTests.sprite([20, 20, 20], loop: loop), as: .avif) { $0.quality = 90 }.bytes
    }

    private static func format(_ bytes: [UInt8]) -> SourceFormat? { bytes.withUnsafeBytes { SourceFormat(of: $0) } }

    private static func box(_ type: String, _ body: [UInt8]) -> [UInt8] { [0, 0, 0, UInt8(body.count + 8)] + type.utf8 + body }

    // MARK: Recognition

    @Test func allBrandsCount() {
        func kind(_ brands: [String]) -> (SourceFormat?, Bool) {
            let file =
                Self.box("ftyp", brands[0].utf8 + [0, 0, 0, 0] + brands.dropFirst().flatMap(\.utf8)) + Self.box("moov", [])
            return file.withUnsafeBytes { (SourceFormat(of: $0), SourceFormat(of: $0)?.isAnimation($0) ?? false) }
        }
        for major in ["mif1", "msf1", "miaf", "MA1B", "iso8", "isom", "heic", "avis"] {
            #expect(kind([major, "avis", "miaf"]) == (.avif, true), "\(major)")
        }
        #expect(kind(["avif", "avis"]) == (.avif, false) && kind(["mif1", "avif"]) == (.avif, false))
        #expect(kind(["mif1", "miaf"]) == (nil, false) && kind(["heic", "mif1"]) == (nil, false))
        #expect(kind(["qt  ", "isom"]) == (.mov, true) && kind(["MSNV", "isom"]) == (.mp4, true))
    }

    @Test func boxesInFrontOfTheBrandsAreSkipped() throws {
        let clip = try Self.clip()
        for type in ["skip", "free", "pnot", "uuid", "udta", "wide", "zzzz"] {
            // Offsets count from the beginning of the file, but not those of fragments.
            let fragments = try Self.clip("-c:v libx264 -pix_fmt yuv420p -movflags frag_keyframe+empty_moov+default_base_moof")
            let file = Self.box(type, Array(repeating: 0x20, count: 20)) + fragments
            #expect(Self.format(file) == .mp4, "\(type)")
            #expect(try Animation.compose(file).canvases.count == 6, "\(type)")
        }
        #expect(Self.format(Self.box("skip", Array(repeating: 0, count: 16)) + Array("This is text and no video.".utf8)) == nil)
        #expect(Self.format(Array(clip.prefix(20))) == .mp4)
    }

    // MARK: Ends

    private static let tails: [(String, [UInt8])] = [
        ("zeros", Array(repeating: 0, count: 8)), ("three zeros", [0, 0, 0]), ("a line end", [13, 10]),
        ("text", Array("the end of it\n".utf8)),
        ("ID3v1", Array("TAG".utf8) + Array(repeating: 0x20, count: 125)), ("a page", Array("<html><body>".utf8)),
    ]

    @Test(arguments: [
        ("-c:v libx264 -pix_fmt yuv420p", "mp4"), ("-c:v libx264 -pix_fmt yuv420p -movflags faststart", "mov"),
        ("-c:v libx264 -pix_fmt yuv420p -movflags frag_keyframe+empty_moov -g 2", "mp4"), ("-c:v libvpx-vp9 -b:v 300k", "webm"),
        ("-c:v libvpx -b:v 300k -live 1", "webm"), ("avif", "avif"),
    ])
    func bytesAfterTheEndDoNotCount(_ arguments: String, _ fileExtension: String) throws {
        let clip = try arguments == "avif" ? Self.sequence() : Self.clip(arguments, fileExtension)
        let whole = try Animation.compose(clip)
        for (name, tail) in Self.tails {
            let composed = try Animation.compose(clip + tail)
            #expect(composed.summary == whole.summary && composed.summary.ending == .complete, "\(name)")
        }
    }

    /// A live WebM has no sizes, so only its last element shows whether it is whole.
    @Test func aLiveWebMThatBreaksOffInABlockIsIncomplete() throws {
        let clip = try Self.clip("-c:v libvpx -b:v 300k -g 3 -f webm -live 1", "webm")
        let whole = try Animation.compose(clip)
        #expect(whole.canvases.count == 6 && whole.summary.ending == .complete)
        for missing in [1, 2, 3, 7, 20] {
            let composed = try Animation.compose(Array(clip.dropLast(missing)))
            #expect(composed.summary.ending == .brokenOff && composed.canvases.count == 5, "\(missing)")
        }
    }

    @Test func aFragmentThatBreaksOffIsIncomplete() throws {
        let clip = try Self.clip("-c:v libx264 -pix_fmt yuv420p -bf 0 -movflags frag_keyframe+empty_moov -g 2")
        let fragments = BoxPatch(clip).positions("moof").map { $0 - 4 }
        try #require(fragments.count == 3)
        for (end, count) in [(fragments[2] + 3, 4), (fragments[2] + 6, 4), (fragments[2] + 40, 4)] {
            // Zeros alone may be padding.
            let bytes = Array(clip[..<end])
            let composed = try Animation.compose(bytes)
            let isHead = end == fragments[2] + 3 && bytes.suffix(3).allSatisfy { $0 == 0 }
            #expect(composed.summary.ending == (isHead ? .complete : .brokenOff) && composed.canvases.count == count, "\(end)")
        }
    }

    /// The header of a stream's segments is a file of its own (HLS, DASH). More bytes would not help.
    @Test func aSegmentWithoutItsHeaderIsNotIncomplete() throws {
        let clip = try Self.clip("-c:v libx264 -pix_fmt yuv420p -movflags frag_keyframe+empty_moov+default_base_moof")
        let start = try #require(BoxPatch(clip).positions("moof").first) - 4
        let fragment = Array(clip[start...])
        for bytes in [fragment, Self.box("styp", "msdh".utf8 + [0, 0, 0, 0]) + fragment] {
            #expect(Self.format(bytes) == .mp4)
            #expect(throws: TranscodeError.corrupt(.mp4, .header)) { try Animation.compose(bytes) }
        }
    }

    /// The end of the parent ends an element of unknown size, too (RFC 8794 §6.2).
    @Test func clustersWithoutSizeAreReadInASegmentThatHasOne() throws {
        let live = try Self.clip("-c:v libvpx -b:v 300k -g 3 -f webm -live 1", "webm")
        let name: [UInt8] = [0x18, 0x53, 0x80, 0x67]
        let segment = try #require(live.indices.dropLast(12).first { live[$0..<$0 + 4].elementsEqual(name) }) + 4
        try #require(live[segment] == 1 && live[segment + 1..<segment + 8].allSatisfy { $0 == 0xff })
        let size = Self.number(live.count - segment - 8)
        let clip = live[..<segment] + [1, 0, 0, 0] + size + live[(segment + 8)...]
        let (composed, expected) = (try Animation.compose(Array(clip)), try Animation.compose(live))
        let isSame = composed.canvases == expected.canvases
        #expect(isSame && composed.summary == expected.summary && expected.canvases.count == 6)
    }

    /// Sound may be missing: all pictures are there.
    @Test func anEndAfterTheLastPictureIsComplete() throws {
        let clip = try Self.clip("-c:v libx264 -pix_fmt yuv420p -bf 0 -movflags faststart")
        let claims = BoxPatch(clip).writing([0, 0, 0x40, 0], at: -4, of: "mdat").bytes
        #expect(try Animation.compose(claims).summary.ending == .complete)
        #expect(try Animation.compose(Array(clip.dropLast(1))).summary.ending == .brokenOff)
    }

    /// The length of the last box may be 0: up to the end of the file. A length of 64 bits follows the type (ISO/IEC 14496-12
    /// §4.2), for which FFmpeg leaves room.
    @Test func everyFormOfALengthIsRead() throws {
        let clip = try Self.clip("-c:v libx264 -pix_fmt yuv420p -bf 0 -movflags faststart")
        let (whole, patch) = (try Animation.compose(clip), BoxPatch(clip))
        let start = try #require(patch.positions("mdat").first) - 4
        try #require(patch.positions("free").last == start - 4)
        let open = patch.writing([0, 0, 0, 0], at: -4, of: "mdat")
        let long = Self.number(1) + Array("mdat".utf8) + Self.number(0) + Self.number(clip.count - start + 8)
        for changed in [open, patch.writing(long, at: -12, of: "mdat")] {
            let composed = try Animation.compose(changed.bytes)
            let isSame = composed.canvases == whole.canvases
            #expect(isSame && composed.summary == whole.summary && composed.summary.ending == .complete)
        }
    }

    // MARK: Tracks

    private static func color(_ bytes: [UInt8]) throws -> UInt32 {
        let composed = try Animation.compose(bytes)
        return try #require(composed.canvases.first?.first) & 0x80_8080
    }

    @Test func theFirstEnabledTrackIsShown() throws {
        let two = try Self.clip(
            "-map 0 -map 1 -c:v libx264 -pix_fmt yuv420p", inputs: ["color=red:s=32x32:d=0.2", "color=lime:s=32x32:d=0.2"])
        let (red, green): (UInt32, UInt32) = (0x80, 0x8000)
        let disabled: [UInt8] = [0, 0, 0, 2]
        let patch = BoxPatch(two)
        let both = [0, 1].map { patch.writing([0, 0, 0, 3], at: 4, of: "tkhd", number: $0) }
        #expect(try Self.color(both[1].writing([0, 0, 0, 3], at: 4, of: "tkhd").bytes) == red)
        #expect(try Self.color(both[1].writing(disabled, at: 4, of: "tkhd").bytes) == green)
        #expect(
            try Self.color(patch.writing(disabled, at: 4, of: "tkhd").writing(disabled, at: 4, of: "tkhd", number: 1).bytes)
                == red)
    }

    /// As in Chromium.
    @Test(arguments: ["mp4", "mov", "mkv"]) func aTrackThatCannotBeReadIsPassedOver(_ fileExtension: String) throws {
        let clip = try Self.clip(
            "-map 0 -map 1 -c:v:0 mjpeg -pix_fmt:v:0 yuvj420p -c:v:1 libx264 -pix_fmt:v:1 yuv420p", fileExtension,
            inputs: ["color=red:s=32x32:d=0.2", "color=lime:s=32x32:d=0.2"])
        #expect(try Self.color(clip) == 0x8000)
    }

    @Test func alphaIsTheAuxiliaryTrackOfTheColours() throws {
        let avif = try Self.sequence()
        let patch = BoxPatch(avif)
        let expected = try Animation.compose(avif)
        #expect(expected.summary.hasAlpha)
        let swapped = try Animation.compose(patch.swapping("trak").bytes)
        let isSame = swapped.canvases == expected.canvases
        #expect(isSame && swapped.summary == expected.summary)
        // Depth; alpha of another track; an auxiliary type that is not stated, as in older files.
        let type = try #require(patch.positions("alph").last)
        var depth = avif
        depth.replaceSubrange(type..<type + 5, with: "depth".utf8)
        #expect(try !Animation.compose(depth).summary.hasAlpha)
        #expect(try !Animation.compose(patch.writing([0, 0, 0, 9], at: 4, of: "auxl", number: 1).bytes).summary.hasAlpha)
        #expect(try Animation.compose(patch.renaming("auxi", "free", number: 1).bytes).summary.hasAlpha)
    }

    /// RFC 9559 §5.1.4.1.28.4: without `AlphaMode`, additions to blocks are something else.
    @Test func additionsAreAlphaOnlyIfTheTrackSaysSo() throws {
        let clip = try Self.clip("-c:v libvpx-vp9 -b:v 300k -pix_fmt yuva420p -vf format=yuva420p,geq=lum=128:a=40+X", "webm")
        let mode = try #require(clip.indices.dropLast(4).first { clip[$0..<$0 + 4].elementsEqual([0x53, 0xc0, 0x81, 1]) })
        #expect(try Animation.compose(clip).summary.hasAlpha)
        var without = clip
        without[mode + 3] = 0
        let composed = try Animation.compose(without)
        #expect(!composed.summary.hasAlpha && composed.canvases.count == 6)
    }

    /// An encoding contains no further one (RFC 9559 §5.1.4.1.31.1).
    @Test func encodingsInOneAnotherAreNotEntered() {
        func element(_ identifier: [UInt8], size: Int) -> [UInt8] {
            identifier + [1] + (1..<8).map { UInt8(truncatingIfNeeded: size >> (56 - 8 * $0)) }
        }
        let depth = 150_000
        let nested = (1...depth).flatMap { element([0x62, 0x40], size: 10 * (depth - $0)) }
        let entry = [0x83, 0x81, 1] + element([0x6d, 0x80], size: nested.count) + nested
        let tracks = element([0xae], size: entry.count) + entry
        let segment = element([0x16, 0x54, 0xae, 0x6b], size: tracks.count) + tracks
        let file = [0x1a, 0x45, 0xdf, 0xa3, 0x80] + element([0x18, 0x53, 0x80, 0x67], size: segment.count) + segment
        let video = file.withUnsafeBytes { MatroskaFile($0).video }
        #expect(video?.isEncrypted == false)
    }

    /// The margins are cut off, and the display size is that of the rest (RFC 9559 §5.1.4.1.28.8).
    @Test func marginsOfMatroskaAreCutOff() throws {
        let clip = try Self.clip("-c:v libvpx-vp9 -b:v 300k -pix_fmt yuva420p -vf format=yuva420p", "webm")
        let mode = try #require(clip.indices.dropLast(4).first { clip[$0..<$0 + 4].elementsEqual([0x53, 0xc0, 0x81, 1]) })
        var cropped = clip
        cropped.replaceSubrange(mode..<mode + 4, with: [0x54, 0xaa, 0x81, 16])
        let part = try Animation.compose(cropped)
        #expect(part.summary.width == 96 && part.summary.height == 48 && part.canvases.count == 6)
        let isCut = try zip(part.canvases, Animation.compose(clip).canvases).allSatisfy { one, whole in
            zip(one, whole).allSatisfy { $0 & 0xff_ffff == $1 & 0xff_ffff }
        }
        #expect(isCut)
        cropped[mode + 3] = 64
        #expect(throws: TranscodeError.corrupt(.webm, .header)) { try Animation.compose(cropped) }
    }

    /// The display size is that of one view (RFC 9559 §18.10). FFmpeg states half a side for pictures that contain two.
    @Test(arguments: ["left_right", "right_left", "top_bottom", "bottom_top", "row_interleaved_lr", "col_interleaved_rl"])
    func pixelsOfTwoViewsAreSquare(_ mode: String) throws {
        let clip = try Self.clip("-c:v libvpx-vp9 -b:v 300k -metadata:s:v:0 stereo_mode=\(mode)", "mkv")
        try #require(clip.indices.dropLast(2).contains { clip[$0..<$0 + 3].elementsEqual([0x53, 0xb8, 0x81]) })
        let summary = try Animation.compose(clip).summary
        #expect(summary.width == 96 && summary.height == 64)
    }

    // MARK: Image sequences

    @Test func propertiesTurnSequences() throws {
        let avif = try Self.sequence()
        let one = try #require(try Animation.compose(avif).canvases.first)
        let summary = try Animation.compose(avif).summary
        let (width, height) = (summary.width, summary.height)
        for turns in 0..<4 {
            let turned = try Animation.compose(
                BoxPatch(avif).renaming("ccst", "irot").writing([UInt8(turns)], at: 4, of: "irot").bytes)
            let swaps = turns % 2 == 1
            #expect(turned.summary.width == (swaps ? height : width) && turned.summary.height == (swaps ? width : height))
            let expected = (0..<turned.summary.height).flatMap { y in
                (0..<turned.summary.width).map { x in
                    switch turns {
                    case 0: one[y * width + x]
                    case 1: one[x * width + width - 1 - y]
                    case 2: one[(height - 1 - y) * width + width - 1 - x]
                    default: one[(height - 1 - x) * width + y]
                    }
                }
            }
            let isSame = turned.canvases.first == expected
            #expect(isSame, "\(turns)")
        }
        for axis in 0..<2 {
            let patch = BoxPatch(avif).renaming("ccst", "imir").writing([UInt8(axis)], at: 4, of: "imir")
            let canvas = try #require(try Animation.compose(patch.bytes).canvases.first)
            let expected = (0..<height).flatMap { y in
                (0..<width).map { x in axis == 0 ? one[(height - 1 - y) * width + x] : one[y * width + width - 1 - x] }
            }
            let isSame = canvas == expected
            #expect(isSame, "\(axis)")
        }
    }

    /// As in Chromium: an aperture with another origin needs the whole image in the same file (AV1 image file format §2.2.3).
    @Test(arguments: [
        ([48, 1, 40, 1, -24, 1, -4, 1], 48, 40), ([96, 2, 48, 1, -48, 2, 0, 1], 48, 48), ([48, 1, 40, 1, 0, 1, 0, 1], 96, 48),
    ])
    func theCleanApertureOfASequenceCutsItOff(_ aperture: [Int], _ width: Int, _ height: Int) throws {
        let avif = try Converted(GIFBuilder.noise(frames: 2, width: 96, height: 48), as: .avif) { $0.quality = 90 }.bytes
        let whole = try Animation.compose(avif)
        var patch = BoxPatch(avif).appending(
            "clap", aperture.flatMap(Self.number), in: ["moov", "trak", "mdia", "minf", "stbl", "stsd", "av01"])
        let place = try #require(patch.positions("stco").first) + 12
        let chunk = patch.bytes[place..<place + 4].reduce(0) { $0 << 8 | Int($1) }
        patch = patch.writing(Self.number(chunk + 40), at: 12, of: "stco")
        let cut = try Animation.compose(patch.bytes)
        #expect(cut.summary.width == width && cut.summary.height == height)
        let isCut = zip(cut.canvases, whole.canvases).allSatisfy { one, other in
            (0..<height).allSatisfy { y in one[y * width..<(y + 1) * width].elementsEqual(other[y * 96..<y * 96 + width]) }
        }
        #expect(isCut && cut.canvases.count == whole.canvases.count)
    }

    @Test func rulesOfVideosDoNotApplyToSequences() throws {
        let avif = try Self.sequence()
        let expected = try Animation.compose(avif)
        // The pixel aspect, an edit that begins at the second picture, and a turned track.
        let patch = BoxPatch(avif)
        let wide = patch.renaming("ccst", "pasp").writing([0, 0, 0, 2, 0, 0, 0, 1], at: 4, of: "pasp")
        let late = patch.writing([0, 0, 0, 20], at: 16, of: "elst")
        for changed in [wide.bytes, late.bytes, try ClipReaderTests.turned(avif, by: 90, wide: true)] {
            let composed = try Animation.compose(changed)
            let isSame = composed.canvases == expected.canvases
            #expect(isSame && composed.summary.delays == expected.summary.delays)
        }
    }

    @Test(arguments: [(60, 60, nil), (120, 60, 1), (140, 60, 2), (180, 60, 2), (61, 60, 1)] as [(UInt8, UInt8, Int?)])
    func aPlayThatIsCutOffCounts(_ duration: UInt8, _ part: UInt8, _ loops: Int?) {
        let header = Self.box("tkhd", [UInt8](repeating: 0, count: 20) + [0, 0, 0, duration])
        let list = Self.box(
            "edts", Self.box("elst", [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, part] + [UInt8](repeating: 0, count: 8)))
        let movie = Self.box("moov", Self.box("trak", header + list))
        #expect(movie.withUnsafeBytes { ISOTrack.all(in: $0).first?.loopCount } == loops)
    }

    /// FFmpeg states the longest signed duration for a sequence without an end. libavif takes more than 2³¹ plays as endless.
    @Test(arguments: [(0x7fff_ffff_ffff_ffff, 0), (1 << 31 + 1, 0), (1 << 31, 65_535)] as [(UInt64, Int)])
    func playsWithoutNumberAreEndless(_ duration: UInt64, _ loops: Int) {
        let number = (0..<8).map { UInt8(duration >> UInt64(56 - 8 * $0) & 255) }
        let header = Self.box("tkhd", [1] + [UInt8](repeating: 0, count: 27) + number)
        let list = Self.box(
            "edts", Self.box("elst", [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1] + [UInt8](repeating: 0, count: 8)))
        let movie = Self.box("moov", Self.box("trak", header + list))
        #expect(movie.withUnsafeBytes { ISOTrack.all(in: $0).first?.loopCount } == loops)
    }

    /// As in Chromium.
    @Test func greyProfilesCountForGreyPictures() throws {
        let clip = try Self.clip("-c:v libaom-av1 -cpu-used 8 -usage realtime -crf 10 -pix_fmt gray")
        func composed(_ profile: ICCProfile) throws -> [[UInt32]] {
            let profile = Array("prof".utf8) + profile.bytes()
            let patch = BoxPatch(clip).writing(Array("avisavif".utf8), at: 12, of: "ftyp")
                .appending("colr", profile, in: ["moov", "trak", "mdia", "minf", "stbl", "stsd", "av01"])
            try #require(Self.format(patch.bytes) == .avif)
            return try Animation.compose(patch.bytes).canvases
        }
        func greys(_ canvases: [[UInt32]]) -> [Int] { canvases.flatMap { $0 }.map { Int($0 & 255) } }
        let plain = try greys(composed(.sRGB))
        let linear = plain.map { Int((255 * PortableMath.sRGB(linear: Double($0) / 255)).rounded()) }
        let converted = try greys(composed(.linearGrey))
        try #require(plain.count == 6 * 96 * 64 && Set(plain).count > 50)
        let isConverted = zip(converted, linear).allSatisfy { abs($0 - $1) <= 1 }
        #expect(isConverted)
    }

    // MARK: Times

    /// The sample table says how long the last picture lasts, whatever the headers say.
    @Test func shortHeadersDoNotCutTheLastPicture() throws {
        let clip = try Self.clip("-c:v libx264 -pix_fmt yuv420p -bf 0 -use_editlist 0")
        let expected = try Animation.compose(clip).summary
        let short = BoxPatch(clip).writing([0, 0, 0, 1], at: 20, of: "mdhd").writing([0, 0, 0, 1], at: 24, of: "tkhd")
            .writing([0, 0, 0, 1], at: 20, of: "mvhd")
        #expect(
            try Animation.compose(short.bytes).summary.delays == expected.delays
                && expected.delays == Array(repeating: 10, count: 6))
    }

    @Test func anEditListMayCutTheLastPicture() throws {
        let clip = try Self.clip("-c:v libx264 -pix_fmt yuv420p -bf 0 -use_editlist 1")
        let edited = BoxPatch(clip).writing([0, 0, 0x02, 0x26], at: 12, of: "elst")
        let delays = try Animation.compose(edited.bytes).summary.delays
        #expect(delays.count == 6 && delays.last == 5)
    }

    private static func number(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }

    /// All ones mean an unknown duration (ISO/IEC 14496-12 §8.2.2, §8.3.2, §8.4.2), as in recordings of cameras.
    @Test(arguments: ["-movflags frag_keyframe+empty_moov -g 2", "-movflags frag_keyframe -g 2", "-use_editlist 0"])
    func anUnknownDurationIsNotTheLongest(_ arguments: String) throws {
        let clip = try Self.clip("-c:v libx264 -pix_fmt yuv420p -bf 0 " + arguments)
        let ones: [UInt8] = [255, 255, 255, 255]
        let unknown = BoxPatch(clip).writing(ones, at: 20, of: "mvhd").writing(ones, at: 24, of: "tkhd")
            .writing(ones, at: 20, of: "mdhd")
        let summary = try Animation.compose(unknown.bytes).summary
        #expect(summary.delays == Array(repeating: 10, count: 6) && summary.ending == .complete)
    }

    /// A part of a stream has the times of the stream. The duration that libavformat reports ends at them, and does not begin there.
    @Test(arguments: ["empty_moov", "delay_moov", "dash"], ["-bf 0", "-bf 1 -b_strategy 0"])
    func fragmentsThatBeginLateDoNotLengthenTheLastPicture(_ flag: String, _ frames: String) throws {
        let clip = try Self.clip(
            "-c:v libx264 -pix_fmt yuv420p -g 3 -video_track_timescale 1000 -movflags frag_keyframe+\(flag) \(frames)")
        var late = BoxPatch(clip)
        // The low halves of 64-bit times: of the fragments, and of the indexes that `dash` writes. FFmpeg 5 puts decoding times there.
        let delay = frames == "-bf 0" ? 0 : 100
        for (type, place, begin) in [("tfdt", 12, 600_000), ("sidx", 20, 600_000 + delay)] {
            for (number, start) in late.positions(type).enumerated() {
                let time: Int = late.bytes[start + place..<start + place + 4].reduce(0) { $0 << 8 | Int($1) }
                late = late.writing(Self.number(begin + time), at: place, of: type, number: number)
            }
        }
        try #require(late.positions("tfdt").count == 2 && (flag != "dash" || !late.positions("sidx").isEmpty))
        for bytes in [clip, late.bytes] {
            let summary = try Animation.compose(bytes).summary
            #expect(summary.delays == Array(repeating: 10, count: 6) && summary.ending == .complete)
        }
    }

    /// The index has its own timescale (ISO/IEC 14496-12 §8.16.3), whose times libavformat takes for those of the track.
    @Test(arguments: [0, 600_000]) func theTimescaleOfAnIndexIsNotThatOfTheTrack(begin: Int) throws {
        let clip = try Self.clip(
            "-c:v libx264 -pix_fmt yuv420p -bf 0 -g 3 -video_track_timescale 1000 -movflags frag_keyframe+dash")
        var patch = BoxPatch(clip)
        try #require(!patch.positions("sidx").isEmpty && patch.positions("tfdt").count == 2)
        func shift(_ type: String, _ place: Int, _ number: Int, by begin: Int, times factor: Int = 1) {
            let start = patch.positions(type)[number] + place
            let value = patch.bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
            patch = patch.writing(Self.number((value + begin) * factor), at: place, of: type, number: number)
        }
        for number in 0..<2 { shift("tfdt", 12, number, by: begin) }
        // Timescale, time and the duration of the only fragment of each index.
        for number in patch.positions("sidx").indices {
            for (place, begin) in [(12, 0), (20, begin), (40, 0)] { shift("sidx", place, number, by: begin, times: 10) }
        }
        let summary = try Animation.compose(patch.bytes).summary
        #expect(summary.delays == Array(repeating: 10, count: 6) && summary.ending == .complete)
    }

    /// The standard forbids them. As in Chromium, a negative duration is 1, and what follows is shortened.
    @Test func negativeDurationsAreNotHuge() throws {
        let clip = try Self.clip("-c:v libx264 -pix_fmt yuv420p -bf 0 -use_editlist 0 -video_track_timescale 1000")
        for (durations, total) in [([(5, 100), (1, -100)], 50), ([(3, 100), (1, -50), (2, 100)], 45)] {
            let table = [0, durations.count] + durations.flatMap { [$0.0, $0.1] }
            let patch = BoxPatch(clip).renaming("stts", "free").appending(
                "stts", table.flatMap(Self.number), in: ["moov", "trak", "mdia", "minf", "stbl"])
            let composed = try Animation.compose(patch.bytes)
            let length = composed.summary.delays.reduce(0, +) * 100 / composed.summary.timescale
            #expect(composed.canvases.count == 6 && length == total, "\(durations)")
        }
    }

    /// As in Chromium and Firefox.
    @Test(arguments: ["-g 1", "-g 50"]) func theLastOfThePicturesWithOneTimeIsSeen(_ arguments: String) throws {
        let clip = try Self.clip(
            "-c:v libx264 -pix_fmt yuv420p -bf 0 -use_editlist 0 -video_track_timescale 1000 " + arguments)
        let table = [0, 3, 2, 100, 2, 0, 2, 100].flatMap(Self.number)
        let patch = BoxPatch(clip).renaming("stts", "free").appending(
            "stts", table, in: ["moov", "trak", "mdia", "minf", "stbl"])
        let composed = try Animation.compose(patch.bytes)
        let whole = try Animation.compose(clip).canvases
        let isSame = composed.canvases == [0, 1, 4, 5].map { whole[$0] }
        #expect(isSame && composed.summary.delays == [10, 10, 10, 10])
    }

    /// A sample without data is no picture: the one before it stays, or the first is shown from the start.
    @Test(arguments: [0, 1, 2, 6]) func emptySamplesAreLeftOut(_ place: Int) throws {
        let clip = try Self.clip("-c:v libx264 -pix_fmt yuv420p -bf 0 -use_editlist 0 -video_track_timescale 1000")
        let patch = BoxPatch(clip)
        let start = try #require(patch.positions("stsz").first) + 16
        var sizes: [Int] = (0..<6).map { clip[start + 4 * $0..<start + 4 * $0 + 4].reduce(0) { $0 << 8 | Int($1) } }
        sizes.insert(0, at: place)
        let tables = [
            ("stsz", [0, 0, 7] + sizes), ("stts", [0, 1, 7, 100]), ("stsc", [0, 1, 1, 7, 1]),
            ("stss", [0, 1, place == 0 ? 2 : 1]),
        ]
        let changed = tables.reduce(patch) { patch, table in
            patch.renaming(table.0, "free").appending(
                table.0, table.1.flatMap(Self.number), in: ["moov", "trak", "mdia", "minf", "stbl"])
        }
        let composed = try Animation.compose(changed.bytes)
        let isSame = try composed.canvases == Animation.compose(clip).canvases
        #expect(isSame && composed.summary.ending == .complete)
        #expect(composed.summary.delays == (1...6).map { $0 == max(1, place) ? 20 : 10 })
    }

    @Test(arguments: ["-bf 0", "-bf 2"]) func editsWithoutDurationHideNothing(_ arguments: String) throws {
        let clip = try Self.clip("-c:v libx264 -pix_fmt yuv420p -use_editlist 1 " + arguments)
        let expected = try Animation.compose(clip)
        let composed = try Animation.compose(BoxPatch(clip).writing([0, 0, 0, 0], at: 12, of: "elst").bytes)
        let isSame = composed.canvases == expected.canvases
        #expect(isSame && composed.summary == expected.summary && expected.canvases.count == 6)
    }

    /// As in players, which have nothing else to show.
    @Test(arguments: ["-bf 0", "-bf 2"]) func anEmptyEditAtTheBeginningShowsTheFirstPicture(_ arguments: String) throws {
        let clip = try Self.clip("-c:v libx264 -pix_fmt yuv420p -use_editlist 1 -video_track_timescale 10000 " + arguments)
        let start = arguments == "-bf 2" ? 2000 : 0
        let edits = [0, 2, 500, -1, 0x1_0000, 600, start, 0x1_0000].flatMap(Self.number)
        let patch = BoxPatch(clip).renaming("elst", "free").appending("elst", edits, in: ["moov", "trak", "edts"])
        #expect(try Animation.compose(patch.bytes).summary.delays == [60, 10, 10, 10, 10, 10])
    }

    /// Nothing is shown in an empty edit, so that the picture before stays (ISO/IEC 14496-12 §8.6.6). Pictures that are decoded before
    /// a second edit do not delay it.
    @Test(
        arguments: ["-bf 0", "-bf 2"],
        [
            ([(300, 0), (300, 3)], [10, 10, 10, 10, 10, 10]), ([(200, 0), (200, -1), (200, 4)], [10, 30, 10, 10]),
            ([(300, 0), (300, -1)], [10, 10, 10]), ([(500, -1), (300, 0), (300, 3)], [60, 10, 10, 10, 10, 10]),
            ([(200, 1), (50, 4)], [10, 10, 5]),
        ] as [([(Int, Int)], [Int])])
    func severalEditsShowTheirParts(_ arguments: String, _ edits: ([(Int, Int)], [Int])) throws {
        let clip = try Self.clip("-c:v libx264 -pix_fmt yuv420p -g 50 -video_track_timescale 10000 " + arguments)
        let whole = try Animation.compose(clip).canvases
        let delay = arguments == "-bf 2" ? 2000 : 0
        let list = edits.0.flatMap { [$0.0, $0.1 < 0 ? -1 : 1000 * $0.1 + delay, 0x1_0000] }
        let patch = BoxPatch(clip).renaming("elst", "free").appending(
            "elst", ([0, edits.0.count] + list).flatMap(Self.number), in: ["moov", "trak", "edts"])
        let composed = try Animation.compose(patch.bytes)
        let shown = edits.0.filter { $0.1 >= 0 }.flatMap { whole[$0.1..<$0.1 + ($0.0 + 99) / 100] }
        let isSame = composed.canvases == shown
        #expect(isSame && composed.summary.delays == edits.1 && composed.summary.ending == .complete)
    }

    /// A segment of HLS or DASH has the time of the stream, after a header with the edits of the whole stream.
    @Test(arguments: [0, 600_000]) func anEmptyEditCountsFromWhereTheFragmentsBegin(_ begin: Int) throws {
        let clip = try Self.clip(
            "-c:v libx264 -pix_fmt yuv420p -bf 0 -g 6 -video_track_timescale 1000 "
                + "-movflags frag_keyframe+empty_moov+default_base_moof")
        let edits = [0, 2, 500, -1, 0x1_0000, 0, 0, 0x1_0000].flatMap(Self.number)
        // The low half of a 64-bit time.
        let patch = BoxPatch(clip).appending("edts", Self.box("elst", edits), in: ["moov", "trak"])
            .writing(Self.number(begin), at: 12, of: "tfdt")
        try #require(patch.positions("tfdt").count == 1)
        let summary = try Animation.compose(patch.bytes).summary
        #expect(summary.delays == [60, 10, 10, 10, 10, 10] && summary.ending == .complete)
    }

    /// The headers state the duration of all pictures, of which two edits show a half.
    @Test func hiddenPicturesDoNotLengthenTheLast() throws {
        let clip = try Self.clip(
            "-c:v libx264 -pix_fmt yuv420p -g 50 -bf 2 -video_track_timescale 10000", inputs: ["testsrc2=s=96x64:r=10:d=2"])
        let edits = [0, 2, 500, 2000, 0x1_0000, 500, 12_000, 0x1_0000].flatMap(Self.number)
        let patch = BoxPatch(clip).renaming("elst", "free").appending("elst", edits, in: ["moov", "trak", "edts"])
        let summary = try Animation.compose(patch.bytes).summary
        #expect(summary.delays.count == 10 && summary.delays.last == 10)
    }
}
