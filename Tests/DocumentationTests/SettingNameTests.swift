import Foundation
import TestSupport
import Testing

/// The settings that documents and the files in config/ name.
@Suite("Documents and configuration files name only settings that exist") struct SettingNameTests {
    /// The names in config/gifreel.yaml, those of commented lines included; `*` stands for a mount's name.
    private func settings() throws -> Set<String> {
        try names(in: "config/gifreel.yaml")
    }

    /// The names in a file of settings.
    private func names(in path: String) throws -> Set<String> {
        let file = Document.root.appendingPathComponent(path)
        var names: Set<String> = []
        var path: [(indentation: Int, key: String)] = []
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
            // A commented setting is `# name: value`, indented as the setting would be.
            guard let match = line.wholeMatch(of: /( *)(?:# ?)?( *)([a-z][a-z0-9_]*):(?: .*)?/) else { continue }
            let indentation = match.1.count + match.2.count
            path.removeAll { $0.indentation >= indentation }
            path.append((indentation, String(match.3)))
            var keys = path.map(\.key)
            Self.replaceChosenName(in: &keys)
            names.insert(keys.joined(separator: "."))
        }
        return names
    }

    /// Puts `*` in place of the name of a member of a family.
    private static func replaceChosenName(in keys: inout [String]) {
        for family in [["mounts"], ["presets"], ["signing", "keys"], ["purge", "hooks"]]
        where keys.starts(with: family) && keys.count > family.count {
            keys[family.count] = "*"
        }
    }

    @Test func theNamesAreReadFromTheFileOfSettings() throws {
        let settings = try settings()
        for name in ["server.port", "server.port_file", "cache.max_bytes", "mounts.*.origin", "log.format"] {
            #expect(settings.contains(name), "\(name)")
        }
    }

    @Test func dottedNamesInCodeAreSettings() throws {
        let settings = try settings()
        let groups = Set(settings.compactMap { $0.split(separator: ".").first.map(String.init) })
        var checked = 0
        let files = try Document.configuration().filter { $0.path != "config/gifreel.yaml" }
        for (document, code) in try Document.all().map({ ($0, $0.code.joined(separator: "\n")) }) + files.map({ ($0, $0.text) })
        {
            for match in code.matches(of: /([a-z_]+)\.([A-Za-z_*][A-Za-z0-9_.*]*)/) {
                // Names of files and hosts begin with other words, or end in what no setting ends in.
                guard groups.contains(String(match.1)), !isPartOfAPath(match.range, match.0.base) else { continue }
                var keys = match.0.split(separator: ".").map(String.init)
                Self.replaceChosenName(in: &keys)
                let name = keys.joined(separator: ".")
                checked += 1
                #expect(settings.contains(name), "\(document): \(match.0)")
            }
        }
        #expect(checked > 50)
    }

    @Test func theSettingsForKubernetesExist() throws {
        let settings = try settings()
        let names = try names(in: "config/kubernetes/gifreel.yaml")
        #expect(names.count > 10)
        for name in names { #expect(settings.contains(name), "config/kubernetes/gifreel.yaml: \(name)") }
    }

    @Test func environmentVariablesAreThoseOfSettings() throws {
        let variables = Set(try settings().map { "GIFREEL_" + $0.uppercased().replacing(".", with: "_") })
        for document in try Document.all() + Document.configuration() + [Document("Dockerfile")] {
            for match in document.text.matches(of: /GIFREEL_[A-Z0-9_]*[A-Z0-9]/) {
                let name = String(match.0).replacing(/GIFREEL_MOUNTS_[A-Z0-9]+_/, with: "GIFREEL_MOUNTS_*_")
                    .replacing(/GIFREEL_PRESETS_[A-Z0-9]+/, with: "GIFREEL_PRESETS_*")
                    .replacing(/GIFREEL_SIGNING_KEYS_[A-Z0-9]+_/, with: "GIFREEL_SIGNING_KEYS_*_")
                    .replacing(/GIFREEL_PURGE_HOOKS_[A-Z0-9]+_/, with: "GIFREEL_PURGE_HOOKS_*_")
                // Kubernetes injects these for a service of this name; the server ignores them.
                if name.wholeMatch(of: /GIFREEL_(PORT|SERVICE)(_.*)?/) != nil { continue }
                // Those of tests, which no server sees.
                if name.hasPrefix("GIFREEL_TEST_") { continue }
                // The file of a secret.
                let isFile = name.hasSuffix("_FILE") && variables.contains(String(name.dropLast("_FILE".count)))
                #expect(isFile || variables.contains(name), "\(document): \(match.0)")
            }
        }
    }

    /// Whether the name stands within a path, a file's name or an address.
    private func isPartOfAPath(_ range: Range<Substring.Index>, _ text: String) -> Bool {
        let before = range.lowerBound > text.startIndex ? text[text.index(before: range.lowerBound)] : " "
        let after = range.upperBound < text.endIndex ? text[range.upperBound] : " "
        return before == "/" || before == "." || before == "-" || before.isLetter || before.isNumber || after == "/"
            || after == "("
    }
}
