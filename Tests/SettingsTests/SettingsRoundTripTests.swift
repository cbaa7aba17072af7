import Fetch
import TestSupport
import Testing

@testable import Settings

@Suite("Settings are read back as they are written, from every source") struct SettingsRoundTripTests {
    private static let texts = ["a", "b c", "x: y", "# z", "yes", "null", "1e3", "é😀", "it's \"so\"", "\\n", "{a}", "*"]

    /// A text that the setting accepts; nil to leave the setting at its default.
    private func text(_ setting: Setting, _ numbers: inout SeededNumbers) -> String? {
        func number(_ parse: (String) -> Int?) -> Int? {
            guard let range = setting.range, let lower = parse(range.lower), let upper = parse(range.upper) else { return nil }
            return Int.random(in: lower...upper, using: &numbers)
        }
        switch setting.kind {
        case .pair: return ["width=480", "width=480,quality=50", "bg=ffffff,fit=cover,width=2"].randomElement(using: &numbers)
        case .flag: return Bool.random(using: &numbers) ? "true" : "false"
        case .choice(let words): return words.randomElement(using: &numbers)
        case .number: return number { Int($0) }.map { String($0) }
        case .bytes: return number { ByteCount(settingText: $0)?.bytes }.map { ByteCount(bytes: $0).settingText }
        case .duration(.milliseconds):
            return number { Duration(settingText: $0).map { Int($0.components.seconds) * 1000 } }
                .map { Duration.milliseconds($0).settingText }
        case .duration(.seconds):
            return number { Duration(settingText: $0).map { Int($0.components.seconds) } }
                .map { Duration.seconds($0).settingText }
        case .text:
            switch setting.name {
            case "server.unix_mode": return ["0660", "777", "0"].randomElement(using: &numbers)
            case "sources.ports": return ["80", "8000-8999", "1-65535,7"].randomElement(using: &numbers)
            case "sources.nat64_prefixes":
                return ["64:ff9b::/96", "64:ff9b:1::/48,64:ff9b::/96"].randomElement(using: &numbers)
            case "server.trusted_proxies", "metrics.allow", "sources.allow_private":
                return ["10.0.0.0/8", "::1,10.0.0.1", "127.0.0.1"].randomElement(using: &numbers)
            case "metrics.hosts": return ["*", "*.a.test,b.test", "a.test:81"].randomElement(using: &numbers)
            case "sources.allow", "webhooks.allow", "signing.keys.*.hosts":
                return ["*", "*.a.test/x/,https://b.test", "a.test:81/b*"].randomElement(using: &numbers)
            case "sources.user_agent": return ["a", "b/1 (+https://b.test, c)"].randomElement(using: &numbers)
            case "sources.loop_name": return ["a", "b-c", "{a}"].randomElement(using: &numbers)
            default: break
            }
            let items = (0..<(setting.shape == .list ? 3 : 1)).compactMap { _ in Self.texts.randomElement(using: &numbers) }
            return items.joined(separator: ",")
        }
    }

    /// Names and texts of some settings, whose combination is valid.
    private func some(_ numbers: inout SeededNumbers) -> [String: String] {
        var values: [String: String] = [:]
        for setting in Setting.all where Bool.random(using: &numbers) {
            values[setting.name.replacing("*", with: "m")] = text(setting, &numbers)
        }
        // A file cannot have the name signing.keys twice.
        values = values.filter { !$0.key.hasPrefix("signing.keys.") }
        values["mounts.m.origin"] = "https://a.test/"
        values["signing.keys"] = "key"
        values["webhooks.key"] = "key"
        values["store.s3.bucket"] = "bucket"
        values["tracing.endpoint"] = "https://a.test/"
        values["admin.token"] = "token"
        values["cache.min_fresh_for"] = "1s"
        values["cache.max_fresh_for"] = "2s"
        return values
    }

    @Test func flagsVariablesAndFilesGiveTheSameSettings() throws {
        let directory = try ScratchDirectory()
        try withPrintedSeed { numbers in
            for _ in 0..<40 {
                let values = some(&numbers)
                let flags = try SettingsReader.read(
                    file: nil, environment: [:], flags: values.map { "\($0.key)=\($0.value)" }
                ).settings
                let variables = Dictionary(
                    uniqueKeysWithValues: values.map { name, text in
                        ("GIFREEL_" + name.uppercased().replacing(".", with: "_"), text)
                    })
                #expect(try SettingsReader.read(file: nil, environment: variables, flags: []).settings == flags)
                let file = try directory.write("settings.yaml", yaml(values))
                #expect(try SettingsReader.read(file: file, environment: [:], flags: []).settings == flags)
                #expect(try again(flags) == flags)
            }
        }
    }

