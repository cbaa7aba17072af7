import Foundation
import SystemIO
import TestSupport
import Testing

@testable import Media

@Suite("A clip that is already what would be made is copied") struct ClipCopyTests {
    private static func clip(
        _ arguments: String, _ fileExtension: String = "mp4", source: String = "testsrc2=s=96x64:r=25:d=1.2"
    ) throws -> [UInt8] {
        try FFmpeg.make(
            ["-f", "lavfi", "-i", source, "-f", "lavfi", "-i", "sine=d=1.2", "-shortest"]
                + arguments.split(separator: " ").map(String.init), fileExtension)
    }

    private static func isCopied(_ clip: [UInt8], _ transcoder: Transcoder = Transcoder()) throws -> Bool {
        Transcoder.prepareLibraries()
        return try clip.withUnsafeBytes { try ClipCopy(transcoder, $0) != nil }
    }

    @Test(arguments: [
        ("-c:v libx264 -pix_fmt yuv420p -c:a aac", "mp4"), ("-c:v libx264 -pix_fmt yuv420p -bf 8 -b_strategy 0 -refs 5", "mp4"),
        ("-c:v libx264 -pix_fmt yuv420p -profile:v baseline", "mp4"), ("-c:v libx264 -pix_fmt yuv420p -g 7 -bf 0", "mp4"),
        ("-c:v libx264 -pix_fmt yuv420p -use_editlist 0", "mov"),
        ("-c:v libx264 -pix_fmt yuv420p -r 30000/1001 -c:a aac", "mov"),
        ("-c:v libx264 -pix_fmt yuv420p -movflags frag_keyframe+empty_moov -g 8 -c:a aac", "mp4"),
    ])
    func itsPicturesAreThoseOfTheClip(_ arguments: String, _ fileExtension: String) throws {
        let clip = try Self.clip(arguments, fileExtension)
        #expect(try Self.isCopied(clip))
        let copy = try Converted(clip)
        let pictures = try FFmpeg.clipFrames(clip, fileExtension, matrix: "170m")
        let isSame = try FFmpeg.clipFrames(copy.bytes, "mp4", matrix: "170m") == pictures
        #expect(isSame && !pictures.isEmpty)
        let result = copy.result
        #expect(result.frames == pictures.count && result.samples == pictures.count && result.bytes == copy.bytes.count)
        #expect(copy.boxes.durations.count == pictures.count && copy.boxes.durations.reduce(0, +) == result.duration)
        // The index comes first, and there is one track.
        let file = String(decoding: copy.bytes, as: UTF8.self)
        #expect(try #require(file.range(of: "moov")).lowerBound < #require(file.range(of: "mdat")).lowerBound)
        #expect(file.components(separatedBy: "trak").count == 2 && !file.contains("mp4a"))
        #expect(try inspectionFlaw(copy.bytes, OutputClaim(Transcoder(), result)) == nil)
    }

    @Test(arguments: [
        ("-c:v libx264 -pix_fmt yuv422p", "mp4"), ("-c:v libx264 -pix_fmt yuv420p10le", "mp4"),
        ("-c:v libx264 -pix_fmt yuvj420p -color_range pc", "mp4"), ("-c:v libx264 -pix_fmt yuv420p -colorspace bt470bg", "mp4"),
        ("-c:v libx264 -pix_fmt yuv420p -flags +ildct+ilme -x264opts tff=1", "mp4"),
        ("-c:v libx264 -pix_fmt yuv420p -aspect 2:1", "mp4"), ("-c:v libx264 -pix_fmt yuv420p", "mkv"),
        ("-c:v libx264 -pix_fmt yuv420p -x264opts transfer=smpte2084", "mp4"),
        ("-c:v libx265 -x265-params log-level=none -pix_fmt yuv420p -tag:v hvc1", "mp4"),
    ])
    func otherClipsAreEncoded(_ arguments: String, _ fileExtension: String) throws {
        let clip = try Self.clip(arguments, fileExtension)
        #expect(try !Self.isCopied(clip))
        let video = try Converted(clip)
        #expect(video.boxes.durations.reduce(0, +) == video.result.duration && video.result.frames > 20)
    }

    @Test func optionsTurnsAndDamageNeedAnEncoder() throws {
        let clip = try Self.clip("-c:v libx264 -pix_fmt yuv420p -g 10 -movflags faststart")
        let changes: [(inout TranscodeOptions) -> Void] = [
            { $0.size.width = 48 }, { $0.quality = 61 }, { $0.time.speed = 2000 }, { $0.time.loops = 2 },
            { $0.maxBytes = 1000 }, { $0.codec = .av1 },
        ]
        for change in changes {
            var options = TranscodeOptions()
            change(&options)
            #expect(try !Self.isCopied(clip, Transcoder(options: options)))
        }
        var generous = TranscodeOptions()
        generous.maxBytes = 100_000
        #expect(try Self.isCopied(clip, Transcoder(options: generous)))
        #expect(try !Self.isCopied(Array(clip.prefix(clip.count / 2))))
        #expect(try !Self.isCopied(GIFBuilder.animation(frames: 2, width: 8, height: 8)))
        #expect(try !Self.isCopied(ClipReaderTests.turned(clip, by: 90)))
    }

