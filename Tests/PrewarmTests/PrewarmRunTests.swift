import Fleet
import Foundation
import Renditions
import TestSupport
import Testing

@testable import Prewarm

@Suite("A run of the command line continues where an earlier one stopped") struct PrewarmRunTests {
    private let directory: ScratchDirectory

    init() throws {
        directory = try ScratchDirectory()
    }

    private let entries = (0..<3).map { PrewarmEntry(url: "https://a.test/\($0).gif") }
    private let new = PrewarmOutcome(kind: .new, bytes: 1, sourceBytes: 5)
    private let failed = PrewarmOutcome(code: "timeout", detail: "Too late.")

    private var journalPath: String { directory.path("state/run.ndjson") }

    @Test func finishedEntriesAreSkippedByTheNextRun() throws {
        let first = PrewarmRun(entries, journal: try RunJournal(path: journalPath))
        first.finish(2, new)
        first.finish(0, failed)
        let second = PrewarmRun(entries, journal: try RunJournal(path: journalPath))
        #expect(second.resumed == 2 && second.pending == [1] && second.totals == first.totals)
        #expect(second.results.map(\.entry) == [entries[0], entries[2]])
        #expect(second.results.map(\.outcome) == [failed, new])
    }

    @Test func onlyAFileIsRemovedAsAJournal() throws {
        try FileManager.default.createSymbolicLink(atPath: directory.path("null"), withDestinationPath: "/dev/null")
        try directory.write("file", "")
        for name in ["null", "file"] {
            let journal = try RunJournal(path: directory.path(name))
            PrewarmRun(entries, journal: journal).finish(0, new)
            journal.remove()
        }
        #expect(directory.names() == ["null"])
    }

    @Test func entriesAreKnownByTheirRenditionAndSource() throws {
        let first = PrewarmRun([entries[0]], journal: try RunJournal(path: journalPath))
        first.finish(0, new)
        // Another spelling of the same, with an option at its default.
        let spelling = PrewarmEntry(url: "HTTPS://A.test:443/0.gif", options: ["quality": "60"])
        let other = PrewarmEntry(url: entries[0].url, options: ["quality": "61"])
        let second = PrewarmRun([other, spelling], journal: try RunJournal(path: journalPath))
        #expect(second.pending == [0])
    }

    @Test func entriesAreKnownByTheDefaultsOfTheSettings() throws {
        let auto = PrewarmEntry(url: entries[0].url, options: ["undither": "auto"])
        for defaults in [RenditionDefaults(undithers: false), nil] {
            let first = PrewarmRun([entries[0], auto], journal: try RunJournal(path: journalPath), defaults: defaults)
            first.finish(0, new)
            let second = PrewarmRun([entries[0], auto], journal: try RunJournal(path: journalPath), defaults: defaults)
            #expect(second.pending == [1])
        }
    }

    @Test func theFirstOutcomeOfAnEntryCounts() {
        let run = PrewarmRun(entries, journal: nil)
        run.finish(1, new)
        run.finish(1, failed)
        #expect(run.totals.done == 1 && run.totals.failed == 0 && run.results.map(\.outcome) == [new])
    }

    @Test func aLineThatWasCutOffIsIgnoredAndDoesNotSpoilTheNext() throws {
        let first = PrewarmRun(entries, journal: try RunJournal(path: journalPath))
        first.finish(0, new)
        first.finish(1, new)
        try directory.write("state/run.ndjson", String(try directory.text("state/run.ndjson").dropLast(4)))
        let second = PrewarmRun(entries, journal: try RunJournal(path: journalPath))
        #expect(second.pending == [1, 2])
        second.finish(2, failed)
        let third = PrewarmRun(entries, journal: try RunJournal(path: journalPath))
        #expect(third.pending == [1] && third.results.last?.outcome == failed)
    }

    @Test func numbersThatSumsCannotHoldCountAsNotFinished() throws {
        let identity = entries[0].identity(RenditionDefaults())
        for (bytes, isKnown) in [("1099511627776", true), ("1099511627777", false), ("-1", false)] {
            try directory.write(
                "state/run.ndjson",
                #"{"identity":"\#(identity)","outcome":{"result":"new","bytes":\#(bytes),"source_bytes":0}}"# + "\n")
            let run = PrewarmRun(entries, journal: try RunJournal(path: journalPath))
            #expect(run.pending == (isKnown ? [1, 2] : [0, 1, 2]), "\(bytes)")
        }
    }

    @Test func aRemovedJournalLeavesTheNextRunWithEverything() throws {
        let journal = try RunJournal(path: journalPath)
        let first = PrewarmRun(entries, journal: journal)
        first.finish(0, new)
        journal.remove()
        #expect(PrewarmRun(entries, journal: try RunJournal(path: journalPath)).pending == [0, 1, 2])
    }

    @Test func aJournalBehindALinkIsEmptied() throws {
        try directory.write("file", "")
        let link = directory.path("link")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: directory.path("file"))
        let journal = try RunJournal(path: link)
        PrewarmRun(entries, journal: journal).finish(0, new)
        journal.remove()
        #expect(PrewarmRun(entries, journal: try RunJournal(path: link)).pending == [0, 1, 2])
        #expect(try directory.text("file").isEmpty)
    }

