import Testing

@testable import Media

struct EncoderBudgetTests {
    @Test(
        arguments: [1, 10_000, 300_000, 600_000, 600_001, 1_400_000, 2_500_000, 2_500_001, 8_300_000],
        [(false, 24_000_000), (true, 96_000_000)])
    func whatAnEncoderHoldsStaysWithinItsAllowance(pixels: Int, content: (isDrawing: Bool, shared: Int)) {
        let budget = EncoderBudget(pixels: pixels, isDrawing: content.isDrawing)
        let held = pixels * (46 + 24 * (budget.threads - 1) + 3 * budget.lookahead)
        let allowance = pixels > 600_000 && budget.threads == 2 ? 84 : 60
        // Five frames are looked at up to 5.5 million pixels.
        #expect(held <= content.shared + allowance * pixels || budget.lookahead == 5)
    }

    @Test func aSecondThreadTakesNoLookaheadFromLargePictures() {
        #expect(EncoderBudget(pixels: 1_166_400, isDrawing: false).lookahead == 11)
    }

    @Test func lookaheadIsLongerTheSmallerTheCanvasIs() {
        for (pixels, film, drawing) in [(100_000, 25, 60), (400_000, 16, 60), (1_300_000, 10, 29), (8_300_000, 2, 2)] {
            #expect(EncoderBudget(pixels: pixels, isDrawing: false).lookahead == film)
            #expect(EncoderBudget(pixels: pixels, isDrawing: true).lookahead == drawing)
        }
    }

    @Test func theThreadsFollowFromTheSizeAlone() {
        #expect(EncoderBudget(pixels: 64 * 64, isDrawing: false).threads == 1)
        #expect(EncoderBudget(pixels: 64 * 64 + 1, isDrawing: false).threads == 2)
        #expect(EncoderBudget(pixels: 600_000, isDrawing: false).threads == 2)
        #expect(EncoderBudget(pixels: 2_500_000, isDrawing: false).threads == 2)
        #expect(EncoderBudget(pixels: 2_500_001, isDrawing: false).threads == 1)
    }
}
