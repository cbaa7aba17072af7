internal import ArgumentParser
internal import Foundation
internal import Prewarm
internal import SystemIO
internal import Web

/// `gifreel explain`: says why a running server converts a source or does not.
struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Explains why a running server converts a source or does not.",
        usage: "gifreel explain URL…\ngifreel explain /mp4,width=480/https://example.com/a.gif\ngifreel explain --fetch URL…",
        discussion: """
            Prints which rule allows or refuses the source, what is stored of it, which failures are remembered, and what a \
            request gets now. Without a format, that is a request for the MP4.

            Exit status: 0 if a request gets a rendition, 1 if it does not, or if the server cannot be reached or refuses.
            """)

    @Argument(help: "URLs of sources, or addresses of renditions on the server.")
    var urls: [String]

    @Flag(help: "Fetches and converts the source now, without storing anything.")
    var fetch = false

    @Flag(help: "Prints the server's JSON.")
    var json = false

    @OptionGroup var admin: AdminServer

    func run() throws {
        var isAnswered = true
        for url in urls {
            let target = "/explain?url=\(PercentEncoding.encode(admin.subject(url)))\(fetch ? "&fetch=true" : "")"
            let body = try admin.document(target, timeout: fetch ? 600 : 60)
            let explanation = try AdminServer.decoded(Explanation.self, body)
            if json { print(String(decoding: body, as: UTF8.self)) } else { Self.show(explanation) }
            let isRefused = [.refused, .failed, .overloaded].contains(explanation.answer)
            if explanation.trial.map({ $0.failure != nil }) ?? isRefused { isAnswered = false }
        }
        if !isAnswered { throw ExitCode.failure }
    }

    private static func show(_ explanation: Explanation) {
        print("\(explanation.url) (\(explanation.rendition))")
        var allowed = explanation.rule.map { "by \($0)" } ?? "by no rule"
        if explanation.mounts.count > 1 { allowed += " (of the mounts \(explanation.mounts.joined(separator: ", ")))" }
        if explanation.lacksSignature { allowed += ", with a signature" }
        line("allowed", allowed)
        if explanation.renditions.isEmpty { line("stored", "nothing") }
        for rendition in explanation.renditions { line("stored", rendition.line) }
        for failure in explanation.failures {
            let subject = failure.ofSource ? "the source" : failure.rendition ?? "another rendition"
            line(
                "failed",
                "\(subject), \(failure.age) s ago, tried again in \(failure.remaining) s: \(text(failure.failure))")
        }
        if let reason = explanation.notStoring { line("storing", "nothing: \(reason)") }
        line("now", explanation.summary)
        guard let trial = explanation.trial else { return }
        if let failure = trial.failure { return line("tried", text(failure)) }
        let source = "\(trial.sourceType ?? "source") of \(trial.sourceBytes ?? 0) bytes"
        let size = trial.width.flatMap { width in trial.height.map { ", \(width)×\($0)" } } ?? ""
        let result = trial.bytes.map { " to \($0) bytes, \(trial.frames ?? 0) frames\(size)" } ?? ""
        let times = trial.times.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        line("tried", "\(source)\(result) (\(times))")
    }

    private static func line(_ name: String, _ text: String) {
        print("  " + name.padding(toLength: 9, withPad: " ", startingAt: 0) + text)
    }

    private static func text(_ failure: Explanation.Failure) -> String {
        "\(failure.status) \(failure.code): \(failure.detail)" + (failure.cause.map { " (\($0))" } ?? "")
    }
}

extension CacheListing.Rendition {
    /// The rendition in the tables of commands.
    var line: String {
        let options = options.sorted { $0.key < $1.key }.map { ",\($0.key)=\($0.value)" }.joined()
        let left = state == "fresh" ? "fresh for \(freshFor) s" : state
        return "\(format)\(options): \(bytes) bytes, \(age) s old, \(left), \(hits) hits, \(object)"
    }
}
