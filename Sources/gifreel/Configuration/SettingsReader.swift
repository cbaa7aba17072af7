internal import Configuration
internal import Foundation
internal import SystemPackage
internal import Yams

/// The settings in force, from flags, environment, file and defaults, in this order of precedence.
package struct SettingsReader {
    private let reader: ConfigReader
    /// Names of all settings that something other than a default sets, for those whose name the user chooses.
    private let names: Set<String>

    /// Collects the settings, and refuses names that do not exist.
    ///
    /// - Parameters:
    ///   - file: Path of a YAML file, or nil for none.
    ///   - environment: Variables; those that begin with `GIFREEL_` count.
    ///   - flags: `name=value` of `--set`, the later one winning.
    /// - Throws: ``ConfigurationError``.
    package init(file: String?, environment: [String: String], flags: [String]) async throws(ConfigurationError) {
        var names = Set<String>()
        var providers: [any ConfigProvider] = []

        let set = try Self.parse(flags)
        names.formUnion(set.map(\.key))
        providers.append(
            InMemoryProvider(
                values: Dictionary(
                    set.map { (AbsoluteConfigKey($0.key.split(separator: ".").map(String.init)), Self.value($0)) },
                    uniquingKeysWith: { $1 })))

        let variables = environment.filter { $0.key.hasPrefix("GIFREEL_") }
        for variable in variables.keys.sorted() { names.insert(try Self.settingName(ofVariable: variable)) }
        providers.append(
            EnvironmentVariablesProvider(environmentVariables: variables).prefixKeys(with: ["gifreel"]))

        if let file {
            names.formUnion(try Self.namesInFile(file))
            do {
                providers.append(try await FileProvider<YAMLSnapshot>(filePath: FilePath(file)))
            } catch {
                throw ConfigurationError("The configuration file \(file) cannot be read: \(error).")
            }
        }
        reader = ConfigReader(providers: providers)
        self.names = names
    }

    /// The value of a setting as text; nil when it is set nowhere and has no default.
    func text(_ name: String) throws(ConfigurationError) -> String? {
        let text = reader.string(forKey: ConfigKey(name))
        if text == nil && names.contains(name) {
            throw ConfigurationError("\(name) has several values or none; it takes one.")
        }
        guard let value = text ?? Setting.named(name)?.fallback, !value.isEmpty else { return nil }
        return value
    }

    /// The value of a list; commas separate its items where it is written as one text.
    func list(_ name: String) throws(ConfigurationError) -> [String] {
        let items: [String]
        if let array = reader.stringArray(forKey: ConfigKey(name)) {
            items = array
        } else {
            items = try text(name)?.split(separator: ",").map(String.init) ?? []
        }
        return items.map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    /// The names that users chose, in the second place of `prefix.NAME.…`.
    func chosenNames(_ prefix: String) -> [String] {
        Set(
            names.compactMap { name in
                let parts = name.split(separator: ".")
                return parts.count > 2 && parts[0] == prefix ? String(parts[1]) : nil
            }
        ).sorted()
    }

    // MARK: Where settings come from

    private static func parse(_ flags: [String]) throws(ConfigurationError) -> [(key: String, value: String)] {
        var pairs: [(String, String)] = []
        for flag in flags {
            let parts = flag.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { throw ConfigurationError("--set \(flag) is not of the form name=value.") }
            let name = String(parts[0])
            guard Setting.named(name) != nil else { throw .unknown(name, in: "--set") }
            pairs.append((name, String(parts[1])))
        }
        return pairs
    }

    private static func value(_ pair: (key: String, value: String)) -> ConfigValue {
        if case .list = Setting.named(pair.key)?.kind {
            return ConfigValue(
                .stringArray(pair.value.split(separator: ",").map(String.init)),
                isSecret: Setting.named(pair.key)?.isSecret ?? false)
        }
        return ConfigValue(.string(pair.value), isSecret: Setting.named(pair.key)?.isSecret ?? false)
    }

    private static func settingName(ofVariable variable: String) throws(ConfigurationError) -> String {
        if let setting = Setting.all.first(where: { $0.environmentName == variable }) { return setting.name }
        let parts = variable.dropFirst("GIFREEL_".count).lowercased()
        // A chosen name stands between the setting's own words.
        for setting in Setting.all where setting.name.contains("*") {
            let words = setting.name.split(separator: "*", omittingEmptySubsequences: false)
                .map { $0.map { $0 == "." ? "_" : $0 } }
            let (head, tail) = (String(words[0]), String(words[1]))
            if parts.hasPrefix(head) && parts.hasSuffix(tail) && parts.count > head.count + tail.count {
                let chosen = parts.dropFirst(head.count).dropLast(tail.count)
                return setting.name.replacingOccurrences(of: "*", with: chosen)
            }
        }
        throw .unknown(variable, in: "the environment")
    }

    private static func namesInFile(_ file: String) throws(ConfigurationError) -> Set<String> {
        let root: Node?
        do {
            root = try Yams.compose(yaml: String(contentsOfFile: file, encoding: .utf8))
        } catch {
            throw ConfigurationError("The configuration file \(file) cannot be read: \(error).")
        }
        guard let root else { return [] }
        guard let mapping = root.mapping else {
            throw ConfigurationError("The configuration file \(file) does not hold names with values.")
        }
        var names = Set<String>()
        var open: [(String, Node.Mapping)] = [("", mapping)]
        while let (prefix, mapping) = open.popLast() {
            for (key, node) in mapping {
                let name = prefix + (key.string ?? "?")
                if let inner = node.mapping {
                    open.append((name + ".", inner))
                } else if Setting.named(name) == nil {
                    throw .unknown(name, in: file)
                } else {
                    names.insert(name)
                }
            }
        }
        return names
    }
}
