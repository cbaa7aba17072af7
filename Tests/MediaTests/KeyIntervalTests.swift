import Testing

@testable import Media

@Suite("Key pictures are as far apart as a seek may cost") struct KeyIntervalTests {
    @Test func smallPicturesHaveMoreOfThem() {
        #expect(KeyInterval(pixels: 64 * 64, changedShare: 1).pictures == 9999)
        #expect(KeyInterval(pixels: 400_000, changedShare: 1).pictures == 500)
        #expect(KeyInterval(pixels: 8_300_000, changedShare: 1).pictures == 250)
    }

    @Test func whatStaysCostsLittle() {
        #expect(KeyInterval(pixels: 400_000, changedShare: 0).pictures == 4000)
        // A screen recording of 1517 × 855 pixels and 769 pictures has one key picture.
        #expect(KeyInterval(pixels: 1517 * 855, changedShare: 0.07).pictures > 769)
    }

    @Test func noNumberOverflows() {
        for pixels in [1, 1 << 32] {
            for share in [0, 1.0] {
                #expect((250...9999).contains(KeyInterval(pixels: pixels, changedShare: share).pictures))
            }
        }
    }
}
