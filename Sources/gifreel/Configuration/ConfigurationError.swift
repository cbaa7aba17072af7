/// Why the service cannot start with the settings it was given; the description names the setting.
package struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }

    /// A value that a setting cannot have.
    static func wrongValue(_ name: String, _ value: String, _ expectation: String) -> ConfigurationError {
        let isSecret = Setting.named(name)?.isSecret ?? false
        return ConfigurationError("\(name) is \(isSecret ? "wrong" : "“\(value)”"): it must be \(expectation).")
    }

    /// A name that no setting has.
    static func unknown(_ name: String, in place: String) -> ConfigurationError {
        ConfigurationError("There is no setting called \(name) (in \(place)).")
    }
}
