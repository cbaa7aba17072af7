import Foundation
import Testing

@testable import Settings

@Suite("Every row of the table of settings is complete and works") struct SettingsTableTests {
    /// The full names of all properties, read by reflection: `server.publicURL` is `server.public_url`.
    private func propertyNames() -> [String] {
        var settings = Settings()
        settings.mounts["*"] = Settings.Mount()
        settings.presets["*"] = []
        settings.signing.named["*"] = Settings.Signing.Key()
        settings.purge.hooks["*"] = Settings.Purge.Hook()
        return properties(settings).map(\.name)
    }

    /// The properties of a value with their descriptions. Groups, sections and mounts are searched for properties.
    private func properties(_ value: Any, _ prefix: String = "") -> [(name: String, value: String)] {
        if let mounts = value as? [String: Settings.Mount] {
            return mounts.values.flatMap { properties($0, prefix + "*.") }
        }
        if let keys = value as? [String: Settings.Signing.Key] {
            // Keys with names stand where those without do.
            return keys.values.flatMap { properties($0, "signing.keys.*.") }
        }
        if let hooks = value as? [String: Settings.Purge.Hook] {
            return hooks.values.flatMap { properties($0, prefix + "*.") }
        }
        if let presets = value as? [String: [OptionPair]] {
            return presets.values.map { (prefix + "*", String(reflecting: $0)) }
        }
        return Mirror(reflecting: value).children.flatMap { child -> [(name: String, value: String)] in
            let name = prefix + snakeCase(child.label ?? "")
            let isFamily =
                child.value is [String: Settings.Mount] || child.value is [String: [OptionPair]]
                || child.value is [String: Settings.Signing.Key] || child.value is [String: Settings.Purge.Hook]
            let isGroup = isFamily || String(reflecting: type(of: child.value)).isGroupName
            return isGroup ? properties(child.value, name + ".") : [(name, String(reflecting: child.value))]
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

    /// A value that the setting accepts and that is not its default.
    private func sample(_ setting: Setting) -> String {
        switch setting.kind {
        case .text: setting.name == "sources.ports" ? "8000-8999" : "sample"
        case .pair: "width=100"
        case .flag: setting.texts(Settings()).first == "true" ? "false" : "true"
        case .choice(let words): words.last { [$0] != setting.texts(Settings()) } ?? ""
        case .number, .bytes, .duration:
            (setting.range?.upper == setting.text(Settings()) ? setting.range?.lower : setting.range?.upper) ?? ""
        }
    }

    @Test func eachPropertyHasARowAndEachRowAProperty() {
        #expect(Set(Setting.all.map(\.name)) == Set(propertyNames()))
        #expect(Setting.all.count == propertyNames().count)
    }

    @Test(arguments: Setting.all) func aRowSetsThePropertyOfItsNameAndNoOther(_ setting: Setting) throws {
        var settings = Settings()
        settings.mounts["m"] = Settings.Mount()
        settings.presets["m"] = []
        settings.signing.named["m"] = Settings.Signing.Key()
        settings.purge.hooks["m"] = Settings.Purge.Hook()
        let before = settings
        #expect(setting.set([sample(setting)], chosenName: "m", in: &settings) == nil)
        let plan = ReloadPlan(from: before, to: settings)
        #expect(plan.changed + plan.waiting == [setting.name.replacing("*", with: "m")])
        // The property whose reflection changed is the one of the row's name.
        let changed = changedProperties(before, settings)
        #expect(changed == [setting.name])
    }

    private func changedProperties(_ first: Settings, _ second: Settings) -> [String] {
        zip(properties(first), properties(second)).compactMap { $0.value == $1.value ? nil : $0.name }
    }

    @Test(arguments: Setting.all) func aDefaultIsWithinItsRange(_ setting: Setting) {
        var settings = Settings()
        settings.mounts["m"] = Settings.Mount()
        settings.presets["m"] = []
        let texts = setting.texts(settings, chosenName: "m")
        guard setting.shape != .single || !texts.isEmpty else { return }
        #expect(setting.set(texts, chosenName: "m", in: &settings) == nil)
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

extension String {
    /// Whether a type's name is that of a group of settings or of a section of one.
    fileprivate var isGroupName: Bool {
        let groups = [
            "Server", "Cache", "Sources", "Signing", "Options", "RateLimit", "Transcode", "Sandbox", "Limits", "Renditions",
            "Mount.S3",
            "Store",
            "Store.S3",
            "Cluster", "Purge",
            "Renditions", "Pages", "Admin", "Prewarm", "Async", "Webhooks", "Metrics", "Tracing", "Log",
        ]
        return groups.contains { self == "Settings.Settings.\($0)" }
    }
}