    @Test func aJournalThatCannotBeOpenedIsNamed() throws {
        let error = #expect(throws: PrewarmRunError.self) { try RunJournal(path: "/dev/null/x/run.ndjson") }
        #expect(error?.description.hasPrefix("The journal cannot be opened. ") == true)
        #expect(error?.description.contains("/dev/null/x") == true)
    }

    @Test func aFullDiskIsReportedAndDoesNotStopTheRun() throws {
        let run = PrewarmRun(entries, journal: try RunJournal(path: "/dev/full"))
        run.finish(0, new)
        #expect(run.totals.done == 1)
        #expect(run.journalError?.contains("No space left on device") == true)
    }
}

@Suite("A run prints a summary and writes a report") struct RunReportTests {
    private func result(_ url: String, _ outcome: PrewarmOutcome, options: [String: String] = [:]) -> PrewarmResult {
        PrewarmResult(entry: PrewarmEntry(url: url, options: options), outcome: outcome)
    }

    private func totals(_ results: [PrewarmResult]) -> PrewarmTotals {
        results.reduce(into: PrewarmTotals()) { $0.add($1.outcome) }
    }

    private func failure(_ code: String, _ detail: String = "Detail.") -> PrewarmOutcome {
        PrewarmOutcome(code: code, detail: detail)
    }