    @Test func keysHaveNamesInEverySource() throws {
        let flags = [
            "signing.keys=plain", "signing.keys.blog.secret=s", "signing.keys.blog.hosts=a.test,b.test",
            "signing.keys.blog.misses_per_minute=5",
        ]
        let settings = try SettingsReader.read(file: nil, environment: [:], flags: flags).settings
        #expect(
            settings.signing.keys == ["plain"]
                && settings.signing.named["blog"]?.hosts.map(\.description) == ["a.test", "b.test"])
        #expect(settings.lines.contains("signing.keys.blog.secret: ***"))
        let directory = try ScratchDirectory()
        let list = try directory.write(
            "list.yaml",
            "signing:\n  keys:\n    - plain\n    - {name: blog, secret: s, hosts: [a.test, b.test], misses_per_minute: 5}\n")
        #expect(try SettingsReader.read(file: list, environment: [:], flags: []).settings == settings)
        let group = try directory.write(
            "group.yaml",
            "signing:\n  keys:\n    blog:\n      secret: s\n      hosts: [a.test, b.test]\n      misses_per_minute: 5\n")
        #expect(
            try SettingsReader.read(file: group, environment: ["GIFREEL_SIGNING_KEYS": "plain"], flags: []).settings == settings
        )
        let variables = [
            "GIFREEL_SIGNING_KEYS": "plain", "GIFREEL_SIGNING_KEYS_BLOG_SECRET": "s",
            "GIFREEL_SIGNING_KEYS_BLOG_HOSTS": "a.test,b.test", "GIFREEL_SIGNING_KEYS_BLOG_MISSES_PER_MINUTE": "5",
        ]
        #expect(try SettingsReader.read(file: nil, environment: variables, flags: []).settings == settings)
        #expect(try again(settings) == settings)
    }

    /// The settings, written as flags and read again.
    private func again(_ settings: Settings) throws -> Settings {
        var flags: [String] = []
        for setting in Setting.all {
            for (name, chosenName) in setting.names(in: settings) {
                let text = setting.text(settings, chosenName: chosenName)
                // A flag cannot unset a secret.
                if !setting.isSecret || !text.isEmpty { flags.append("\(name)=\(text)") }
            }
        }
        return try SettingsReader.read(file: nil, environment: [:], flags: flags).settings
    }

    /// A file with double-quoted values (YAML 1.2 section 7.3.1).
    private func yaml(_ values: [String: String]) -> String {
        func quoted(_ text: String) -> String {
            "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
        }
        var lines: [String] = []
        var parents: [String] = []
        for (name, text) in values.sorted(by: { $0.key < $1.key }) {
            let path = name.split(separator: ".").map(String.init)
            let common = zip(parents, path.dropLast()).prefix { $0 == $1 }.count
            parents = path.dropLast()
            for (depth, parent) in parents.enumerated().dropFirst(common) {
                lines.append(String(repeating: "  ", count: depth) + "\(parent):")
            }
            lines.append(String(repeating: "  ", count: parents.count) + "\(path[path.count - 1]): \(quoted(text))")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    @Test func anyQuantityIsWrittenAsItIsRead() {
        withPrintedSeed { numbers in
            for _ in 0..<2_000 {
                // Numbers of every magnitude.
                let number = Int(truncatingIfNeeded: numbers.next() >> UInt64.random(in: 1...63, using: &numbers))
                #expect(ByteCount(settingText: ByteCount(bytes: number).settingText)?.bytes == number)
                let time = Duration.milliseconds(number >> 10)
                #expect(Duration(settingText: time.settingText) == time)
            }
        }
    }
}

@Suite("Settings that cannot work are refused") struct RefusedSettingsTests {
    private func message(_ flags: [String] = [], file: String? = nil) -> String? {
        #expect(throws: SettingsError.self) { try SettingsReader.read(file: file, environment: [:], flags: flags) }?.description
    }

    @Test func aSocketsModeHasThreeOctalDigits() {
        for mode in ["1000", "8", "rw", "-1"] {
            #expect(
                message(["server.unix_mode=\(mode)"])
                    == "server.unix_mode (--set) is “\(mode)”; it must be an octal number from 0 to 0777.")
        }
    }

    @Test func aMountThatRequiresSignaturesNeedsAKey() {
        #expect(
            message(["mounts.a.origin=https://a.test/", "mounts.a.require_signature=true"])
                == "mounts.a.require_signature is true but signing.keys holds no key; set a key or remove "
                + "mounts.a.require_signature.")
    }

    @Test func aKeyWithANameNeedsASecret() throws {
        #expect(
            message(["signing.keys.blog.hosts=a.test"]) == "signing.keys.blog.secret is missing; a key needs a secret.")
        let directory = try ScratchDirectory()
        let file = try directory.write("settings.yaml", "signing:\n  keys: [{secret: s}]\n")
        #expect(message(file: file) == "\(file): an entry of signing.keys has no name.")
    }

    @Test func aSettingOfOneValueIsNoList() throws {
        let directory = try ScratchDirectory()
        let file = try directory.write("settings.yaml", "server:\n  port: [8080]\n")
        #expect(message(file: file) == "\(file), line 2: server.port must be one value.")
    }

    @Test func aFileOfMoreThanAMebibyteIsNotRead() throws {
        let directory = try ScratchDirectory()
        let file = try directory.write("settings.yaml", String(repeating: "#", count: (1 << 20) + 1))
        #expect(message(file: file) == "The configuration file \(file) cannot be read: File too large.")
        let largest = try directory.write("largest.yaml", String(repeating: "#", count: 1 << 20))
        #expect(try SettingsReader.read(file: largest, environment: [:], flags: []).settings == Settings())
    }
}
