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
