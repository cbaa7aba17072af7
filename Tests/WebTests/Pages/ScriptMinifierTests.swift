import Foundation
import TestSupport
import Testing

@testable import Web

@Suite("The server sends minified scripts") struct ScriptMinifierTests {
    /// The module is not shortened, because the script calls its function by name.
    @Test(arguments: [("gifreel", true, SiteFile.script), ("video", false, .videoModule)])
    func theMinifiedCopyBelongsToItsScript(_ name: String, _ isShortened: Bool, _ file: SiteFile) throws {
        let folder = Document.root.appendingPathComponent("Sources/Web/Pages")
        let script = try Data(contentsOf: folder.appendingPathComponent("Scripts/\(name).js"))
        let condensed = ScriptMinifier.condensed(Array(script))
        let minified = isShortened ? ScriptMinifier.shortened(condensed) : Array(condensed.utf8)
        let copy = folder.appendingPathComponent("Resources/\(name).min.js")
        if ProcessInfo.processInfo.environment["MINIFY"] != nil { try Data(minified).write(to: copy) }
        let written = try Data(contentsOf: copy)
        #expect(Array(written) == minified, "Write it with: MINIFY=1 swift test --filter ScriptMinifierTests")
        #expect(file.bytes == minified)
    }

    @Test func namesAndWordsOfAScriptAreMadeShorter() {
        let script = """
            // A comment.
            const first = (value, isLast) => {
              for (const each of [value, "const value: 1"]) print({ other: each, isSure: true }, isLast ? each : false);
            };
            first(value);
            """
        let bytes = ScriptMinifier.shortened(ScriptMinifier.condensed([UInt8](script.utf8)))
        let expected = #"let c=(b,d)=>{for(let a of[b,"const value: 1"])print({other:a,isSure:!0},d?a:!1)};c(b);"#
        #expect(String(decoding: bytes, as: UTF8.self) == expected)
    }
}
