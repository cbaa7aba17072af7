import Foundation
import TestSupport
import Testing

/// The metrics that documents, alerts and the dashboard name.
@Suite("Documents and configuration files name only metrics that exist") struct MetricNameTests {
    /// The names of all metric families, as they are written in the source.
    private func families() throws -> Set<String> {
        let folder = Document.root.appendingPathComponent("Sources")
        let paths = FileManager.default.enumerator(atPath: folder.path)?.allObjects ?? []
        var names: Set<String> = []
        for case let path as String in paths where path.hasSuffix(".swift") {
            let text = try String(contentsOf: folder.appendingPathComponent(path), encoding: .utf8)
            names.formUnion(text.matches(of: /"((?:gifreel|process)_[a-z_]+)"/).map { String($0.1) })
        }
        return names
    }

    @Test func everyMetricThatAFileNamesIsMeasured() throws {
        let families = try families()
        try #require(families.contains("gifreel_conversions_waiting"))
        var checked = 0
        // The variables of nginx also begin with the name of the project.
        for document in try Document.all() + Document.configuration() where !document.path.hasPrefix("config/nginx/") {
            // A name that continues with an ellipsis stands for a group of families.
            for match in document.text.matches(of: /\b(?:gifreel|process)_[a-z_]*[a-z](?![a-z_]*…)/) {
                let before = document.text[..<match.range.lowerBound].last
                if before == "$" || before == "<" { continue }
                let name = String(match.0)
                // The series of a histogram.
                let family = name.replacing(/_(bucket|sum|count)$/, with: "")
                checked += 1
                #expect(families.contains(name) || families.contains(family), "\(document): \(name)")
            }
        }
        #expect(checked > 50)
    }

    /// A counter begins again at a restart, and an increase needs two scrapes, which an interval of the graph may not contain.
    @Test func theDashboardReadsCountersOverTwoScrapesOrMore() throws {
        let path = "config/grafana/gifreel.json"
        let text = try #require(try Document.configuration().first { $0.path == path }?.text)
        var checked = 0
        for match in text.matches(of: /[a-z_]+_total\b/) {
            let before = text[..<match.range.lowerBound]
            #expect(before.hasSuffix("rate(") || before.hasSuffix("increase("), "\(match.0)")
            checked += 1
        }
        #expect(checked > 20)
        #expect(!text.contains("[$__interval]"))
    }
}
