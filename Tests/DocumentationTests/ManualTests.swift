import Foundation
import TestSupport
import Testing

@Suite("The manual pages of scripts/manual", .timeLimit(.minutes(10))) struct ManualTests {
    private let gifreel = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
        .appendingPathComponent("gifreel")

    /// The pages of the commands by the names of their files, without the extension.
    private func pages() throws -> [String: String] {
        let folder = try ScratchDirectory()
        let script = Document.root.appendingPathComponent("scripts/manual")
        let outcome = try ChildProcess(script, [folder.path("manual"), gifreel.path]).finish()
        try #require(outcome.code == 0, "\(outcome.log)")
        let pages = try folder.names(in: "manual/man/man1").map { name in
            (String(name.dropLast(".1".count)), try folder.text("manual/man/man1/\(name)"))
        }
        try #require(pages.contains { $0.0 == "gifreel-store-prune" })
        return Dictionary(uniqueKeysWithValues: pages)
    }

    /// `whatis` and `apropos` read one word before the description. Of two words they find nothing.
    @Test func eachPageHasTheNameOfItsFile() throws {
        for (name, page) in try pages() {
            let title = page.firstMatch(of: /\n\.Sh NAME\n\.Nm (.+)\n\.Nd\b/)?.1
            #expect(title == name[...])
        }
    }

    @Test func eachPageHasTheValuesAndDefaultsOfTheHelp() throws {
        var checked = 0
        for (name, page) in try pages() {
            let help = try ChildProcess(gifreel, name.split(separator: "-").dropFirst().map(String.init) + ["--help"]).finish()
            let words = help.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            for note in words.matches(of: /\((?:values|default): [^)]+\)/).map({ $0.output }) {
                checked += 1
                #expect(page.contains(note), "\(name): \(note)")
            }
        }
        #expect(checked > 10)
    }
}
