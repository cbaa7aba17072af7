import Fleet
import Testing

@testable import Prewarm

@Suite("Sums over outcomes") struct PrewarmTotalsTests {
    @Test func totalsAddWhatIsInTheCacheAndWhatItSaves() {
        var totals = PrewarmTotals()
        let failed = PrewarmOutcome(code: "not_an_animation", detail: "The file is not a GIF.")
        for outcome in [
            PrewarmOutcome(kind: .new, bytes: 10, sourceBytes: 30), PrewarmOutcome(kind: .hit, bytes: 5, sourceBytes: 0),
            failed,
        ] { totals.add(outcome) }
        #expect(totals.hits == 1 && totals.new == 1 && totals.failed == 1 && totals.done == 3)
        // A rendition whose source's size is unknown saves nothing.
        #expect(totals.bytes == 15 && totals.sourceBytes == 30 && totals.saved == 20)
    }
}
