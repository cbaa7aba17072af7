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
            { $0.maxBytes = 100_000 },
            { $0.codec = .av1 },
        ]
        for change in changes {
            var options = TranscodeOptions()
            change(&options)
            #expect(try !Self.isCopied(clip, Transcoder(options: options)))
        }
        #expect(try !Self.isCopied(Array(clip.dropLast(500))))
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
}
