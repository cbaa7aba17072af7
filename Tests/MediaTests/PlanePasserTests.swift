import TestSupport
import Testing

@testable import Media

@Suite("Clips that are already 4:2:0 of BT.709 keep their planes") struct PlanePasserTests {
    private static let colors = "-colorspace bt709 -color_range tv -color_primaries bt709 -color_trc bt709"

    /// A clip of a moving picture whose size is not a multiple of 16.
    private func clip(_ arguments: String, _ fileExtension: String = "mp4", size: String = "98x62") throws -> [UInt8] {
        let crop = "crop=\(size.replacing("x", with: ":")):0:0:exact=1"
        return try FFmpeg.make(
            ["-f", "lavfi", "-i", "testsrc2=s=98x62:r=10:d=1"]
                + ["-vf", "scale=out_color_matrix=bt709:out_range=tv,format=yuv444p,\(crop),format=yuv420p"]
                + (arguments + " " + Self.colors).split(separator: " ").map(String.init), fileExtension)
    }

    /// The planes of all samples, each of the size of the source's planes.
    private func samples(
        _ clip: [UInt8], _ pace: Timeline.Pace = .video, _ change: (inout TranscodeOptions) -> Void = { _ in }
    ) throws -> (planes: [UInt8], siting: FramePlanes.Siting, width: Int, height: Int) {
        var options = TranscodeOptions()
        change(&options)
        return try clip.withUnsafeBytes { bytes in
            let source = try SampleSource(ScannedSource<ClipReader>(Transcoder(options: options), bytes), pace)
            let luma = try SamplePlane(width: source.width, height: source.height)
            let cb = try SamplePlane(width: source.width / 2, height: source.height / 2)
            let cr = try SamplePlane(width: source.width / 2, height: source.height / 2)
            let target = FramePlanes(
                luma: luma.samples, cb: cb.samples, cr: cr.samples, lumaStride: luma.stride, cbStride: cb.stride,
                crStride: cr.stride)
            var planes: [UInt8] = []
            func add(_ plane: borrowing SamplePlane) {
                for y in 0..<plane.height { planes += UnsafeBufferPointer(start: plane.row(y), count: plane.width) }
            }
            while try source.next(into: { () throws(TranscodeError) in target }) != nil {
                add(luma)
                add(cb)
                add(cr)
            }
            return (planes, source.siting, source.width, source.height)
        }
    }

    @Test(arguments: [
        ("-c:v libx264 -bf 3", "mp4"), ("-c:v libx265 -x265-params log-level=none -tag:v hvc1", "mp4"),
        ("-c:v libvpx-vp9 -b:v 500k", "webm"), ("-c:v libaom-av1 -cpu-used 8 -b:v 300k", "mp4"),
    ]) func samplesAreThoseOfTheDecoder(_ arguments: String, _ fileExtension: String) throws {
        let clip = try clip(arguments, fileExtension)
        let (planes, siting, width, height) = try samples(clip)
        #expect(siting == .left && width == 98 && height == 62)
        #expect(planes == (try FFmpeg.clipPlanes(clip, fileExtension)))
    }

