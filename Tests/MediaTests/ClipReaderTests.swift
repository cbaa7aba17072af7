import Foundation
import TestSupport
import Testing

@testable import Media

@Suite("Clips of video are read as players show them") struct ClipReaderTests {
    /// A clip that ffmpeg makes of a moving test picture.
    struct Made: Sendable, CustomTestStringConvertible {
        let name: String
        let fileExtension: String
        let arguments: [String]
        var rate = "25"
        var matrix: String? = "170m"

        init(_ name: String, _ fileExtension: String, _ arguments: String, rate: String = "25", matrix: String? = "170m") {
            self.name = name
            self.fileExtension = fileExtension
            self.arguments = arguments.split(separator: " ").map(String.init)
            self.rate = rate
            self.matrix = matrix
        }

        var testDescription: String { name }

        func bytes(seconds: String = "0.6", _ more: [String] = []) throws -> [UInt8] {
            try FFmpeg.make(
                ["-f", "lavfi", "-i", "testsrc2=s=96x64:r=\(rate):d=\(seconds)"] + arguments + more, fileExtension)
        }
    }

    private static let h264 = Made("H.264", "mp4", "-c:v libx264 -pix_fmt yuv420p")
    private static let made = [
        h264,
        Made("H.264, 29.97 Hz", "mp4", "-c:v libx264 -pix_fmt yuv420p", rate: "30000/1001"),
        Made("H.264, 120 Hz", "mp4", "-c:v libx264 -pix_fmt yuv420p", rate: "120"),
        Made("H.264, 8 B pictures", "mp4", "-c:v libx264 -pix_fmt yuv420p -bf 8 -b_strategy 0"),
        Made("H.264, fragments", "mp4", "-c:v libx264 -pix_fmt yuv420p -movflags frag_keyframe+empty_moov -g 8"),
        Made("H.264, no edit list", "mp4", "-c:v libx264 -pix_fmt yuv420p -use_editlist 0"),
        Made("H.264 in QuickTime", "mov", "-c:v libx264 -pix_fmt yuv420p"),
        Made("H.264 in Matroska", "mkv", "-c:v libx264 -pix_fmt yuv420p"),
        Made("H.264, 4:2:2", "mp4", "-c:v libx264 -pix_fmt yuv422p"),
        Made("H.264, 4:4:4", "mp4", "-c:v libx264 -pix_fmt yuv444p"),
        Made("H.264, 10 bits", "mp4", "-c:v libx264 -pix_fmt yuv420p10le"),
        Made("H.264, grey", "mp4", "-c:v libx264 -pix_fmt gray"),
        Made("H.264, odd sides", "mp4", "-c:v libx264 -pix_fmt yuv444p -vf crop=95:63:0:0:exact=1"),
        Made(
            "H.264, BT.709", "mp4",
            "-c:v libx264 -vf scale=out_color_matrix=bt709:out_range=tv,format=yuv420p -colorspace bt709 -color_range tv",
            matrix: nil),
        Made(
            "H.264, full range", "mp4",
            "-c:v libx264 -vf scale=out_color_matrix=bt709:out_range=pc,format=yuvj420p -colorspace bt709 -color_range pc",
            matrix: nil),
        Made("H.264, fields", "mp4", "-c:v libx264 -pix_fmt yuv420p -flags +ildct+ilme -x264opts tff=1"),
        Made("HEVC", "mp4", "-c:v libx265 -x265-params log-level=none -pix_fmt yuv420p -tag:v hvc1"),
        Made("HEVC, 10 bits", "mp4", "-c:v libx265 -x265-params log-level=none -pix_fmt yuv420p10le -tag:v hvc1"),
        Made("VP8", "webm", "-c:v libvpx -b:v 500k -auto-alt-ref 1 -lag-in-frames 10"),
        Made("VP9", "webm", "-c:v libvpx-vp9 -b:v 500k"),
        Made("VP9, 4:4:4", "webm", "-c:v libvpx-vp9 -b:v 500k -pix_fmt yuv444p"),
        Made("VP9 in MP4", "mp4", "-c:v libvpx-vp9 -b:v 500k"),
        Made("AV1", "mp4", "-c:v libaom-av1 -cpu-used 8 -b:v 300k"),
        Made("AV1 in WebM", "webm", "-c:v libaom-av1 -cpu-used 8 -b:v 300k"),
    ]

    /// The largest difference of two pictures' components.
    private func difference(_ one: [UInt32], _ other: [UInt32]) -> Int {
        guard one.count == other.count else { return 256 }
        return zip(one, other).reduce(0) { worst, pair in
            [0, 8, 16, 24].reduce(worst) { max($0, abs(Int(pair.0 >> $1 & 255) - Int(pair.1 >> $1 & 255))) }
        }
    }

