#if !FUZZ
    @testable import Settings
#endif

/// What must hold of the texts of settings, however wrong they are. The fuzzer looks for a text for which it does not hold.
enum SettingInvariants {
    /// The first invariant that does not hold, in words; nil if all do.
    ///
    /// - Parameter bytes: Lines of `name=value`, where the name is that of a setting or of an environment variable.
    static func violation(_ bytes: UnsafeRawBufferPointer) -> String? {
        var settings = Settings()
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2 else { continue }
            if let violation = set(parts[0], parts[1], in: &settings) ?? environment(parts[0], parts[1]) { return violation }
        }
        do throws(SettingsError) {
            try settings.validate()
        } catch {
            return sentence(error)
        }
        return reload(to: settings)
    }

    /// A value that is accepted reads as a text that sets it again, and one that is refused changes nothing.
    private static func set(_ name: String, _ value: String, in settings: inout Settings) -> String? {
        guard let setting = Setting.named(name) else { return nil }
        let chosen = setting.hasChosenName ? "m" : ""
        let before = settings
        let texts = setting.shape == .list ? value.split(separator: ",").map(String.init) : [value]
        if let rejected = setting.set(texts, chosenName: chosen, in: &settings) {
            guard settings == before else { return "\(name): a refused value changes the settings" }
            return sentence(.wrongValue(name, rejected, setting.expectation))
        }
        var again = before
        let written = setting.texts(settings, chosenName: chosen)
        guard setting.set(written, chosenName: chosen, in: &again) == nil else { return "\(name): \(written) is not accepted" }
        return again == settings ? nil : "\(name): \(written) sets another value"
    }

    /// A variable sets a setting, is ignored or is refused with a sentence.
    private static func environment(_ name: String, _ value: String) -> String? {
        do throws(SettingsError) {
            let variables = try EnvironmentVariables([name: value])
            let isKnown = variables.entries.count + variables.injected.count
            return isKnown == (name.hasPrefix("GIFREEL_") ? 1 : 0) ? nil : "\(name): \(isKnown) meanings"
        } catch {
            return sentence(error)
        }
    }

    /// A reload names each setting that differs, once, and applies no setting that needs a restart.
    private static func reload(to settings: Settings) -> String? {
        let plan = ReloadPlan(from: Settings(), to: settings)
        let names = plan.changed + plan.waiting
        guard Set(names).count == names.count else { return "a reload names a setting twice: \(names)" }
        guard (plan.settings == settings) == plan.waiting.isEmpty else { return "a reload waits for \(plan.waiting)" }
        let none = ReloadPlan(from: settings, to: settings)
        return none.changed.isEmpty && none.waiting.isEmpty ? nil : "a reload of equal settings changes \(none.changed)"
    }

    private static func sentence(_ error: SettingsError) -> String? {
        let last = error.description.last
        return last == "." || last == "?" ? nil : "not a sentence: \(error.description)"
    }
}

/// The first inputs of the fuzzer: every setting and every variable, with some values.
enum SettingSeeds {
    static let all: [[UInt8]] = {
        let values = ["", "0", "1", "true", "1d", "1ms", "9223372036854775807", "16EiB", "1.5GiB", "a,b", "80,8000-8999", "-1"]
        return Setting.all.enumerated().flatMap { index, setting in
            let value = setting.range?.upper ?? values[index % values.count]
            let variable = setting.environmentName.replacing("NAME", with: "M")
            return [
                "\(setting.name)=\(value)", "\(setting.name)=\(values[(index + 3) % values.count])\n\(variable)=\(value)",
            ]
        }.map { Array($0.utf8) }
            + ["GIFREEL_PORT=tcp://10.0.0.1:80", "GIFREEL_PORT_80_TCP_ADDR=1", "GIFREEL_X=1"].map { Array($0.utf8) }
    }()
}
