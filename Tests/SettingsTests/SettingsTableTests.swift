import Foundation
import Testing

@testable import Settings

@Suite("Every row of the table of settings is complete and works") struct SettingsTableTests {
    /// Values of settings that do not accept any text.
    private static let samples = [
        "sources.ports": "8000-8999", "sources.nat64_prefixes": "64:ff9b::/96", "server.unix_mode": "0660",
        "server.trusted_proxies": "10.0.0.0/8", "metrics.allow": "10.0.0.0/8",
    ]

    /// A value that the setting accepts and that is not its default.
    private func sample(_ setting: Setting) -> String {
        switch setting.kind {
        case .text: Self.samples[setting.name] ?? "sample"
        case .pair: "width=100"
        case .flag: setting.texts(Settings()).first == "true" ? "false" : "true"
        case .choice(let words): words.last { [$0] != setting.texts(Settings()) } ?? ""
        case .number, .bytes, .duration:
            (setting.range?.upper == setting.text(Settings()) ? setting.range?.lower : setting.range?.upper) ?? ""
        }
    }

    @Test(arguments: Setting.all) func aRowSetsAPropertyOfNoOtherRow(_ setting: Setting) throws {
        var settings = Settings()
        settings.mounts["m"] = Settings.Mount()
        settings.presets["m"] = []
        settings.signing.named["m"] = Settings.Signing.Key()
        settings.purge.hooks["m"] = Settings.Purge.Hook()
        let before = settings
        #expect(setting.set([sample(setting)], chosenName: "m", in: &settings) == nil)
        let plan = ReloadPlan(from: before, to: settings)
        #expect(plan.changed + plan.waiting == [setting.name.replacing("*", with: "m")])
    }

    /// Properties with other names than their settings.
    private static let renamed = [
        "cache.dir": "directory", "sources.nat64_prefixes": "translation_prefixes", "sources.require_signature": "is_required",
        "log.client": "records_client_fields", "cluster.alone": "alone_limit", "block.list": "block_list",
        "flashes.limit": "flash_limit", "sandbox.require": "requires_sandbox",
    ]

    /// Two rows that were exchanged would each set a property of their own.
    @Test(arguments: Setting.all.filter { !$0.hasChosenName }) func aRowSetsThePropertyOfItsName(_ setting: Setting) throws {
        var settings = Settings()
        let before = properties(settings)
        #expect(setting.set([sample(setting)], in: &settings) == nil)
        let changed = zip(before, properties(settings)).filter { $0.value != $1.value }.map(\.0.name)
        let name = String(try #require(setting.name.split(separator: ".").last))
        #expect(changed == [Self.renamed[setting.name] ?? name])
    }

    /// The names of all properties as settings write them, with their values by reflection.
    private func properties(_ value: Any, depth: Int = 0) -> [(name: String, value: String)] {
        Mirror(reflecting: value).children.flatMap { child -> [(name: String, value: String)] in
            let isGroup = depth == 0 || child.value is Settings.Store.S3 || child.label == "timings"
            guard isGroup, !Mirror(reflecting: child.value).children.isEmpty else {
                return [(snakeCase(child.label ?? ""), String(reflecting: child.value))]
            }
            return properties(child.value, depth: depth + 1)
        }
    }

    private func snakeCase(_ name: String) -> String {
        var result = ""
        for (index, character) in zip(name.indices, name) {
            if character.isUppercase, index > name.startIndex, !name[name.index(before: index)].isUppercase { result += "_" }
            result += character.lowercased()
        }
        return result
    }

    @Test(arguments: Setting.all) func aDefaultIsWithinItsRange(_ setting: Setting) {
        var settings = Settings()
        settings.mounts["m"] = Settings.Mount()
        settings.presets["m"] = []
        let texts = setting.texts(settings, chosenName: "m")
        guard setting.shape != .single || !texts.isEmpty else { return }
        #expect(setting.set(texts, chosenName: "m", in: &settings) == nil)
    }

    /// As floating-point numbers, some of these lose a hundredth of a second.
    @Test func longTimesAreExact() throws {
        let setting = try #require(Setting.all.first { $0.name == "limits.duration" })
        for text in ["4986s", "9971s", "3650d", "315359999990ms", "10ms"] {
            var settings = Settings()
            #expect(setting.set([text], in: &settings) == nil)
            let written = setting.text(settings)
            #expect(Duration(settingText: written) == Duration(settingText: text))
        }
    }

    @Test(arguments: Setting.all) func aRowIsDocumented(_ setting: Setting) {
        #expect(setting.summary.hasSuffix(".") && setting.summary.count <= 140, "\(setting.summary)")
        #expect(!setting.texts(Settings()).isEmpty || setting.whenUnset != nil || setting.example != nil || setting.isSecret)
    }

    @Test func settingsWithAChosenNameAreLive() {
        #expect(Setting.all.filter { $0.hasChosenName && $0.effect != .live }.map(\.name) == [])
    }

    @Test func noTwoSettingsHaveTheSameVariable() {
        #expect(Set(Setting.all.map(\.environmentName)).count == Setting.all.count)
    }
}

extension Setting: CustomTestStringConvertible {
    public var testDescription: String { name }
}

extension Setting {
    /// The value as one text, list items joined by commas; empty for none.
    func text(_ settings: Settings, chosenName: String = "") -> String {
        texts(settings, chosenName: chosenName).joined(separator: ",")
    }
}
