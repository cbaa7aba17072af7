import Testing

@testable import Media

struct EncoderBudgetTests {
    @Test(arguments: [1, 10_000, 300_000, 600_000, 600_001, 1_400_000, 2_500_000, 2_500_001, 8_300_000])
    func whatAnEncoderHoldsStaysWithinItsAllowance(pixels: Int) {
        let budget = EncoderBudget(pixels: pixels)
        let held = pixels * (46 + 24 * (budget.threads - 1) + 3 * budget.lookahead)
        let allowance = pixels > 600_000 && budget.threads == 2 ? 84 : 60
        // Five frames are looked at in any case: x264 decides badly with fewer.
        #expect(held <= 24_000_000 + allowance * pixels || budget.lookahead == 5)
    }

    @Test func aSecondThreadTakesNoLookaheadFromLargePictures() {
        #expect(EncoderBudget(pixels: 1_166_400).lookahead == 11)
    }

    @Test func lookaheadIsLongerTheSmallerTheCanvasIs() {
        #expect(EncoderBudget(pixels: 100_000).lookahead == 25)
        #expect(EncoderBudget(pixels: 400_000).lookahead == 16)
        #expect(EncoderBudget(pixels: 8_300_000).lookahead == 5)
    }

    @Test func theThreadsFollowFromTheSizeAlone() {
        #expect(EncoderBudget(pixels: 64 * 64).threads == 1)
        #expect(EncoderBudget(pixels: 64 * 64 + 1).threads == 2)
        #expect(EncoderBudget(pixels: 600_000).threads == 2)
        #expect(EncoderBudget(pixels: 2_500_000).threads == 2)
        #expect(EncoderBudget(pixels: 2_500_001).threads == 1)
    }
}
