/// Reads settings from flags, environment variables and a file, in this order of precedence.
package enum SettingsReader {
    /// The result of reading the settings.
    package struct Result: Sendable {
        package let settings: Settings
        /// The source of each value that is not a default, by the setting's full name: `--set`, a variable, or a line of the
        /// file.
        package let origins: [String: String]
        /// Variables that override the file, in the order of the settings' names.
        package let overrides: [Override]
        /// Variables that begin with `GIFREEL_` and that Kubernetes injects; they set nothing.
        package let ignoredVariables: [String]
        /// Whether the file sets something.
        package let fileHasSettings: Bool

        /// `name: value  # origin` of each setting, secrets and those in URLs masked, `–` if there is no value.
        package var lines: [String] {
            settings.lines { _, name, value in "\(name): \(value)  # \(origins[name] ?? "default")" }
        }

        /// The lines of the settings whose value differs from the default, each with the default.
        package var changedLines: [String] {
            settings.lines { setting, name, value in
                let standard = setting.isSecret ? "" : setting.defaultTexts.joined(separator: ",")
                guard value != (standard.isEmpty ? Settings.noValue : standard) else { return nil }
                return "\(name): \(value)  # \(origins[name] ?? "default"); default \(setting.defaultPhrase)"
            }
        }
    }

    /// A setting of the file that an environment variable overrides.
    package struct Override: Sendable, Equatable {
        package let setting: String
        package let variable: String
        /// File and line.
        package let overridden: String
    }

    /// Reads all settings and checks each value, then their combinations. Blocks while files are read.
    ///
    /// - Parameters:
    ///   - file: Path of a YAML file, or nil for none.
    ///   - environment: All variables; those that begin with `GIFREEL_` count.
    ///   - flags: `name=value` of each `--set`; of equal names the last one counts.
    /// - Throws: ``SettingsError`` for the first name that does not exist or value that cannot work.
    package static func read(
        file: String?, environment: [String: String], flags: [String]
    ) throws(SettingsError) -> Result {
        let flags = try parse(flags)
        let variables = try EnvironmentVariables(environment)
        let contents = try file.map { file throws(SettingsError) in
            try SettingsFile(text: TextFile.read(file, as: "The configuration file \(file)"), path: file)
        }
        let entries = (contents?.entries ?? [:]).merging(variables.entries) { $1 }.merging(flags) { $1 }
        // Without its secret, a signing key would not exist, and the server would require no signature.
        for (member, origin) in (contents?.emptyMembers ?? [:]).sorted(by: { $0.key < $1.key })
        where !entries.keys.contains(where: { $0.hasPrefix(member + ".") }) {
            throw SettingsError("\(origin): \(member) has no settings; give it some or remove it.")
        }
        let settings = try settings(entries)
        try settings.validate()
        try settings.checkStore()
        let overrides = variables.entries.filter { flags[$0.key] == nil }.sorted { $0.key < $1.key }
            .compactMap { name, entry in
                contents?.entries[name].map { Override(setting: name, variable: entry.origin, overridden: $0.origin) }
            }
        return Result(
            settings: settings, origins: entries.mapValues(\.description), overrides: overrides,
            ignoredVariables: variables.injected, fileHasSettings: contents?.entries.isEmpty == false)
    }

    private static func settings(_ entries: [String: SettingEntry]) throws(SettingsError) -> Settings {
        var settings = Settings()
        for (name, entry) in entries.sorted(by: { $0.key < $1.key }) {
            guard let setting = Setting.named(name) else { continue }
            let texts = try entry.texts(of: setting, named: name)
            if let rejected = setting.set(texts, chosenName: setting.chosenName(in: name), in: &settings) {
                throw .wrongValue(name, rejected, setting.expectation, origin: entry.description)
            }
        }
        return settings
    }

    private static func parse(_ flags: [String]) throws(SettingsError) -> [String: SettingEntry] {
        var entries: [String: SettingEntry] = [:]
        for flag in flags {
            let parts = flag.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2 else {
                // The text may hold a secret.
                let name = flag.prefix { $0.isLetter || $0.isNumber || "._-".contains($0) }
                let shown = Setting.named(String(name)) == nil ? "" : "\(name) "
                throw SettingsError("--set \(shown)is not of the form name=value.")
            }
            guard Setting.named(parts[0]) != nil else { throw .unknownName(parts[0], origin: "--set") }
            entries[parts[0]] = try SettingEntry(origin: "--set", parts: [.text(parts[1])]).checked(as: parts[0])
        }
        return entries
    }
}

extension Settings {
    /// `name: value` of each setting, secrets and those in URLs masked, `–` if there is no value.
    package var lines: [String] { lines { "\($1): \($2)" } }

    fileprivate static let noValue = "–"

    /// Returns at most one line per setting, from its full name and its value with secrets masked.
    fileprivate func lines(_ line: (_ setting: Setting, _ name: String, _ value: String) -> String?) -> [String] {
        Setting.all.flatMap { setting in
            setting.names(in: self).compactMap { name, chosenName in
                let texts = setting.texts(self, chosenName: chosenName)
                let text = setting.isSecret ? "***" : texts.map(SettingsError.withoutCredentials).joined(separator: ",")
                return line(setting, name, texts.allSatisfy(\.isEmpty) ? Self.noValue : text)
            }
        }
    }
}
