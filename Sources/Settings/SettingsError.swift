/// Why settings cannot be used. The description is one line that names the setting, file, variable or flag.
package struct SettingsError: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }

    /// The error for a value that a setting does not accept. The value of a secret is not part of the message.
    ///
    /// - Parameters:
    ///   - name: The setting's full name.
    ///   - value: The value as it was written.
    ///   - expectation: What a value must be; continues “must be”.
    ///   - origin: Where the value comes from, if known.
    package static func wrongValue(
        _ name: String, _ value: String, _ expectation: String, origin: String? = nil
    ) -> SettingsError {
        let isSecret = Setting.named(name)?.isSecret ?? false
        let shown = isSecret ? "has a wrong value" : value.isEmpty ? "is empty" : "is “\(value)”"
        return SettingsError("\(name)\(origin.map { " (\($0))" } ?? "") \(shown); it must be \(expectation).")
    }
}
