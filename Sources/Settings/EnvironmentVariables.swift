/// The environment variables that begin with `GIFREEL_`, by their meaning.
struct EnvironmentVariables {
    /// The values of settings, by full name.
    private(set) var entries: [String: SettingEntry] = [:]
    /// Variables that Kubernetes injects for services named `gifreel` or `gifreel-…`, sorted.
    private(set) var injected: [String] = []

    /// - Throws: ``SettingsError`` for a variable of neither kind, for two that set the same setting, and for an empty secret.
    init(_ environment: [String: String]) throws(SettingsError) {
        for (variable, value) in environment.sorted(by: { $0.key < $1.key }) where variable.hasPrefix("GIFREEL_") {
            // For a service named `gifreel-server`, one injected variable has the name of a setting.
            if Self.isInjectedAddress(variable, value) {
                injected.append(variable)
            } else if let name = Self.settingName(variable) {
                entries[name] = try SettingEntry(origin: variable, parts: [.text(value)]).checked(as: name)
            } else if let name = Self.secretName(variable) {
                // The variable without `_FILE` comes before this one in the order of names.
                guard entries[name] == nil else {
                    let other = variable.dropLast(Self.fileSuffix.count)
                    throw SettingsError("\(variable) and \(other) are both set; unset one of them.")
                }
                guard !value.isEmpty else {
                    throw SettingsError("The environment variable \(variable) is empty; it must be the path of a file.")
                }
                entries[name] = SettingEntry(origin: variable, parts: [.file(value)])
            } else if Self.isInjected(variable, value) {
                injected.append(variable)
            } else {
                let hint = Setting.nearestVariable(to: variable).map { "Did you mean \($0)?" } ?? "Unset it."
                throw SettingsError(
                    "The environment variable \(variable) sets no setting; each variable that begins with GIFREEL_ must. \(hint)"
                )
            }
        }
    }

    private static let fileSuffix = "_FILE"

    /// The full name of the secret whose file a variable names; nil for none.
    private static func secretName(_ variable: String) -> String? {
        guard variable.hasSuffix(fileSuffix), let name = settingName(String(variable.dropLast(fileSuffix.count))) else {
            return nil
        }
        return Setting.named(name)?.isSecret == true ? name : nil
    }

    /// The full name of the setting that a variable sets; nil for none.
    private static func settingName(_ variable: String) -> String? {
        for setting in Setting.all {
            guard setting.hasChosenName else {
                if setting.environmentName == variable { return setting.name }
                continue
            }
            // The chosen name is between the parts around `*`.
            let parts = setting.environmentName.split(separator: "NAME", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, variable.hasPrefix(parts[0]), variable.hasSuffix(parts[1]),
                variable.count > parts[0].count + parts[1].count
            else { continue }
            let chosen = variable.dropFirst(parts[0].count).dropLast(parts[1].count).lowercased()
            return setting.name.replacing("*", with: chosen)
        }
        return nil
    }

    private static let protocols = ["TCP", "UDP", "SCTP"]

    /// Whether the variable is the `…_PORT` that Kubernetes injects for a service: `tcp://10.0.0.1:8080`.
    private static func isInjectedAddress(_ variable: String, _ value: String) -> Bool {
        // `GIFREEL_PORT=9000` is a mistake of the operator.
        variable.hasSuffix("_PORT") && protocols.contains { value.hasPrefix($0.lowercased() + "://") }
    }

    /// Whether Kubernetes injects the variable into the containers of a namespace with a service named `gifreel` or
    /// `gifreel-…`: the variables of Docker links, and `…_SERVICE_HOST` and `…_SERVICE_PORT[_NAME]`.
    private static func isInjected(_ variable: String, _ value: String) -> Bool {
        let words = variable.split(separator: "_", omittingEmptySubsequences: false).dropFirst().map(String.init)
        // The service's own name may contain the words that follow it.
        return words.indices.contains { start in
            let rest = Array(words[start...])
            return switch rest.first {
            case "SERVICE": rest == ["SERVICE", "HOST"] || rest.dropFirst().first == "PORT"
            case "PORT" where rest.count == 3 || rest.count == 4:
                UInt16(rest[1]) != nil && protocols.contains(rest[2])
                    && (rest.count == 3 || ["PROTO", "PORT", "ADDR"].contains(rest[3]))
            default: false
            }
        }
    }
}