    @Test(arguments: made) func picturesAndTimesAreThoseOfFFmpeg(_ made: Made) throws {
        let clip = try made.bytes()
        let composed = try Animation.compose(clip)
        let expected = try FFmpeg.clipFrames(clip, made.fileExtension, matrix: made.matrix)
        #expect(composed.canvases.count == expected.count && !expected.isEmpty)
        for (index, (canvas, picture)) in zip(composed.canvases, expected).enumerated() {
            #expect(difference(canvas, picture) <= 1, "frame \(index)")
        }
        let summary = composed.summary
        #expect(summary.ending == .complete && !summary.hasAlpha && summary.loopCount == 0)
        // Matroska has whole milliseconds.
        let parts = made.rate.split(separator: "/").compactMap { Double($0) }
        let frame = (parts.count == 2 ? parts[1] : 1) / parts[0]
        let unit = ["webm", "mkv"].contains(made.fileExtension) ? 0.001_001 : 0.000_001
        for delay in summary.delays { #expect(abs(Double(delay) / Double(summary.timescale) - frame) < unit) }
        #expect(abs(Double(summary.delays.reduce(0, +)) / Double(summary.timescale) - frame * Double(expected.count)) < unit)
    }

    @Test func videosHaveTheTimesOfTheClip() throws {
        let times = "if(lt(N,3),N*0.04,if(lt(N,6),0.12+(N-3)*0.1,0.42+(N-6)/30))"
        let clip = try Self.h264.bytes(
            seconds: "0.4",
            [
                "-vf", "settb=1/90000,setpts='\(times)/TB'", "-vsync", "vfr", "-video_track_timescale", "90000",
                "-enc_time_base", "1:90000",
                // FFmpeg 7 would end the edit list with the start of the last picture.
                "-bf", "0", "-use_editlist", "0",
            ])
        let video = try Converted(clip)
        let scale = Double(video.result.timescale)
        #expect(video.result.sourceFormat == .mp4 && video.boxes.durations.count == 10)
        let durations = video.boxes.durations.map { Double($0) / scale }
        for (duration, expected) in zip(durations, [0.04, 0.04, 0.04, 0.1, 0.1, 0.1] + Array(repeating: 1 / 30.0, count: 3)) {
            #expect(abs(duration - expected) < 0.000_02)
        }
        #expect(video.result.loopCount == 0)
    }

    /// Pictures are shown for at least a hundredth of a second by browsers, videos are not.
    @Test func shortFramesKeepTheirTimes() throws {
        let clip = try Made("", "mp4", "-c:v libx264 -pix_fmt yuv420p", rate: "120").bytes(seconds: "0.2")
        let video = try Converted(clip)
        #expect(video.boxes.durations.allSatisfy { $0 * 120 == video.result.timescale })
        let facts = try Converted(clip, as: .facts) { _ in }
        #expect(facts.result.duration * 5 == facts.result.timescale)
    }

    /// Browsers would show the pictures of such an image for a tenth of a second each.
    @Test(arguments: [OutputFormat.gif, .awebp, .avif], ["60", "120"]) func imagesOfFastClipsLastAsLongAsTheClip(
        _ format: OutputFormat, _ rate: String
    ) throws {
        let clip = try Made("", "mp4", "-c:v libx264 -pix_fmt yuv420p", rate: rate).bytes(seconds: "0.2")
        let image = try Converted(clip, as: format) { _ in }
        #expect(image.result.duration * 5 == image.result.timescale)
        let summary = try Animation.compose(image.bytes).summary
        #expect(summary.delays.allSatisfy { $0 * 1000 > 10 * summary.timescale } && summary.delays.count > 8)
        let fast = try Converted(clip, as: format) { $0.time.speed = 4000 }
        #expect(fast.result.duration * 20 == fast.result.timescale)
    }

    /// Decoding that continues with a sync sample shows the same pictures.
    @Test(arguments: [
        Made("H.264", "mp4", "-c:v libx264 -pix_fmt yuv420p -g 6 -bf 2"),
        Made("H.264, open", "mp4", "-c:v libx264 -pix_fmt yuv420p -g 6 -bf 2 -x264-params open_gop=1"),
        Made("HEVC, open", "mp4", "-c:v libx265 -x265-params log-level=none:open-gop=1:keyint=6 -pix_fmt yuv420p -tag:v hvc1"),
        Made("VP9", "webm", "-c:v libvpx-vp9 -b:v 500k -g 6"),
        Made("AV1", "mp4", "-c:v libaom-av1 -cpu-used 8 -b:v 300k -g 6"),
        Made("one", "mp4", "-c:v libx264 -pix_fmt yuv420p -bf 2"),
    ]) func skippedFramesAreNotNeeded(_ made: Made) throws {
        let clip = try made.bytes(seconds: "1.2")
        let all = try Animation.compose(clip).canvases
        for step in [2, 5, 7, 13] {
            let pictures = try clip.withUnsafeBytes { bytes in
                var reader = try ClipReader(bytes, limits: MediaLimits())
                var pictures: [Int: [UInt32]] = [:]
                for number in 0..<all.count where try reader.next() {
                    if number % step == step - 1, case .colors(let words)? = try reader.readPixels() {
                        pictures[number] = Array(words)
                    } else {
                        _ = reader.skipPixels()
                    }
                }
                return pictures
            }
            #expect(pictures.count == all.count / step)
            for (number, picture) in pictures { #expect(picture == all[number], "\(step) \(number)") }
        }
    }

    /// A clip with the matrix of a turn in its track's header (ISO/IEC 14496-12 §8.3.2).
    ///
    /// - Parameters:
    ///   - angle: Of the camera, against the clock: 90, 180 or 270 degrees.
    ///   - wide: Whether the header has times of 64 bits.
    static func turned(_ clip: [UInt8], by angle: Int, wide: Bool = false) throws -> [UInt8] {
        let name = try #require(clip.indices.first { clip[$0...].starts(with: "tkhd".utf8) })
        let (cosine, sine): (Int32, Int32) = angle == 180 ? (-1, 0) : (0, angle == 90 ? -1 : 1)
        var turned = clip
        for (index, number) in [cosine, sine, 0, -sine, cosine, 0].enumerated() {
            let fixed = UInt32(bitPattern: number << 16)
            for byte in 0..<4 {
                turned[name + (wide ? 56 : 44) + 4 * index + byte] = UInt8(fixed >> UInt32(24 - 8 * byte) & 255)
            }
        }
        return turned
    }

    @Test(arguments: [(90, true), (180, false), (270, true)]) func turnedClipsAreUpright(_ angle: Int, _ swaps: Bool) throws {
        let straight = try Self.h264.bytes(seconds: "0.1")
        let one = try #require(try Animation.compose(straight).canvases.first)
        let other = try Animation.compose(Self.turned(straight, by: angle))
        try #require(other.summary.width == (swaps ? 64 : 96) && other.summary.height == (swaps ? 96 : 64))
        let expected = (0..<other.summary.height).flatMap { y in
            (0..<other.summary.width).map { x in
                switch angle {
                case 90: one[x * 96 + 95 - y]
                case 180: one[(63 - y) * 96 + 95 - x]
                default: one[(63 - x) * 96 + y]
                }
            }
        }
        let isSame = other.canvases.first == expected
        #expect(isSame)
    }

    @Test(arguments: [("4/3", 128, 64), ("3/4", 96, 85), ("1/1", 96, 64)]) func pixelsBecomeSquare(
        _ aspect: String, _ width: Int, _ height: Int
    ) throws {
        for made in [Self.h264, Made("", "webm", "-c:v libvpx-vp9 -b:v 500k")] {
            let summary = try Animation.compose(made.bytes(seconds: "0.1", ["-vf", "setsar=\(aspect)"])).summary
            #expect(summary.width == width && summary.height == height)
        }
    }

    /// FFmpeg copies from the key picture before the time, and hides the pictures up to it by an edit list.
    @Test func editListsHidePictures() throws {
        let whole = try Self.h264.bytes(seconds: "1")
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("whole-\(UUID().uuidString).mp4")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(whole).write(to: file)
        let cut = try FFmpeg.make(["-ss", "0.32", "-i", file.path, "-c", "copy"], "mp4")
        let composed = try Animation.compose(cut)
        #expect(composed.canvases.count == 17 && composed.summary.delays == Array(repeating: 4, count: 17))
        let isSame = try composed.canvases == Array(Animation.compose(whole).canvases[8...])
        #expect(isSame)
        // They are decoded, so they count.
        #expect(error(cut, limits: MediaLimits(frames: 24)) == .tooLarge(.frames, value: 25, maximum: 24))
        #expect(error(cut, limits: MediaLimits(frames: 25)) == nil)
    }

    /// Its first pictures refer to those before the cut. Players begin with the first picture that they can decode.
    @Test(arguments: ["libx264 -x264-params ", "libx265 -tag:v hvc1 -x265-params log-level=none:"], ["0.6", "1"])
    func aClipCutOutOfAnotherBeginsWithAWholePicture(_ codec: String, _ start: String) throws {
        let whole = try Made("", "mkv", "-c:v \(codec)open-gop=1:keyint=8:min-keyint=8:bframes=3:b-adapt=0:scenecut=0")
            .bytes(seconds: "1.4")
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("whole-\(UUID().uuidString).mkv")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(whole).write(to: file)
        let cut = try FFmpeg.make(["-ss", start, "-i", file.path, "-c", "copy", "-use_editlist", "0"], "mp4")
        let composed = try Animation.compose(cut)
        let shown = try FFmpeg.clipFrames(cut, "mp4", matrix: "170m")
        #expect(composed.canvases.count == shown.count && composed.summary.ending == .complete)
        let (delays, second) = (composed.summary.delays, composed.summary.timescale)
        #expect(delays == Array(repeating: second / 25, count: shown.count))
        for (canvas, picture) in zip(composed.canvases, shown) { #expect(difference(canvas, picture) <= 1) }
    }

    @Test(arguments: ["libvpx", "libvpx-vp9"]) func alphaOfWebMIsRead(_ codec: String) throws {
        let made = Made(
            "", "webm",
            "-c:v \(codec) -b:v 500k -auto-alt-ref 0 -pix_fmt yuva420p "
                + "-vf format=yuva420p,geq=lum=p(X\\,Y):cb=p(X\\,Y):cr=p(X\\,Y):a=40+X*2")
        let clip = try made.bytes(seconds: "0.2")
        let composed = try Animation.compose(clip)
        let expected = try FFmpeg.clipFrames(clip, "webm", matrix: "170m", decoder: codec)
        #expect(composed.summary.hasAlpha && composed.canvases.count == 5 && expected.count == 5)
        for (canvas, picture) in zip(composed.canvases, expected) { #expect(difference(canvas, picture) <= 1) }
        let video = try Converted(clip, as: .webm) { _ in }
        #expect(video.result.isTransparent)
    }

    /// Alpha that is not there is not damaged: the picture is opaque.
    @Test(arguments: ["libvpx", "libvpx-vp9"]) func damagedAlphaEndsTheClip(_ codec: String) throws {
        let made = Made(
            "", "webm",
            "-c:v \(codec) -b:v 500k -auto-alt-ref 0 -pix_fmt yuva420p -vf format=yuva420p,geq=lum=p(X\\,Y):a=40+X*2")
        let clip = try made.bytes(seconds: "0.2")
        let whole = try Animation.compose(clip)
        // The number of an addition, followed by the addition.
        let places = clip.indices.dropLast(8).filter { clip[$0...].starts(with: [0xee, 0x81, 1, 0xa5]) }
        try #require(places.count == 5 && whole.canvases.count == 5)
        func damaged(_ number: Int) -> [UInt8] {
            let size = places[number] + 4
            let data = size + clip[size].leadingZeroBitCount + 1
            var file = clip
            file.replaceSubrange(data..<data + 3, with: [0xff, 0xff, 0xff])
            return file
        }
        let part = try Animation.compose(damaged(2))
        #expect(part.canvases == Array(whole.canvases.prefix(2)))
        let facts = try Converted(damaged(2), as: .facts) { _ in }.result
        #expect(facts.frames == 2 && facts.isBrokenOff)
        #expect(throws: TranscodeError.corrupt(.webm, .unreadableFrame)) { try Converted(damaged(0), as: .webp) { _ in } }
        var without = clip
        without[places[2] + 2] = 2
        let opaque = try Animation.compose(without)
        #expect(opaque.canvases.count == 5 && opaque.canvases[2].allSatisfy { $0 >> 24 == 255 })
        #expect(opaque.canvases.prefix(2) == whole.canvases.prefix(2))
    }

    /// Its third picture is hidden by the stream, but not by the container.
    @Test func aPictureThatIsNotThereIsBlackIfNoneWasReadBefore() throws {
        let made = Made("", "webm", "-c:v libvpx-vp9 -b:v 500k -g 0 -auto-alt-ref 0 -lag-in-frames 0")
        var clip = try made.bytes(seconds: "0.2")
        let keys = clip.indices.dropLast(4).filter { clip[$0...].starts(with: [0x82, 0x49, 0x83, 0x42]) }
        try #require(keys.count == 5)
        clip[keys[2]] = 0x80
        try clip.withUnsafeBytes { bytes in
            var reader = try ClipReader(bytes, limits: MediaLimits())
            for _ in 0..<3 { #expect(try reader.next()) }
            guard case .colors(let words)? = try reader.readPixels() else {
                Issue.record("no picture")
                return
            }
            #expect(words.allSatisfy { $0 == Word.black })
        }
    }

    /// Grey of 203 cd/m² is the light of white paper, and shown as half of the screen's.
    @Test(arguments: ["smpte2084", "arib-std-b67"]) func highRangesAreMappedToTheScreens(_ transfer: String) throws {
        let clip = try Made(
            "", "mp4",
            "-c:v libx265 -x265-params log-level=none -pix_fmt yuv420p10le -tag:v hvc1 -color_primaries bt2020 "
                + "-color_trc \(transfer) -colorspace bt2020nc -vf geq=lum=128:cb=128:cr=128,format=yuv420p10le,"
                // FFmpeg 7 takes them from the pictures.
                + "setparams=color_primaries=bt2020:color_trc=\(transfer):colorspace=bt2020nc"
        ).bytes(seconds: "0.1")
        let canvas = try #require(try Animation.compose(clip).canvases.first)
        let range = try #require(HighRange(primaries: 9, transfer: transfer == "smpte2084" ? 16 : 18))
        let grey = UInt32(((128.0 - 16) * 255 / 219).rounded())
        var expected: [UInt32] = [Word.black | grey * 0x01_0101]
        expected.withUnsafeMutableBufferPointer { range.convert($0) }
        #expect(difference([canvas[canvas.count / 2]], expected) <= 3)
    }

    /// A ramp of 10 bits has more levels than one of 8 bits, where the light grows by more than a level of the screen each.
    @Test(arguments: ["smpte2084", "arib-std-b67"]) func highRangesAreReadFromTenBits(_ transfer: String) throws {
        let clip = try Made(
            "", "mp4",
            "-c:v libx265 -x265-params log-level=none:lossless=1 -pix_fmt yuv420p10le -tag:v hvc1 -color_primaries bt2020 "
                + "-color_trc \(transfer) -colorspace bt2020nc -vf scale=512:16,format=yuv420p10le,"
                + "geq=lum=380+X:cb=512:cr=512,setparams=color_primaries=bt2020:color_trc=\(transfer):colorspace=bt2020nc"
        ).bytes(seconds: "0.1")
        let canvas = try #require(try Animation.compose(clip).canvases.first)
        let range = try #require(HighRange(primaries: 9, transfer: transfer == "smpte2084" ? 16 : 18, bits: 10))
        var expected = (0..<512).map { x in
            let grey = UInt32(min(1023, (Double(380 + x - 64) * 1023 / 876).rounded()))
            return grey | grey << 10 | grey << 20
        }
        expected.withUnsafeMutableBufferPointer { range.convert($0) }
        let row = Array(canvas[..<512])
        #expect(difference(row, expected) <= 1)
        let levels = row.map { $0 & 255 }
        #expect(zip(levels, levels.dropFirst()).allSatisfy { $0 <= $1 })
        // From eight bits there would be 128 at most.
        #expect(Set(levels).count > 128)
    }

    // MARK: Limits and errors

    private func error(_ clip: [UInt8], limits: MediaLimits = MediaLimits()) -> TranscodeError? {
        do {
            _ = try Converted(clip, Transcoder(limits: limits))
            return nil
        } catch {
            return error as? TranscodeError
        }
    }

    /// libav reports a lack of memory for these.
    @Test(arguments: ["stco", "stts"]) func aTableThatOnlyClaimsItsLengthIsDamage(_ name: String) throws {
        var clip = try Self.h264.bytes(seconds: "0.2")
        let table = try #require(clip.indices.first { clip[$0...].starts(with: name.utf8) })
        clip.replaceSubrange(table + 8..<table + 12, with: [0x3f, 0xff, 0xff, 0xff])
        // FFmpeg 7 reads the offsets that there are.
        let found = error(clip)
        #expect(found == .corrupt(.mp4, .header) || (found == nil && name == "stco"))
    }

    @Test func limitsAreThoseOfClips() throws {
        let clip = try Self.h264.bytes(seconds: "1")
        #expect(error(clip, limits: MediaLimits(clipDuration: 100)) == nil)
        #expect(error(clip, limits: MediaLimits(clipDuration: 99)) == .tooLarge(.clipDuration, value: 100, maximum: 99))
        #expect(error(clip, limits: MediaLimits(frames: 24)) == .tooLarge(.frames, value: 25, maximum: 24))
        #expect(error(clip, limits: MediaLimits(side: 95)) == .tooLarge(.side, value: 96, maximum: 95))
        #expect(error(clip, limits: MediaLimits(canvasPixels: 6143)) == .tooLarge(.canvasPixels, value: 6144, maximum: 6143))
        #expect(error(clip, limits: MediaLimits(formats: SourceFormats([.gif, .webm]))) == .refused(.mp4))
        #expect(error(clip, limits: MediaLimits(formats: SourceFormats([.mp4]))) == nil)
    }

    @Test func otherCodecsAndFilesWithoutVideoAreUnsupported() throws {
        let other = try Made("", "mp4", "-c:v mpeg4").bytes(seconds: "0.1")
        #expect(error(other) == .unsupported(.mp4, .codec))
        let old = try Made("", "mkv", "-c:v ffv1").bytes(seconds: "0.1")
        #expect(error(old) == .unsupported(.webm, .codec))
        let sound = try FFmpeg.make(["-f", "lavfi", "-i", "sine=d=0.1", "-c:a", "aac"], "mov")
        #expect(error(sound) == .unsupported(.mov, .video))
    }

    /// ISO/IEC 23001-7 §4.1, RFC 9559 §5.1.4.1.31: neither corrupt nor incomplete, as their samples seem without the key.
    @Test func encryptedClipsAreUnsupported() throws {
        let key = ["-encryption_scheme", "cenc-aes-ctr", "-encryption_key", "000102030405060708090a0b0c0d0e0f"]
        let encryption = key + ["-encryption_kid", "101112131415161718191a1b1c1d1e1f"]
        let movie = try Made("", "mp4", "-c:v libx264").bytes(seconds: "0.1", encryption)
        #expect(error(movie) == .unsupported(.mp4, .encryption))
        // libavformat refuses a fragment whose list of encrypted samples is too short for its claim.
        let fragments = try Made("", "mp4", "-c:v libx264 -movflags frag_keyframe+empty_moov").bytes(seconds: "0.1", encryption)
        let short = BoxPatch(fragments).writing([0, 0, 1, 0], at: 8, of: "senc")
        #expect(short.bytes != fragments && error(short.bytes) == .unsupported(.mp4, .encryption))
        // The name of the track becomes its encodings, of which one is an encryption.
        let name = "fourteen bytes"
        var web = try Made("", "webm", "-c:v libvpx").bytes(seconds: "0.1", ["-metadata:s:v", "title=\(name)"])
        let place = try #require(web.indices.first { web[$0...].starts(with: [0x53, 0x6e, 0x8e] + name.utf8) })
        #expect(error(web) == nil)
        web.replaceSubrange(
            place..<place + 17,
            with: [0x6d, 0x80, 0x8e, 0x62, 0x40, 0x8b, 0x50, 0x33, 0x81, 1, 0x50, 0x35, 0x84, 0x47, 0xe2, 0x81, 1])
        #expect(error(web) == .unsupported(.webm, .encryption))
    }

    /// Chromium takes a statement without primaries, transfer function or matrix as none.
    @Test(arguments: [
        ("libx264 -pix_fmt yuv420p", "mp4"), ("libvpx", "webm"), ("libvpx-vp9", "mp4"), ("libvpx-vp9", "webm"),
        ("libaom-av1 -cpu-used 8", "mp4"),
    ])
    func coloursThatAreStatedInPartAreThoseOfOtherClips(_ codec: String, _ fileExtension: String) throws {
        func canvases(_ statement: String) throws -> [[UInt32]] {
            let arguments = "-f lavfi -i testsrc2=s=96x64:r=10:d=0.1 -c:v \(codec) \(statement)".split(separator: " ")
            return try Animation.compose(FFmpeg.make(arguments.map(String.init), fileExtension)).canvases
        }
        let unstated = try canvases("")
        let parts = ["-color_primaries bt2020", "-color_trc smpte2084", "-color_primaries smpte432 -color_trc arib-std-b67"]
        for part in parts + (codec == "libvpx" ? ["-colorspace bt709"] : []) {
            let isSame = try canvases(part) == unstated
            #expect(isSame, "\(part)")
        }
    }

    /// Other decoders show the colours of profile 5 in green and purple. Profiles with a compatible base layer are read.
    @Test(arguments: [(5, 0, true), (10, 0, true), (20, 0, true), (8, 1, false), (8, 4, false), (10, 1, false)])
    func coloursOfDolbyVisionAloneAreUnsupported(_ profile: UInt8, _ compatible: UInt8, _ isRefused: Bool) throws {
        let clip = try Made("", "mp4", "-c:v libx265 -tag:v hvc1 -x265-params log-level=none").bytes(seconds: "0.1")
        let record = [1, 0, profile << 1, 5 << 3 | 5, compatible << 4] + [UInt8](repeating: 0, count: 19)
        let patch = BoxPatch(clip).appending(
            "dvcC", record, in: ["moov", "trak", "mdia", "minf", "stbl", "stsd", "hvc1"])
        #expect(error(patch.bytes) == (isRefused ? .unsupported(.mp4, .colors) : nil))
    }

    @Test func soundIsIgnored() throws {
        let clip = try FFmpeg.make(
            [
                "-f", "lavfi", "-i", "sine=d=1", "-f", "lavfi", "-i", "testsrc2=s=96x64:r=25:d=0.4", "-c:a", "aac", "-c:v",
                "libx264",
            ],
            "mp4")
        let video = try Converted(clip)
        #expect(video.result.duration * 10 == 4 * video.result.timescale)
        #expect(try video.stream()["codec_type"] == "video")
    }

    /// Wherever a file ends, its whole pictures are shown, or it is said to be incomplete.
    @Test(arguments: [
        Made("index in front", "mp4", "-c:v libx264 -pix_fmt yuv420p -movflags faststart"),
        Made("index at the end", "mp4", "-c:v libx264 -pix_fmt yuv420p"),
        Made("fragments", "mp4", "-c:v libx264 -pix_fmt yuv420p -movflags frag_keyframe+empty_moov -g 4"),
        Made("WebM", "webm", "-c:v libvpx-vp9 -b:v 500k -g 8"),
        Made("AV1", "mp4", "-c:v libaom-av1 -cpu-used 8 -b:v 300k -movflags faststart"),
        Made("HEVC", "mp4", "-c:v libx265 -x265-params log-level=none -pix_fmt yuv420p -tag:v hvc1 -movflags faststart"),
    ])
    func cutOffClipsHaveTheirWholePictures(_ made: Made) throws {
        let clip = try made.bytes()
        let whole = try Animation.compose(clip).canvases
        for part in 1..<20 {
            let bytes = Array(clip[..<(clip.count * part / 20)])
            do {
                let composed = try Animation.compose(bytes)
                #expect(composed.summary.ending == .brokenOff, "part \(part)")
                // Pictures that are decoded late may be missing among the last ones.
                var rest = whole[...]
                for canvas in composed.canvases {
                    let place = rest.firstIndex(of: canvas)
                    #expect(place != nil, "part \(part)")
                    rest = rest[((place ?? rest.startIndex - 1) + 1)...]
                }
                #expect(composed.canvases.count < whole.count || part == 19)
                if !composed.canvases.isEmpty { #expect(try Converted(bytes).result.isBrokenOff, "part \(part)") }
            } catch let error as TranscodeError {
                #expect(error == .incomplete(SourceFormat(clip) ?? .gif), "part \(part)")
            }
        }
    }

    /// No bytes crash the reader, or make it take more time or memory than its limits allow.
    @Test(arguments: [made[0], made[4], made[16], made[18], made[19], made[22]]) func damagedClipsAreReadOrRefused(_ made: Made)
        throws
    {
        let clip = try made.bytes(seconds: "0.2")
        var numbers = SeededNumbers(seed: 5)
        for _ in 0..<60 {
            var damaged = clip
            for _ in 0..<Int.random(in: 1...20, using: &numbers) {
                damaged[Int.random(in: 0..<damaged.count, using: &numbers)] = UInt8.random(in: 0...255, using: &numbers)
            }
            _ = error(damaged)
            // Sizes and counts of boxes.
            let place = Int.random(in: 0..<damaged.count - 4, using: &numbers)
            for index in 0..<4 { damaged[place + index] = 0xff }
            _ = error(damaged)
        }
    }
}

extension SourceFormat {
    fileprivate init?(_ bytes: [UInt8]) {
        guard let format = bytes.withUnsafeBytes({ SourceFormat(of: $0) }) else { return nil }
        self = format
    }
}

@Suite("Image sequences are read as browsers show them") struct AVIFReaderTests {
    @Test(
        arguments: [(0, 0), (nil, nil), (1, 1), (5, 5)] as [(Int?, Int?)]
    ) func timesLoopsAndAlphaSurvive(_ loop: Int?, _ expected: Int?) throws {
        let gif = WebMTests.sprite([7, 30, 2, 11, 50], loop: loop)
        let avif = try Converted(gif, as: .avif) { $0.quality = 90 }
        let composed = try Animation.compose(avif.bytes)
        let original = try Animation.compose(gif)
        #expect(SourceFormat(avif.bytes) == .avif)
        #expect(composed.summary.loopCount == expected && composed.summary.hasAlpha && composed.summary.ending == .complete)
        let unit = composed.summary.timescale / 100
        #expect(composed.summary.delays == original.summary.delays.map { $0 * unit })
        #expect(composed.canvases.count == original.canvases.count)
        for (canvas, picture) in zip(composed.canvases, original.canvases) {
            var sum = 0
            for (one, other) in zip(canvas, picture) { sum += abs(Int(one >> 24) - Int(other >> 24)) }
            // Lossy.
            #expect(sum < 12 * canvas.count)
        }
    }

    /// Such a sum would exceed 64 bits.
    @Test func aDurationNearTheLargestNumberIsAnEndlessLoop() throws {
        func box(_ type: String, _ body: [UInt8]) -> [UInt8] { [0, 0, 0, UInt8(body.count + 8)] + type.utf8 + body }
        let duration = [UInt8](repeating: 0xff, count: 7) + [0xfe]
        let header = box("tkhd", [1, 0, 0, 0] + [UInt8](repeating: 0, count: 24) + duration)
        let edit = [0, 0, 0, 1] + [0, 0, 0, 0, 0, 0, 0, 3] + [UInt8](repeating: 0, count: 12)
        let list = box("edts", box("elst", [1, 0, 0, 1] + edit))
        let count = box("moov", box("trak", header + list)).withUnsafeBytes { ISOTrack.all(in: $0).first?.loopCount }
        #expect(count == 0)
    }

    @Test func colorsAreThoseOfTheEncodedPicture() throws {
        let gif = GIFBuilder.animation(frames: 4)
        let avif = try Converted(gif, as: .avif) { $0.quality = 95 }
        let composed = try Animation.compose(avif.bytes)
        let original = try Animation.compose(gif)
        #expect(!composed.summary.hasAlpha && composed.canvases.count == original.canvases.count)
        for (canvas, picture) in zip(composed.canvases, original.canvases) {
            var sum = 0
            for (one, other) in zip(canvas, picture) { sum += abs(Int(one >> 8 & 255) - Int(other >> 8 & 255)) }
            #expect(sum < 16 * canvas.count)
        }
    }

    /// Browsers and libavif take chroma in the middle of its pixels, whatever the stream states.
    @Test(arguments: ["left", "unspecified"]) func chromaIsInterpolatedFromTheMiddle(_ siting: String) throws {
        let avif = try FFmpeg.make(
            ["-f", "lavfi", "-i", "testsrc2=s=96x64:d=0.2", "-c:v", "libaom-av1", "-cpu-used", "8", "-crf", "20"]
                + ["-pix_fmt", "yuv420p", "-chroma_sample_location", siting], "avif")
        let composed = try Animation.compose(avif)
        let expected = try FFmpeg.clipFrames(avif, "avif", matrix: "170m", siting: "center")
        #expect(composed.canvases.count == expected.count && !expected.isEmpty)
        for (canvas, picture) in zip(composed.canvases, expected) {
            let worst = zip(canvas, picture).reduce(0) { worst, words in
                [0, 8, 16].reduce(worst) { max($0, abs(Int(words.0 >> $1 & 255) - Int(words.1 >> $1 & 255))) }
            }
            #expect(worst <= 1)
        }
    }

    /// As in pictures of other formats, browsers show frames of up to ten milliseconds for a tenth of a second.
    @Test func shortDelaysAreReplaced() throws {
        let avif = try FFmpeg.make(
            ["-f", "lavfi", "-i", "testsrc2=s=64x64:r=100:d=0.03", "-c:v", "libaom-av1", "-cpu-used", "8"], "avif")
        let facts = try Converted(avif, as: .facts) { _ in }
        #expect(facts.result.duration * 10 == 3 * facts.result.timescale && facts.result.sourceFormat == .avif)
    }

    @Test func stillPicturesAreRefused() throws {
        let still = try Converted(GIFBuilder.animation(frames: 1), as: .avif) { _ in }
        #expect(throws: TranscodeError.still(.avif)) { try Converted(still.bytes) }
    }

    @Test func cutOffSequencesHaveTheirWholePictures() throws {
        let avif = try Converted(WebMTests.sprite([7, 30, 2, 11, 50]), as: .avif) { _ in }.bytes
        let whole = try Animation.compose(avif).canvases
        for part in 1..<20 {
            do {
                let composed = try Animation.compose(Array(avif[..<(avif.count * part / 20)]))
                #expect(composed.summary.ending == .brokenOff, "part \(part)")
                let isPrefix = composed.canvases == Array(whole.prefix(composed.canvases.count))
                #expect(isPrefix, "part \(part)")
            } catch let error as TranscodeError {
                #expect(error == .incomplete(.avif), "part \(part)")
            }
        }
    }
}
