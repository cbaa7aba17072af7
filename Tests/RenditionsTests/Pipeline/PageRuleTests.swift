import Testing

@testable import Renditions

@Suite("One rule decides what an image of a page becomes") struct PageRuleTests {
    private func source(
        _ width: Int, _ height: Int, frames: Int = 20, duration: Double = 1, bytes: Int = 1_000_000,
        isTransparent: Bool? = false
    ) throws -> PageRule.Source {
        let stored = """
            {"width":\(width),"height":\(height),"sourceWidth":\(width),"sourceHeight":\(height),"sourceBytes":\(bytes),
            "frames":\(frames),"duration":\(Int(duration * 100)),"timescale":100,"loopCount":0
            \(isTransparent.map { ",\"transparent\":\($0)" } ?? "")}
            """
        return PageRule.Source(try #require(RenditionFacts(stored: Array(stored.utf8))))
    }

    private func verdict(_ source: PageRule.Source, _ stored: [Rendition.Format: Int64] = [:]) -> (
        PageRule.Use, PageRule.Reason?
    ) {
        let verdict = PageRule.verdict(source) { stored[$0] }
        return (verdict.use, verdict.reason)
    }

    @Test func stillAndTinySourcesStay() throws {
        #expect(verdict(try source(1, 1)) == (.stay, .tiny))
        #expect(verdict(try source(16, 16)) == (.stay, .tiny))
        #expect(verdict(try source(600, 4)) == (.stay, .tiny))
        #expect(verdict(try source(100, 100, frames: 1)) == (.stay, .still))
        #expect(verdict(try source(17, 16)) == (.image, nil))
    }

    @Test func aRenditionSavesATenthAndTwoKilobytes() throws {
        #expect(PageRule.isWorthwhile(900_000, insteadOf: 1_000_000))
        #expect(!PageRule.isWorthwhile(900_001, insteadOf: 1_000_000))
        #expect(PageRule.isWorthwhile(952, insteadOf: 3000) && !PageRule.isWorthwhile(953, insteadOf: 3000))
        #expect(!PageRule.isWorthwhile(5000, insteadOf: 3000))
        #expect(verdict(try source(100, 100, bytes: 2047)) == (.stay, .saving))
        #expect(verdict(try source(100, 100, bytes: 3000), [.avif: 2000, .awebp: 2000]) == (.stay, .saving))
        #expect(verdict(try source(100, 100), [.avif: 20_000, .awebp: 2_000_000]) == (.image, nil))
    }

    @Test func onlyLargeOpaqueAnimationsAreVideos() throws {
        let stored: [Rendition.Format: Int64] = [.mp4: 100_000, .avif: 100_000]
        #expect(verdict(try source(1920, 1080, frames: 60, duration: 2), stored) == (.video, nil))
        #expect(verdict(try source(1920, 1080, frames: 60, duration: 2)) == (.image, nil))
        #expect(verdict(try source(1920, 1080, frames: 60, duration: 20), stored) == (.image, nil))
        #expect(verdict(try source(480, 270, frames: 60, duration: 2), stored) == (.image, nil))
        for isTransparent in [true, nil] {
            let source = try source(1920, 1080, frames: 60, duration: 2, isTransparent: isTransparent)
            #expect(verdict(source, stored) == (.image, nil))
        }
        #expect(verdict(try source(1920, 1080, frames: 60, duration: 2), [.mp4: 990_000]) == (.image, nil))
    }
}
