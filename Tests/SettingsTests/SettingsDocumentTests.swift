import Foundation
import Testing

@testable import Settings

@Suite("Documents derive from the table of settings") struct SettingsDocumentTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test(arguments: [(SettingsDocument.yaml, "config/gifreel.yaml"), (.markdown, "docs/configuration.md")])
    func aDocumentInTheRepositoryIsUpToDate(_ document: SettingsDocument, _ path: String) throws {
        let text = try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
        #expect(text == document.text, "Run: gifreel settings --format \(document.rawValue) >\(path)")
    }

    @Test func theDefaultFileHoldsEverySettingAndChangesNone() throws {
        let path = Self.root.appendingPathComponent("config/gifreel.yaml").path
        #expect(try SettingsReader.read(file: path, environment: [:], flags: []).settings == Settings())
        // Uncommented, the examples are accepted too.
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("settings-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        // The list of keys without names stands in front of an example of keys with names.
        let lines = SettingsDocument.yaml.text.replacing("  keys: []\n", with: "").split(separator: "\n").map { line in
            line.replacing(/^( *)# ( *[a-z0-9_]+:( |$))/) { "\($0.1)\($0.2)" }.replacing(/^# ( *# .*)/) { "\($0.1)" }
        }
        let file = directory.appendingPathComponent("all.yaml")
        try lines.joined(separator: "\n").write(to: file, atomically: true, encoding: .utf8)
        let settings = try SettingsReader.read(
            file: file.path, environment: ["GIFREEL_SIGNING_KEYS": "key"], flags: []
        ).settings
        #expect(settings.mounts["media"]?.origin != nil && settings.server.portFile != nil)
        for setting in Setting.all where setting.example != nil {
            #expect(!setting.text(settings, chosenName: setting.exampleName).isEmpty, "\(setting.name)")
        }
    }

    /// Uncommented beside its list, the mapping of keys with names would be a key twice, which stops the start.
    @Test func anExampleThatReplacesALineSaysSo() throws {
        let lines = SettingsDocument.yaml.text.split(separator: "\n").map(String.init)
        let list = try #require(lines.firstIndex(of: "  keys: []"))
        let mapping = try #require(lines.firstIndex { $0.hasPrefix("#   keys:") })
        #expect(list < mapping && lines[mapping] == "#   keys:  # in place of “keys” above")
        #expect(lines.count { $0.contains("# in place of") } == 1)
    }

    @Test func everyDocumentNamesEverySetting() {
        for setting in Setting.all {
            let name = setting.name.replacing("*", with: "NAME")
            #expect(SettingsDocument.markdown.text.contains("| `\(name)`<br>`\(setting.environmentName)` |"))
            #expect(SettingsDocument.man.text.contains("\n.B \(name.replacing("-", with: "\\-"))\n"))
        }
    }

    @Test func theManualPageMarksTheSettingsThatAFileMayHold() {
        let rows = SettingsDocument.man.text.components(separatedBy: "\n.TP\n.B ").dropFirst()
        #expect(rows.count == Setting.all.count)
        for (setting, row) in zip(Setting.all, rows) {
            #expect(row.contains(" (secret)") == setting.isSecret, "\(setting.name)")
        }
    }
}
