#if !FUZZ
    @testable import Settings
#endif

/// What must hold of the reader of settings files, whatever they contain. The fuzzer looks for a file for which it does not hold.
enum SettingsFileInvariants {
    /// The first invariant that does not hold, in words; nil if all do.
    ///
    /// - Parameter bytes: The file.
    static func violation(_ bytes: UnsafeRawBufferPointer) -> String? {
        let text = String(decoding: bytes, as: UTF8.self)
        do throws(SettingsError) {
            let file = try SettingsFile(text: text, path: "f.yaml")
            for (name, entry) in file.entries {
                if let violation = content(name, entry, of: text) { return violation }
            }
            return nil
        } catch {
            let sentence = error.description
            guard sentence.last == "." || sentence.last == "?" else { return "not a sentence: \(sentence)" }
            return sentence.contains("f.yaml") ? nil : "a sentence without the file: \(sentence)"
        }
    }

    /// An entry is that of a setting, has texts of the file and its place in it.
    private static func content(_ name: String, _ entry: SettingEntry, of text: String) -> String? {
        guard let setting = Setting.named(name) else { return "\(name) is no setting" }
        guard entry.origin.hasPrefix("f.yaml") else { return "\(name) has the origin \(entry.origin)" }
        guard entry.parts.count == 1 || setting.shape == .list || setting.kind == .pair else {
            return "\(name) has \(entry.parts.count) texts"
        }
        guard entry.parts.count <= text.utf8.count else { return "\(name) has more texts than the file" }
        return nil
    }
}

/// The first inputs of the fuzzer.
enum SettingsFileSeeds {
    static let all: [[UInt8]] = [
        "server:\n  port: 8080\n  address: 127.0.0.1\ncache:\n  dir: /tmp/x # comment\n  max_bytes: \"1GiB\"\n",
        "server.port: 80\nserver:\n  port: [1, 2]\n",
        "sources:\n  allow:\n    - https://example.com/*\n    - 'b'\n  allow_private: true\n",
        "sources: {allow: [a, \"b\", 'c'], allow_private: ~}\n",
        "mounts:\n  - name: media\n    origin: https://media.example.com/\n  - {name: other, origin: x}\n",
        "mounts:\n  media:\n    origin: https://media.example.com/\n    allow: [a, b]\n",
        "access:\n  keys:\n    one: secret\n  key: |\n    text\n    more\n",
        "log:\n  level: >-\n    info\n", "- a\n- b\n", "# nothing\n", "a: b\na: c\n", "x: &a [1, *a]\ny: *a\n",
        "--- !!map\n? server.port\n: 1\n...\n", "%YAML 1.2\n---\nserver: null\n", "\"\\u00e9\\x41\": {}\n", "server: {port: 1",
    ].map { Array($0.utf8) }
}
