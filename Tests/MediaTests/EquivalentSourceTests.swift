import TestSupport
import Testing

@testable import Media

/// A GIF, and the same animation as APNG and as WebP without loss, whose frames are whole pictures.
struct EquivalentSources {
    let gif: [UInt8]
    let apng: [UInt8]
    let webp: [UInt8]

    init(_ gif: [UInt8]) throws {
        let composed = try Animation.compose(gif)
        let (width, height) = (composed.summary.width, composed.summary.height)
        var apng = APNGBuilder(width: width, height: height)
        var webp = WebPBuilder(width: width, height: height)
        for (words, coded) in zip(composed.canvases, composed.summary.delays) {
            let delay = FrameClock.shownDelay(coded)
            apng.add(APNGBuilder.Frame(width: width, height: height, words: words)) { $0.delay = (delay, 100) }
            webp.add(WebPBuilder.Frame(width: width, height: height, words: words)) {
                ($0.delay, $0.blends) = (delay * 10, false)
            }
        }
        self.gif = gif
        self.apng = apng.finish()
        self.webp = webp.finish()
    }

    /// Expects that all three have the same pictures, and become MP4s with the same samples at the same times.
    ///
    /// - Parameter tolerance: Of the decoded samples, as a mean over the components of a picture.
    func expectEqualVideos(_ name: String, tolerance: Double = 0) throws {
        let shown = try ShownPictures(gif)
        let video = try Converted(gif)
        let pictures = try video.frames()
        for (source, kind) in [(apng, SourceFormat.apng), (webp, .webp)] {
            #expect(try ShownPictures(source) == shown, "\(kind) of \(name)")
            let other = try Converted(source)
            #expect(other.result.sourceFormat == kind)
            #expect(times(other, comparedWith: video) == times(video, comparedWith: other), "\(kind) of \(name)")
            let others = try other.frames()
            try #require(others.count == pictures.count, "\(kind) of \(name)")
            let difference = zip(others, pictures).map(meanDifference).max()
            #expect(try #require(difference) <= tolerance, "\(kind) of \(name)")
        }
    }

    /// The starts of the samples and the end of the last one, in units that both videos have.
    private func times(_ video: Converted, comparedWith other: Converted) -> [Int] {
        (video.boxes.samples.map(\.time) + [video.boxes.duration]).map { $0 * other.boxes.timescale }
    }

    private func meanDifference(_ one: [UInt8], _ other: [UInt8]) -> Double {
        if one == other { return 0 }
        var sum = 0
        for (a, b) in zip(one, other) { sum += abs(Int(a) - Int(b)) }
        return Double(sum) / Double(one.count)
    }
}

@Suite("A GIF, an APNG and a WebP of the same animation become the same MP4", .timeLimit(.minutes(10)))
struct EquivalentSourceTests {
    @Test func everyFeatureOfAGIFIsKept() throws {
        for (name, gif) in ShownPictures.matrix() { try EquivalentSources(gif).expectEqualVideos(name) }
    }

    @Test(arguments: 1...4, [false, true]) func randomPicturesAndDelaysAreKept(_ seed: UInt64, _ isTransparent: Bool) throws {
        let gif = Self.random(seed, isTransparent: isTransparent)
        try EquivalentSources(gif).expectEqualVideos("\(seed), \(isTransparent)")
    }

    /// Pictures of 256 random colours each. Transparent ones have holes.
    private static func random(_ seed: UInt64, isTransparent: Bool) -> [UInt8] {
        var numbers = SeededNumbers(seed: seed)
        let (width, height) = (Int.random(in: 1...50, using: &numbers), Int.random(in: 1...50, using: &numbers))
        var builder = GIFBuilder(width: width, height: height)
        for _ in 0..<Int.random(in: 2...8, using: &numbers) {
            let palette = (0..<256).map { _ in
                let color = UInt32.random(in: 0...0xff_ffff, using: &numbers)
                return (red: UInt8(color >> 16), green: UInt8(color >> 8 & 255), blue: UInt8(color & 255))
            }
            // Runs of equal pixels, so that a transparent colour makes areas.
            var color: UInt8 = 0
            let pixels = (0..<width * height).map { _ in
                if Int.random(in: 0..<5, using: &numbers) == 0 { color = UInt8.random(in: 0...255, using: &numbers) }
                return isTransparent && color < 80 ? 0 : color
            }
            builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels), localPalette: palette) {
                $0.minimumCodeSize = 8
                $0.delay = Int.random(in: 0...30, using: &numbers)
                $0.disposal = Int.random(in: 1...3, using: &numbers)
                $0.transparent = isTransparent ? 0 : nil
            }
        }
        return builder.finish()
    }
}