    /// A cut without encoding begins at a key picture, and an edit list hides what comes before.
    @Test func aClipWhoseBeginningIsHiddenShowsWhatPlayersShow() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("whole-\(UUID().uuidString).mp4")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(Self.clip("-c:v libx264 -pix_fmt yuv420p -g 10")).write(to: file)
        let cut = try FFmpeg.make(["-ss", "0.5", "-i", file.path, "-c", "copy"], "mp4")
        let video = try Converted(cut)
        let shown = try FFmpeg.clipFrames(cut, "mp4", matrix: "170m")
        #expect(video.result.frames == shown.count && video.boxes.durations.reduce(0, +) == video.result.duration)
    }

    private static func stream(_ arguments: String, _ copy: String) throws -> [UInt8] {
        let raw = try FFmpeg.make(
            ["-f", "lavfi", "-i", "testsrc2=s=96x64:r=25:d=0.8", "-c:v", "libx264", "-pix_fmt", "yuv420p"]
                + arguments.split(separator: " ").map(String.init), "h264")
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("raw-\(UUID().uuidString).h264")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(raw).write(to: file)
        return try FFmpeg.make(
            ["-r", "25", "-i", file.path, "-c", "copy"] + copy.split(separator: " ").map(String.init), "mp4")
    }

    /// The sets of a track are in its sample entry (`avc1`, ISO/IEC 14496-15 §5.4.2). Others could replace them for players and not for us.
    @Test func parameterSetsInSamplesNeedAnEncoder() throws {
        let inBand = try Self.stream("-g 7 -bf 0 -x264opts repeat-headers=1", "")
        let allowed = try Self.stream("-g 7 -bf 0", "-tag:v avc3")
        let plain = try Self.clip("-c:v libx264 -pix_fmt yuv420p -an")
        let two = BoxPatch(plain).insertingCopy(of: "avc1", in: ["moov", "trak", "mdia", "minf", "stbl", "stsd"]).bytes
        #expect(try Self.isCopied(plain))
        for clip in [inBand, allowed, two] {
            #expect(try !Self.isCopied(clip))
            let video = try Converted(clip)
            #expect(try FFmpeg.clipFrames(video.bytes, "mp4", matrix: "170m").count == video.result.frames)
            #expect(video.result.frames == Int(try Animation.compose(clip).canvases.count))
        }
    }

    /// Cameras write the place and the time there, x264 its settings.
    @Test(arguments: ["", "-bf 0 -x264opts nal-hrd=vbr:vbv-maxrate=500:vbv-bufsize=500"]) func userDataDoesNotTravel(
        _ more: String
    ) throws {
        let clip = try Self.clip("-c:v libx264 -pix_fmt yuv420p -g 10 " + more)
        let name = Array("x264 - core".utf8)
        func has(_ bytes: [UInt8]) -> Bool { bytes.indices.contains { bytes[$0...].starts(with: name) } }
        #expect(try has(clip) && Self.isCopied(clip))
        let copy = try Converted(clip)
        #expect(!has(copy.bytes))
        let isSame = try FFmpeg.clipFrames(copy.bytes, "mp4", matrix: "170m") == FFmpeg.clipFrames(clip, "mp4", matrix: "170m")
        #expect(isSame)
    }

    @Test func messagesForPlayersStay() throws {
        func sample(_ units: [[UInt8]]) -> [UInt8] { units.flatMap { [0, UInt8($0.count)] + $0 } }
        // A recovery point, user data with an emulation prevention byte, and a picture.
        let point: [UInt8] = [6, 1, 0x84]
        let place: [UInt8] = [5, 5, 0, 0, 3, 1, 9, 7]
        let picture: [UInt8] = [0x65, 1, 2, 3]
        let units = AVCUnits(lengthSize: 2)
        func kept(_ bytes: [UInt8]) -> [UInt8] {
            var bytes = bytes
            let count = bytes.withUnsafeMutableBufferPointer { units.removeUserData($0) }
            return Array(bytes.prefix(count))
        }
        #expect(kept(sample([[6] + point + place + [0x80], picture])) == sample([[6] + point + [0x80], picture]))
        #expect(kept(sample([[6] + place + [0x80], picture])) == sample([picture]))
        #expect(kept(sample([[6] + point + [0x80], picture])) == sample([[6] + point + [0x80], picture]))
        #expect(kept([0, 9, 1]) == [0, 9, 1])
        var broken: [UInt8] = [0, 4] + picture + [0]
        let (whole, sets) = broken.withUnsafeMutableBufferPointer { bytes in
            (
                units.isWhole(UnsafeMutableBufferPointer(rebasing: bytes[..<6]), isFirst: true),
                units.isWhole(bytes, isFirst: true)
            )
        }
        #expect(whole && !sets)
    }
}
