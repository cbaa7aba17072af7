internal import Configuration
internal import Foundation

/// Reads settings from flags, environment variables and a file, in this order of precedence.
package struct SettingsReader {
    private let reader: ConfigReader
    /// The source of each setting's value, by full name; settings that keep their default are missing.
    private let origins: [String: String]
    private let ignoredVariables: [String]

    /// What a reading found.
    package struct Result: Sendable {
        package let settings: Settings
        /// Variables that begin with `GIFREEL_` and that Kubernetes injects; they set nothing.
        package let ignoredVariables: [String]
    }

    /// Reads all settings and checks each value, then their combinations. Blocks while the file is read.
    ///
    /// - Parameters:
    ///   - file: Path of a YAML file, or nil for none.
    ///   - environment: All variables; those that begin with `GIFREEL_` count.
    ///   - flags: `name=value` of each `--set`; of equal names the last one counts.
    /// - Throws: ``SettingsError`` for the first name that does not exist or value that cannot work.
    package static func read(
        file: String?, environment: [String: String], flags: [String]
    ) throws(SettingsError) -> Result {
        let reader = try SettingsReader(file: file, environment: environment, flags: flags)
        let settings = try reader.settings()
        try settings.validate()
        return Result(settings: settings, ignoredVariables: reader.ignoredVariables)
    }

    private init(file: String?, environment: [String: String], flags: [String]) throws(SettingsError) {
        var origins: [String: String] = [:]
        var providers: [any ConfigProvider] = []

        let flagValues = try Self.parse(flags)
        for name in flagValues.keys { origins[name] = "--set" }
        providers.append(Self.provider("flags", flagValues.mapValues { [$0] }))

        let variables = try EnvironmentVariables(environment)
        for (name, variable) in variables.settings where origins[name] == nil { origins[name] = variable.variable }
        ignoredVariables = variables.injected
        providers.append(Self.provider("environment", variables.settings.mapValues { [$0.value] }))

        if let file {
            let entries = try SettingsFile(text: try TextFile.read(file), path: file).entries
            for (name, entry) in entries where origins[name] == nil { origins[name] = entry.origin }
            providers.append(Self.provider("file", entries.mapValues(\.texts)))
        }
        reader = ConfigReader(providers: providers)
        self.origins = origins
    }

    private func settings() throws(SettingsError) -> Settings {
        var settings = Settings()
        for (name, origin) in origins.sorted(by: { $0.key < $1.key }) {
            guard let setting = Setting.named(name) else { continue }
            var texts = reader.stringArray(forKey: ConfigKey(name), isSecret: setting.isSecret) ?? []
            // A list may stand as one text, in a file too.
            if setting.shape == .list { texts = texts.flatMap { $0.split(separator: ",").map(String.init) } }
            texts = texts.map { $0.trimmingCharacters(in: .whitespaces) }
            if let rejection = setting.set(texts, chosenName: setting.chosenName(in: name), in: &settings) {
                throw .wrongValue(name, rejection.text, setting.expectation, origin: origin)
            }
        }
        return settings
    }

    private static func parse(_ flags: [String]) throws(SettingsError) -> [String: String] {
        var values: [String: String] = [:]
        for flag in flags {
            let parts = flag.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2 else { throw SettingsError("--set \(flag) is not of the form name=value.") }
            guard Setting.named(parts[0]) != nil else { throw .unknownName(parts[0], origin: "--set") }
            values[parts[0]] = parts[1]
        }
        return values
    }

    private static func provider(_ name: String, _ values: [String: [String]]) -> InMemoryProvider {
        let pairs = values.map { name, texts in
            let isSecret = Setting.named(name)?.isSecret ?? false
            return (
                AbsoluteConfigKey(name.split(separator: ".").map(String.init)),
                ConfigValue(.stringArray(texts), isSecret: isSecret)
            )
        }
        return InMemoryProvider(name: name, values: Dictionary(uniqueKeysWithValues: pairs))
    }
}

extension Settings {
    /// `name: value` of each setting, secrets masked, `–` if there is no value.
    package var lines: [String] {
        Setting.all.flatMap { setting in
            setting.names(in: self).map { name, chosenName in
                let text = setting.text(self, chosenName: chosenName)
                return "\(name): \(text.isEmpty ? "–" : setting.isSecret ? "***" : text)"
            }
        }
    }
}
