import Foundation
@testable import Media
import Testing

/// Real files and the public suite, where they lie beside the project.
private let corpus = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("shared/corpus")

@Suite("Real GIFs are converted exactly")
struct CorpusTests {
    private static func files(_ folder: String) -> [URL] {
        let all = try? FileManager.default.contentsOfDirectory(
            at: corpus.appendingPathComponent(folder), includingPropertiesForKeys: nil)
        return (all ?? []).filter { $0.pathExtension == "gif" }
    }

    @Test(.enabled(if: !files("real").isEmpty)) func everyRealFileIsRead() throws {
        for file in Self.files("real") {
            let summary = try Composing.summary([UInt8](try Data(contentsOf: file)))
            #expect(summary.delays.count > 1, "\(file.lastPathComponent)")
        }
    }

    /// Frames of it restore more colours than a palette has.
    @Test(.enabled(if: !files("real").isEmpty)) func aSmallerGIFIsExact() throws {
        let file = try #require(Self.files("real").first { $0.lastPathComponent == "terminalizer__img-demo.gif" })
        let source = [UInt8](try Data(contentsOf: file))
        let gif = try Converted(source, as: .gif) { _ in }
        #expect(gif.bytes.count <= source.count)
        #expect(try ShownPictures(gif.bytes) == ShownPictures(source))
    }

    /// Larger ones take too long. The encoder's settings depend on the bytes of a source, so decoded samples may differ a little.
    @Test(.enabled(if: !files("real").isEmpty)) func aSmallRealFileBecomesTheSameMP4FromOtherFormats() throws {
        var count = 0
        for file in Self.files("real") {
            let gif = [UInt8](try Data(contentsOf: file))
            let summary = try Composing.summary(gif)
            if summary.width * summary.height * summary.delays.count > 50_000 { continue }
            try EquivalentSources(gif).expectEqualVideos(file.lastPathComponent, tolerance: 1)
            count += 1
        }
        #expect(count > 0)
    }

    @Test(.enabled(if: !files("pygif").isEmpty)) func everyFileOfThePublicSuiteIsReadOrRefused() throws {
        for file in Self.files("pygif") {
            do {
                _ = try Composing.frames([UInt8](try Data(contentsOf: file)))
            } catch is TranscodeError {}
        }
    }

    @Test(.enabled(if: !files("pygif").isEmpty)) func everyFrameOfThePublicSuiteIsAsItsAuthorHasIt() throws {
        let cases = try PublicSuite.cases(in: corpus.appendingPathComponent("pygif"))
        try #require(!cases.isEmpty)
        for expected in cases {
            let name = Comment(rawValue: expected.name)
            let limits = MediaLimits(side: 65535, duration: .max)
            let summary = try Composing.summary(expected.gif, limits: limits)
            var frames = Array(zip(try Composing.frames(expected.gif, limits: limits), summary.delays))
            #expect(summary.width == expected.width && summary.height == expected.height, name)
            #expect(summary.loopCount == expected.loopCount, name)
            if !expected.showsEveryImage && frames.count != expected.frames.count {
                // The suite follows GIF89a to the letter: images with no delay between them are one frame. Browsers, and
                // this project, show each.
                let last = frames.count - 1
                frames = frames.indices.filter { frames[$0].1 > 0 || $0 == last }.map { frames[$0] }
            }
            #expect(frames.count == expected.frames.count, name)
            for (frame, reference) in zip(frames, expected.frames) {
                #expect(frame.0 == reference.pixels, name)
                if let delay = reference.delay { #expect(Int(frame.1) == delay, name) }
            }
        }
    }
}