    private func meanDifference(_ one: [UInt8], _ other: [UInt8]) -> Double {
        guard one.count == other.count else { return 256 }
        return Double(zip(one, other).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }) / Double(max(1, one.count))
    }

    /// Scaled planes are those of scaled pixels, with chroma in the middle.
    @Test(arguments: [(40, nil), (33, nil), (31, 20), (97, nil), (7, 4)] as [(Int, Int?)])
    func scaledPlanesAreThoseOfScaledPixels(
        _ width: Int, _ height: Int?
    ) throws {
        let clip = try clip("-c:v libx264")
        let size = SizeOptions(width: width, height: height, fit: .fill)
        let passed = try samples(clip) { $0.size = size }
        #expect(passed.siting == .center)
        // A pixel format that is not passed on: the same pictures with twice the columns of chroma.
        let words = try FFmpeg.clipFrames(clip, "mp4", matrix: nil)
        var builder = WebPBuilder(width: 98, height: 62, hasAlpha: false)
        for picture in words { builder.add(WebPBuilder.Frame(width: 98, height: 62, words: picture)) }
        let webp = builder.finish()
        let expected = try webp.withUnsafeBytes { bytes in
            let transcoder = Transcoder(options: TranscodeOptions(size: size))
            let source = try SampleSource(ScannedSource<WebPReader>(transcoder, bytes))
            let luma = try SamplePlane(width: source.width, height: source.height)
            let cb = try SamplePlane(width: source.width / 2, height: source.height / 2)
            let cr = try SamplePlane(width: source.width / 2, height: source.height / 2)
            let target = FramePlanes(
                luma: luma.samples, cb: cb.samples, cr: cr.samples, lumaStride: luma.stride, cbStride: cb.stride,
                crStride: cr.stride)
            var planes: [UInt8] = []
            while try source.next(into: { () throws(TranscodeError) in target }) != nil {
                for y in 0..<luma.height { planes += UnsafeBufferPointer(start: luma.row(y), count: luma.width) }
                for y in 0..<cb.height { planes += UnsafeBufferPointer(start: cb.row(y), count: cb.width) }
                for y in 0..<cr.height { planes += UnsafeBufferPointer(start: cr.row(y), count: cr.width) }
            }
            return planes
        }
        #expect(meanDifference(passed.planes, expected) < 1.6, "\(meanDifference(passed.planes, expected))")
    }

    @Test func aCropAtEvenPixelsKeepsThem() throws {
        let clip = try clip("-c:v libx264")
        let whole = try FFmpeg.clipPlanes(clip, "mp4")
        let crop = try samples(clip) { $0.size = SizeOptions(width: 62, height: 62, fit: .cover, gravity: Gravity(x: 0, y: 0)) }
        #expect(crop.width == 62 && crop.siting == .left)
        for y in 0..<62 { #expect(crop.planes[y * 62..<y * 62 + 62] == whole[y * 98..<y * 98 + 62]) }
        let chroma = 98 * 62
        for y in 0..<31 {
            #expect(crop.planes[62 * 62 + y * 31..<62 * 62 + y * 31 + 31] == whole[chroma + y * 49..<chroma + y * 49 + 31])
        }
    }

    /// An odd side is extended by a copy of its edge.
    @Test func oddSidesAreExtended() throws {
        let clip = try clip("-c:v libvpx-vp9 -b:v 500k", "webm", size: "97x61")
        let (planes, _, width, height) = try samples(clip)
        let whole = try FFmpeg.clipPlanes(clip, "webm")
        #expect(width == 98 && height == 62)
        for y in 0..<62 {
            let row = whole[min(y, 60) * 97..<min(y, 60) * 97 + 97]
            #expect(Array(planes[y * 98..<y * 98 + 98]) == Array(row) + [row.last ?? 0])
        }
        #expect(planes[98 * 62..<98 * 62 + 2 * 49 * 31] == whole[97 * 61..<97 * 61 + 2 * 49 * 31])
    }

    /// Chroma at the left would be half a pixel off in an image, and so would be that of turned pictures.
    @Test func whatNeedsPixelsIsComposedOfThem() throws {
        let clip = try clip("-c:v libx264")
        let options: [(inout TranscodeOptions) -> Void] = [
            { $0.zoom = 2 }, { $0.size = SizeOptions(width: 120, height: 80, fit: .pad) }, { $0.undither = .always },
        ]
        for change in options { #expect(try samples(clip, .video, change).siting == .center) }
        #expect(try samples(clip, .image(timescale: nil)).siting == .center)
        #expect(try samples(ClipReaderTests.turned(clip, by: 90)).siting == .center)
        let full = try FFmpeg.make(
            [
                "-f", "lavfi", "-i", "testsrc2=s=96x64:r=10:d=0.3", "-vf",
                "scale=out_range=pc:out_color_matrix=bt709,format=yuvj420p",
            ]
                + ["-c:v", "libx264", "-colorspace", "bt709", "-color_range", "pc"], "mp4")
        #expect(try samples(full).siting == .center)
    }

    /// Files state where their chroma lies.
    @Test func filesStateTheSiting() throws {
        let clip = try clip("-c:v libx264 -g 4")
        let mp4 = try Converted(clip) { $0.quality = 55 }
        #expect(try mp4.stream()["chroma_location"] == "left")
        let webm = try Converted(clip, as: .webm) { $0.chroma = .subsampled }
        #expect(try webm.stream()["chroma_location"] == "left")
        var transcoder = Transcoder(output: .webm)
        transcoder.options.chroma = .subsampled
        let claim = OutputClaim(transcoder, webm.result)
        #expect(try inspectionFlaw(webm.bytes, claim) == nil)
        let scaled = try Converted(clip) { $0.size.width = 48 }
        #expect(try scaled.stream()["chroma_location"] == "center")
    }

    /// A stream that changes its size has its later pictures converted.
    @Test func aChangeOfSizeIsConverted() throws {
        let parts = try ["96x64", "64x48"].map { size in
            try FFmpeg.make(
                ["-f", "lavfi", "-i", "testsrc2=s=\(size):r=10:d=0.5", "-vf", "scale=out_color_matrix=bt709:out_range=tv"]
                    + ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-bf", "0"]
                    + Self.colors.split(separator: " ").map(String.init), "h264")
        }
        let joined = try FFmpeg.wrap(parts[0] + parts[1], "h264", into: "mkv")
        let (planes, siting, width, height) = try samples(joined)
        let size = width * height * 3 / 2
        #expect(siting == .left && width == 96 && height == 64 && planes.count == 10 * size)
        // The same test picture, smaller: the mean brightness is about the same.
        func mean(_ frame: Int) -> Int { planes[frame * size..<frame * size + 96 * 64].reduce(0) { $0 + Int($1) } / (96 * 64) }
        #expect(abs(mean(0) - mean(5)) < 20)
    }
}
