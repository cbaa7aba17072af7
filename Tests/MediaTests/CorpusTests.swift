import Foundation
import Media
import Testing

/// Real files and the public suite, where they lie beside the project.
private let corpus = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("shared/corpus")

@Suite struct CorpusTests {
    private static func files(_ folder: String) -> [URL] {
        let all = try? FileManager.default.contentsOfDirectory(
            at: corpus.appendingPathComponent(folder), includingPropertiesForKeys: nil)
        return (all ?? []).filter { $0.pathExtension == "gif" }
    }

    @Test(.enabled(if: !files("real").isEmpty)) func everyRealFileIsRead() throws {
        for file in Self.files("real") {
            let summary = try Composing.summary([UInt8](try Data(contentsOf: file)))
            #expect(summary.delays.count > 1, "\(file.lastPathComponent)")
        }
    }

    @Test(.enabled(if: !files("pygif").isEmpty)) func everyFileOfThePublicSuiteIsReadOrRefused() throws {
        for file in Self.files("pygif") {
            do {
                _ = try Composing.frames([UInt8](try Data(contentsOf: file)))
            } catch is TranscodeError {}
        }
    }
}
