import Cluster
import Testing

@testable import Prewarm

@Suite("A prewarm job counts its entries") struct PrewarmJobTests {
    private func order(_ count: Int, concurrency: Int = 10) -> PrewarmJob.Order {
        PrewarmJob.Order(
            id: String(repeating: "a", count: 32), entries: (0..<count).map { PrewarmEntry(url: "https://a.test/\($0).gif") },
            retries: 2, concurrency: concurrency)
    }

    private let new = PrewarmOutcome(kind: .new, bytes: 10, sourceBytes: 30)
    private let hit = PrewarmOutcome(kind: .hit, bytes: 5, sourceBytes: 0)
    private let failed = PrewarmOutcome(PrewarmFailure(code: "not_an_animation", detail: "The file is not a GIF."))

    @Test func entriesAreTakenInTheOrderOfTheListUpToTheConcurrencyOfTheJob() {
        let job = PrewarmJob(order(4, concurrency: 2))
        #expect(job.progress.state == .waiting && job.remaining == 4)
        #expect([job.take(), job.take(), job.take()] == [0, 1, nil])
        #expect(job.progress.state == .running && job.remaining == 4)
        job.finish(1, new)
        #expect([job.take(), job.take()] == [2, nil] && job.remaining == 3)
    }

    @Test func aJobIsDoneWhenItsLastEntryIsFinished() {
        let job = PrewarmJob(order(2))
        #expect([job.take(), job.take()] == [0, 1])
        job.finish(1, failed)
        #expect(job.progress.state == .running && !job.isOver)
        job.finish(0, new)
        #expect(job.progress.state == .done && job.isOver && job.remaining == 0)
        #expect(job.progress.outcomes.map(\.number) == [1, 0])
        #expect(job.progress.totals.done == 2 && job.progress.totals.failed == 1)
    }

    @Test func anEntryThatWasInterruptedIsPendingAgain() {
        let job = PrewarmJob(order(2))
        #expect([job.take(), job.take()] == [0, 1])
        job.finish(0, nil)
        #expect(job.remaining == 2 && job.progress.totals.done == 0)
        #expect(job.take() == 0)
    }

    @Test func aCancelledJobDropsPendingEntriesAndFinishesThoseInProgress() {
        let job = PrewarmJob(order(3))
        #expect(job.take() == 0)
        job.cancel()
        #expect(job.take() == nil && job.remaining == 1 && !job.isOver)
        job.finish(0, new)
        #expect(job.progress.state == .cancelled && job.isOver && job.progress.totals.done == 1)
    }

    @Test func anInterruptedEntryOfACancelledJobIsNotPending() {
        let job = PrewarmJob(order(1))
        #expect(job.take() == 0)
        job.cancel()
        job.finish(0, nil)
        #expect(job.isOver && job.take() == nil)
    }

    @Test func aJobThatIsDoneCannotBeCancelled() {
        let job = PrewarmJob(order(1))
        #expect(job.take() == 0)
        job.finish(0, hit)
        job.cancel()
        #expect(job.progress.state == .done)
    }

    @Test func outcomesFromBeforeARestartCountOnce() {
        let job = PrewarmJob(order(3), outcomes: [(2, new), (2, failed), (0, hit)])
        #expect(job.remaining == 1 && job.progress.totals.done == 2 && job.progress.totals.failed == 0)
        #expect(job.take() == 1 && job.take() == nil)
        let done = PrewarmJob(order(1), outcomes: [(0, hit)])
        #expect(done.progress.state == .done && done.isOver)
        let cancelled = PrewarmJob(order(2), outcomes: [(0, hit)], isCancelled: true)
        #expect(cancelled.progress.state == .cancelled && cancelled.isOver && cancelled.take() == nil)
    }

    @Test func totalsAddWhatIsInTheCacheAndWhatItSaves() {
        var totals = PrewarmTotals()
        for outcome in [new, hit, failed] { totals.add(outcome) }
        #expect(totals.hits == 1 && totals.new == 1 && totals.failed == 1 && totals.done == 3)
        // A rendition whose source's size is unknown saves nothing.
        #expect(totals.bytes == 15 && totals.sourceBytes == 30 && totals.saved == 20)
    }

    @Test func aReportNamesTheFirstFailuresAndTheRequestedOutcomes() {
        let count = 2_500
        let outcomes = (0..<count).map { ($0, $0.isMultiple(of: 2) ? failed : new) }
        let job = PrewarmJob(order(count), outcomes: outcomes)
        let report = PrewarmReport(job, from: 3)
        #expect(report.state == "done" && report.total == count && report.done == count && report.failed == count / 2)
        #expect(report.errors?.count == 100 && report.errors?.last?.url == "https://a.test/198.gif")
        #expect(report.errors?.first?.code == "not_an_animation" && report.errors?.first?.detail == "The file is not a GIF.")
        #expect(report.results?.count == 1000 && report.results?.first?.number == 3 && report.results?.last?.number == 1002)
        #expect(PrewarmReport(job, from: nil).results == nil)
        #expect(PrewarmReport(job, from: count).results?.isEmpty == true)
    }
}
