package import Fetch
package import HTTP
package import Media
package import Renditions
package import SystemIO

/// A single value as it is written in files, environment variables and flags.
package protocol SettingScalar: SettingValue where Scalar == Self {
    static var kind: Setting.Kind { get }
    /// Nil if the text is not a valid value.
    init?(settingText text: String)
    /// The text from which ``init(settingText:)`` creates an equal value.
    var settingText: String { get }
}

/// A scalar with an order. Its row in the table must give a range.
package protocol RangedScalar: SettingScalar, Comparable {
    /// The description of a value in `range`, for error messages.
    static func expectation(_ range: ClosedRange<Self>) -> String
}

/// A scalar without an order.
package protocol UnrangedScalar: SettingScalar {
    /// The description of a value, for error messages.
    static var expectation: String { get }
}

/// One of a few words.
package protocol SettingChoice: UnrangedScalar, CaseIterable, RawRepresentable<String> {}

/// What a setting's property can be: a scalar, an optional scalar or a list of scalars.
package protocol SettingValue: Equatable, Sendable {
    associatedtype Scalar: SettingScalar
    static var shape: Setting.Shape { get }
    /// Nil if the number of scalars does not fit the type.
    init?(_ scalars: [Scalar])
    var scalars: [Scalar] { get }
}

extension SettingScalar {
    package static var shape: Setting.Shape { .single }
    package init?(_ scalars: [Self]) {
        guard let first = scalars.first, scalars.count == 1 else { return nil }
        self = first
    }
    package var scalars: [Self] { [self] }
}

extension Optional: SettingValue where Wrapped: SettingScalar {
    package static var shape: Setting.Shape { .optional }
    package init?(_ scalars: [Wrapped]) {
        guard scalars.count <= 1 else { return nil }
        self = scalars.first
    }
    package var scalars: [Wrapped] { map { [$0] } ?? [] }
}

extension Array: SettingValue where Element: SettingScalar {
    package static var shape: Setting.Shape { .list }
    package init?(_ scalars: [Element]) { self = scalars }
    package var scalars: [Element] { self }
}

extension String: UnrangedScalar {
    package static var kind: Setting.Kind { .text }
    package static var expectation: String { "UTF-8 text of at least one character, without control characters" }
    package init?(settingText text: String) {
        // A replacement character stands for bytes of a flag or variable that are not UTF-8: a key would be another key.
        guard text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7f && $0 != "\u{fffd}" }) else { return nil }
        self = text
    }
    package var settingText: String { self }
}

extension Bool: UnrangedScalar {
    package static var kind: Setting.Kind { .flag }
    package static var expectation: String { "true or false" }
    package init?(settingText text: String) { self.init(text) }
    package var settingText: String { description }
}

extension Int: RangedScalar {
    package static var kind: Setting.Kind { .number }
    package static func expectation(_ range: ClosedRange<Int>) -> String {
        "a whole number from \(range.lowerBound) to \(range.upperBound)"
    }
    package init?(settingText text: String) { self.init(text) }
    package var settingText: String { description }
}

extension Duration: RangedScalar {
    package static var kind: Setting.Kind { .duration(.milliseconds) }
    package static func expectation(_ range: ClosedRange<Duration>) -> String {
        "a time from \(range.lowerBound.settingText) to \(range.upperBound.settingText), such as 10s"
    }
}

extension ByteCount: RangedScalar {
    package static var kind: Setting.Kind { .bytes }
    package static func expectation(_ range: ClosedRange<ByteCount>) -> String {
        "a size from \(range.lowerBound.settingText) to \(range.upperBound.settingText), such as 20MiB"
    }
}

extension SettingChoice {
    package static var kind: Setting.Kind { .choice(allCases.map(\.rawValue)) }
    package static var expectation: String { "one of " + allCases.map(\.rawValue).joined(separator: ", ") }
    package init?(settingText text: String) { self.init(rawValue: text) }
    package var settingText: String { rawValue }
}

/// The name and the value of an option, as `name=value`.
package struct OptionPair: UnrangedScalar {
    package static var kind: Setting.Kind { .pair }
    package static var expectation: String { "options of the form name=value" }
    package let name: String
    package let value: String

    package init?(settingText text: String) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty, String(settingText: text) != nil else { return nil }
        name = String(parts[0])
        value = String(parts[1])
    }

    package var settingText: String { "\(name)=\(value)" }
}

/// A value that its type's own initializer parses.
package protocol SettingPattern: UnrangedScalar, CustomStringConvertible {
    init?(_ text: String)
}

extension SettingPattern {
    package static var kind: Setting.Kind { .text }
    package init?(settingText text: String) { self.init(text) }
    package var settingText: String { description }
}

extension SourcePattern: SettingPattern {
    package static var expectation: String { "a pattern such as *.example.com/media/" }
}

extension AddressException: SettingPattern {
    package static var expectation: String { "an address, network or host" }
}

extension TranslationPrefix: SettingPattern {
    package static var expectation: String { "an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits" }
}

extension ClientPattern: SettingPattern {
    package static var expectation: String { "an address, a network or unix" }
}

extension SourceFormat: UnrangedScalar {
    package static var kind: Setting.Kind { .choice(allCases.map(\.name)) }
    package static var expectation: String { "one of " + allCases.map(\.name).joined(separator: ", ") }
    package init?(settingText text: String) {
        guard let format = Self.allCases.first(where: { $0.name == text }) else { return nil }
        self = format
    }
    package var settingText: String { name }
}

extension ForwardedField: SettingChoice {}

extension FlashLimit: SettingChoice {}

extension LogFormat: SettingChoice {}

/// The reason why settings cannot be used. The description is one line that names the setting, file, variable or flag.
package struct SettingsError: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }

    /// The error for a value that a setting does not accept. The value of a secret is not part of the message.
    ///
    /// - Parameters:
    ///   - expectation: What a value must be; continues “must be”.
    ///   - origin: The source of the value, if known.
    package static func wrongValue(
        _ name: String, _ value: String, _ expectation: String, origin: String? = nil
    ) -> SettingsError {
        let isSecret = Setting.named(name)?.isSecret ?? false
        // A block of YAML has several lines.
        let line = String(withoutCredentials(value).map { $0.isNewline ? " " : $0 })
        let shown = isSecret ? "has a wrong value" : value.isEmpty ? "is empty" : "is “\(line)”"
        return SettingsError("\(name)\(origin.map { " (\($0))" } ?? "") \(shown); it must be \(expectation).")
    }

    /// The text, with the user, the password and the query of a URL masked: each may hold a secret.
    static func withoutCredentials(_ text: String) -> String {
        guard let scheme = text.firstRange(of: "://") else { return text }
        let rest = text[scheme.upperBound...]
        // A password may contain every sign, so it ends at the last one.
        let host = rest.lastIndex(of: "@") ?? rest.startIndex
        let query = rest[host...].firstIndex(of: "?") ?? rest.endIndex
        let masks = (user: host == rest.startIndex ? "" : "***", query: query == rest.endIndex ? "" : "?***")
        return "\(text[..<scheme.upperBound])\(masks.user)\(rest[host..<query])\(masks.query)"
    }
}
