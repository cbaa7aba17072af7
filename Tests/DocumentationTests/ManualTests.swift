import Foundation
import TestSupport
import Testing

@Suite("The manual pages of scripts/manual", .timeLimit(.minutes(10))) struct ManualTests {
    /// `whatis` and `apropos` read one word before the description. Of two words they find nothing.
    @Test func eachPageHasTheNameOfItsFile() throws {
        let gifreel = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
            .appendingPathComponent("gifreel")
        let folder = try ScratchDirectory()
        let script = Document.root.appendingPathComponent("scripts/manual")
        let outcome = try ChildProcess(script, [folder.path("manual"), gifreel.path]).finish()
        try #require(outcome.code == 0, "\(outcome.log)")
        let pages = folder.path("manual/man/man1")
        let names = try FileManager.default.contentsOfDirectory(atPath: pages)
        #expect(names.contains("gifreel-store-prune.1"))
        for name in names {
            let page = try String(contentsOfFile: "\(pages)/\(name)", encoding: .utf8)
            let title = page.firstMatch(of: /\n\.Sh NAME\n\.Nm (.+)\n\.Nd\b/)?.1
            #expect(title.map { "\($0).1" } == name)
        }
    }
}
