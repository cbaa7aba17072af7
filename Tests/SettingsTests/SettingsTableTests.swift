import Foundation
import Testing

@testable import Settings

@Suite("The table of settings") struct SettingsTableTests {
    /// The full names of all properties, read by reflection: `server.publicURL` is `server.public_url`.
    private func propertyNames() -> [String] {
        Mirror(reflecting: Settings()).children.flatMap { group -> [String] in
            let isMounts = group.label == "mounts"
            let value: Any = isMounts ? Settings.Mount() : group.value
            let prefix = snakeCase(group.label ?? "") + (isMounts ? ".*." : ".")
            return Mirror(reflecting: value).children.map { prefix + snakeCase($0.label ?? "") }
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
        case .flag: setting.texts(Settings()).first == "true" ? "false" : "true"
        case .choice(let words): words.last { [$0] != setting.texts(Settings()) } ?? ""
        case .number, .bytes, .duration: setting.range?.upper ?? ""
        }
    }

    @Test func eachPropertyHasARowAndEachRowAProperty() {
        #expect(Set(Setting.all.map(\.name)) == Set(propertyNames()))
        #expect(Setting.all.count == propertyNames().count)
    }

    @Test(arguments: Setting.all) func aRowSetsThePropertyOfItsNameAndNoOther(_ setting: Setting) throws {
        var settings = Settings()
        settings.mounts["m"] = Settings.Mount()
        let before = settings
        #expect(setting.set([sample(setting)], chosenName: "m", in: &settings) == nil)
        let plan = ReloadPlan(from: before, to: settings)
        #expect(plan.changed + plan.waiting == [setting.name.replacing("*", with: "m")])
        // The property whose reflection changed is the one of the row's name.
        let changed = changedProperties(before, settings)
        #expect(changed == [setting.name])
    }

    private func changedProperties(_ first: Settings, _ second: Settings) -> [String] {
        zip(Mirror(reflecting: first).children, Mirror(reflecting: second).children).flatMap { old, new -> [String] in
            let mounts = (old.value as? [String: Settings.Mount], new.value as? [String: Settings.Mount])
            let values: (Any, Any) = (mounts.0?["m"] ?? old.value, mounts.1?["m"] ?? new.value)
            let prefix = snakeCase(old.label ?? "") + (mounts.0 == nil ? "." : ".*.")
            return zip(Mirror(reflecting: values.0).children, Mirror(reflecting: values.1).children).compactMap {
                String(reflecting: $0.value) == String(reflecting: $1.value) ? nil : prefix + snakeCase($0.label ?? "")
            }
        }
    }

    @Test(arguments: Setting.all) func aDefaultIsWithinItsRange(_ setting: Setting) {
        var settings = Settings()
        settings.mounts["m"] = Settings.Mount()
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