    @Test func theSummaryNamesTheLargestSavingsAndEachCodeOfAFailureOnce() {
        let results = [
            result("small", PrewarmOutcome(kind: .new, bytes: 900, sourceBytes: 1000)),
            result("large", PrewarmOutcome(kind: .hit, bytes: 200_000, sourceBytes: 1_200_000)),
            result("larger", PrewarmOutcome(kind: .new, bytes: 20, sourceBytes: 10)), result("x", failure("timeout", "First.")),
            result("y", failure("not_an_animation")), result("z", failure("timeout", "Second.")),
        ]
        let lines = RunSummary.lines(results, totals: totals(results), of: 8, seconds: 65)
        #expect(
            lines == [
                "6 of 8 URLs in 1:05: 1 hits, 2 new, 3 failed",
                "1.2 MB of GIFs became 200.9 kB (17 %)",
                "", "Largest savings",
                "      saved        GIF        now  URL",
                "     1.0 MB     1.2 MB   200.0 kB  large",
                "      100 B     1.0 kB      900 B  small",
                "", "Failures by code",
                "    count  code              for example",
                "        2  timeout           x: First.",
                "        1  not_an_animation  y: Detail.",
            ])
    }

    @Test(arguments: [(800, "1.3 kB (81 %)"), (2000, "2.5 kB (156 %)")])
    func renditionsThatAreLargerThanTheirSourcesCountInTheSummary(_ larger: Int, _ end: String) {
        let results = [
            result("a", PrewarmOutcome(kind: .new, bytes: 500, sourceBytes: 1000)),
            result("b", PrewarmOutcome(kind: .new, bytes: larger, sourceBytes: 600)),
        ]
        let lines = RunSummary.lines(results, totals: totals(results), of: 2, seconds: 1)
        #expect(lines[1] == "1.6 kB of GIFs became \(end)")
    }

    @Test func theTablesOfTheSummaryAreShort() {
        let results = (1...30).map { result("\($0)", PrewarmOutcome(kind: .new, bytes: 0, sourceBytes: $0)) }
        let lines = RunSummary.lines(results, totals: totals(results), of: 30, seconds: 0)
        #expect(lines.count == 2 + 3 + 10)
        #expect(lines.last?.hasSuffix("  21") == true)
    }

    @Test(arguments: [(0, "0:00"), (7, "0:07"), (60, "1:00"), (750, "12:30"), (3600, "1:00:00"), (11_105, "3:05:05")])
    func durationsAreWrittenAsOnAClock(_ seconds: Int, _ text: String) {
        #expect(NumberText.clock(seconds) == text)
    }

    @Test(arguments: [
        (0, "0 B"), (812, "812 B"), (999, "999 B"), (1000, "1.0 kB"), (999_499, "999.5 kB"), (999_500, "1.0 MB"),
        (1_234_567, "1.2 MB"), (5_000_000_000, "5.0 GB"), (2_500_000_000_000, "2.5 TB"),
    ])
    func bytesHaveADecimalUnit(_ bytes: Int, _ text: String) {
        #expect(NumberText.bytes(bytes) == text)
    }

    @Test func aShareOfNothingIsADash() {
        #expect(NumberText.percent(1, of: 3) == "33 %" && NumberText.percent(2, of: 3) == "67 %")
        #expect(NumberText.percent(0, of: 0) == "–")
    }

    @Test func theProgressLineEstimatesTheTimeLeftFromThisRunOnly() {
        var totals = PrewarmTotals()
        for _ in 0..<10 { totals.add(PrewarmOutcome(kind: .hit)) }
        for _ in 0..<215 { totals.add(PrewarmOutcome(kind: .new, bytes: 1000, sourceBytes: 58_200)) }
        for _ in 0..<25 { totals.add(failure("timeout")) }
        // 50 of the 250 are of an earlier run, so 200 took 20 seconds.
        let numbers = "250/500  10.0/s  0:25 left  hits 10  new 215  failed 25  saved 12.3 MB"
        let lines: [(columns: Int?, line: String)] = [
            (200, "████████████░░░░░░░░░░░░ " + numbers), (80, "████░░░░ " + numbers), (71, numbers),
            (20, "250/500  10.0/s  0:"), (nil, numbers),
        ]
        for (columns, line) in lines {
            #expect(ProgressDisplay.line(totals, of: 500, resumed: 50, elapsed: .seconds(20), columns: columns) == line)
        }
        let first = ProgressDisplay.line(PrewarmTotals(), of: 3, resumed: 0, elapsed: .zero, columns: nil)
        #expect(first == "0/3  0.0/s  – left  hits 0  new 0  failed 0  saved 0 B")
    }

    @Test func aCSVReportQuotesWhatRFC4180Quotes() throws {
        let directory = try ScratchDirectory()
        let results = [
            result("https://a.test/1.gif?a,b", PrewarmOutcome(kind: .new, bytes: 2, sourceBytes: 5)),
            result("https://a.test/2.gif", failure("x", "said \"no\"\nand left"), options: ["width": "40", "fps": "5"]),
        ]
        try ReportFile.write(results, totals: totals(results), of: 2, seconds: 1, to: directory.path("REPORT.CSV"))
        #expect(
            try directory.text("REPORT.CSV")
                == [
                    "url,format,options,result,code,detail,sourceBytes,bytes,saved",
                    #""https://a.test/1.gif?a,b",mp4,,new,,,5,2,3"#,
                    "https://a.test/2.gif,mp4,\"fps=5,width=40\",failed,x,\"said \"\"no\"\"\nand left\",0,0,0", "",
                ].joined(separator: "\r\n"))
    }

    @Test func aCSVReportHasNoFormulas() throws {
        let directory = try ScratchDirectory()
        let results = [
            result("=HYPERLINK(A1,B1)", failure("x")), result("-2+3", failure("x")),
            result("@SUM(1)", failure("x"), options: ["+a": "1"]),
        ]
        try ReportFile.write(results, totals: totals(results), of: 3, seconds: 1, to: directory.path("report.csv"))
        #expect(
            try directory.text("report.csv")
                == [
                    "url,format,options,result,code,detail,sourceBytes,bytes,saved",
                    "\"'=HYPERLINK(A1,B1)\",mp4,,failed,x,Detail.,0,0,0", "'-2+3,mp4,,failed,x,Detail.,0,0,0",
                    "'@SUM(1),mp4,'+a=1,failed,x,Detail.,0,0,0", "",
                ].joined(separator: "\r\n"))
    }

    @Test func anyOtherReportIsJSONAndReplacesTheFile() throws {
        let directory = try ScratchDirectory()
        try directory.write("report", String(repeating: "x", count: 10_000))
        let results = [result("https://a.test/1.gif", PrewarmOutcome(kind: .hit, bytes: 2, sourceBytes: 5))]
        try ReportFile.write(results, totals: totals(results), of: 4, seconds: 7, to: directory.path("report"))
        #expect(
            try directory.text("report")
                == #"{"bytes":2,"done":1,"failed":0,"hits":1,"new":0,"results":[{"bytes":2,"format":"mp4","options":{},"#
                + #""result":"hit","saved":3,"source_bytes":5,"url":"https://a.test/1.gif"}],"saved":3,"seconds":7,"#
                + #""source_bytes":5,"total":4}"# + "\n")
    }

    @Test func aReportThatCannotBeWrittenIsNamed() {
        let error = #expect(throws: PrewarmRunError.self) {
            try ReportFile.write([], totals: PrewarmTotals(), of: 0, seconds: 0, to: "/no/such/report.csv")
        }
        #expect(error?.description == "The report /no/such/report.csv cannot be written: No such file or directory.")
    }
}
