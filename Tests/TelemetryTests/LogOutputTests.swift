import Glibc
import Logging
import SystemIO
import Testing

@testable import Telemetry

@Suite("An event is one log line, as text or as JSON") struct LogOutputTests {
    /// What a log writes while `body` uses its logger.
    private func lines(
        _ format: LogFormat, journal: (stat) -> String? = { _ in nil }, _ body: (Logger) -> Void
    ) throws -> String {
        try linesOfLog(format, journal: journal) { _, logger in body(logger) }
    }

    /// The same for a body that uses the log too.
    ///
    /// - Parameter journal: The value of `JOURNAL_STREAM`, derived from the status of the log's stream.
    private func linesOfLog(
        _ format: LogFormat, journal: (stat) -> String? = { _ in nil }, _ body: (LogOutput, Logger) -> Void
    ) throws -> String {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        var status = stat()
        try #require(fstat(ends[1], &status) == 0)
        let log = LogOutput(format: format, level: .info, descriptor: ends[1], journalStream: journal(status))
        close(ends[1])
        body(log, log.makeLogger(metadataProvider: Logger.MetadataProvider { ["request_id": "r1"] }))
        log.close(within: .seconds(10))
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = read(ends[0], &buffer, buffer.count)
        close(ends[0])
        return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }

    @Test func aTextLineHasTheMessageAndItsValuesInOrder() throws {
        let text = try lines(.text) { logger in
            logger.debug("not shown")
            logger.warning("listening", metadata: ["port": "80", "at": "127.0.0.1"])
        }
        #expect(text.hasSuffix("Z warning gifreel: listening at=127.0.0.1 port=80 request_id=r1\n"))
        #expect(text.split(separator: "\n").count == 1)
    }

    @Test func loggersFollowTheLevelOfTheirLog() throws {
        let text = try linesOfLog(.text) { log, logger in
            var fixed = logger
            fixed.logLevel = .error
            log.level = .debug
            logger.debug("one")
            fixed.warning("two")
            log.level = .warning
            logger.info("three")
            fixed.error("four")
        }
        #expect(text.split(separator: "\n").map { $0.split(separator: " ")[3] } == ["one", "four"])
    }

    @Test func noValueEndsALine() throws {
        let text = try lines(.text) { $0.info("a\nb", metadata: ["cause": "line 1\r\nline 2\u{1b}[0m"]) }
        #expect(text.hasSuffix(#"gifreel: a b cause="line 1\u000d\nline 2\u001b[0m" request_id=r1"# + "\n"))
        #expect(text.split(separator: "\n").count == 1)
    }

    @Test(arguments: [
        ("plain", "plain"), ("", #""""#), ("two words", #""two words""#), ("mp4,width=2", #""mp4,width=2""#),
        (#"a"b\c"#, #""a\"b\\c""#), ("é", "é"), ("12", "12"),
    ]) func aTextValueIsInQuotesUnlessItIsAWord(_ value: String, _ expected: String) throws {
        #expect(try lines(.text) { $0.info("m", metadata: ["v": "\(value)"]) }.hasSuffix(" m request_id=r1 v=\(expected)\n"))
    }

    @Test func numbersAreNumbers() throws {
        let values: Logger.Metadata = [
            "count": .stringConvertible(7), "negative": .stringConvertible(Int64(-1)), "took_ms": .stringConvertible(2.5),
            "none": .stringConvertible(Double.nan), "digits": "42",
        ]
        let json = try lines(.json) { $0.info("m", metadata: values) }
        for member in [#""count":7"#, #""negative":-1"#, #""took_ms":2.5"#, #""none":"nan""#, #""digits":"42""#] {
            #expect(json.contains("\(member),") || json.contains("\(member)}"), "\(json)")
        }
        let text = try lines(.text) { $0.info("m", metadata: values) }
        #expect(text.hasSuffix(" count=7 digits=42 negative=-1 none=nan request_id=r1 took_ms=2.5\n"))
    }

    @Test(arguments: LogFormat.allCases)
    func linesOfTheJournalsStreamBeginWithTheirPriority(_ format: LogFormat) throws {
        func logAll(_ logger: Logger) {
            for level in Logger.Level.allCases { logger.log(level: level, "m") }
        }
        let lines = try lines(format, journal: { "\($0.st_dev):\($0.st_ino)" }, logAll).split(separator: "\n")
        #expect(lines.map { String($0.prefix(3)) } == ["<6>", "<5>", "<4>", "<3>", "<2>"])
        // Another stream: the variable was inherited.
        let others = try self.lines(format, journal: { "\($0.st_dev):\($0.st_ino + 1)" }, logAll).split(separator: "\n")
        #expect(others.count == 5 && others.allSatisfy { $0.first != "<" })
    }

    @Test func aJSONLineIsOneObject() throws {
        let text = try lines(.json) { $0.error("it \"broke\"", metadata: ["cause": "a\\b\n\u{1}ü"]) }
        #expect(text.hasPrefix(#"{"cause":"a\\b\n\u0001ü","level":"error","message":"it \"broke\"","#))
        #expect(text.hasSuffix("Z\"}\n"))
    }

    @Test func deleteAndTheC1ControlCharactersAreEscaped() {
        let fields = LogFields(level: .info, message: "a\u{7f}b\u{80}c\u{9b}d\u{9f}e\u{a0}", metadata: [:], time: 0)
        let json = String(decoding: fields.line(.json), as: UTF8.self)
        #expect(json.contains(#""message":"a\u007fb\u0080c\u009bd\u009fe"# + "\u{a0}\""))
        #expect(String(decoding: fields.line(.text), as: UTF8.self).hasSuffix("gifreel: a b c d e\u{a0}\n"))
    }

    @Test func aValueOfTheEventOverridesTheRequestsWhichOverridesTheLoggers() throws {
        let text = try lines(.text) { logger in
            var logger = logger
            logger[metadataKey: "request_id"] = "logger"
            logger.info("one")
            logger.info("two", metadata: ["request_id": "event"])
        }
        #expect(text.contains("one request_id=r1\n") && text.contains("two request_id=event\n"))
    }

    @Test func theTimeIsInUTC() {
        let fields = LogFields(level: .info, message: "m", metadata: [:], time: 784_111_777_042)
        #expect(String(decoding: fields.line(.text), as: UTF8.self) == "1994-11-06T08:49:37.042Z info gifreel: m\n")
    }

    @Test(arguments: LogFormat.allCases)
    func aFullDiskLosesLinesAndCountsThem(format: LogFormat) throws {
        let full = open("/dev/full", O_WRONLY | O_CLOEXEC)
        let log = LogOutput(format: format, level: .info, descriptor: full)
        close(full)
        let logger = log.makeLogger()
        for _ in 0..<100 { logger.info("lost") }
        log.close(within: .seconds(10))
        #expect(log.droppedLines == 100)
    }
}
