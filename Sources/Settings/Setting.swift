/// One row of the table of settings: name, kind of value, range, default, unit, meaning, and the property that holds it.
package struct Setting: Sendable {
    /// The kind of a single value.
    package enum Kind: Sendable, Equatable {
        case text
        /// A whole number.
        case number
        /// `true` or `false`.
        case flag
        /// A number with `B`, `KiB`, `MiB`, `GiB` or `TiB`.
        case bytes
        /// A number with `ms`, `s`, `m`, `h` or `d`.
        case duration(Granularity)
        /// One of these words.
        case choice([String])
        /// `name=value`. In a file, a list of them may be a mapping.
        case pair
    }

    /// The unit that a time must be a multiple of.
    package enum Granularity: Sendable {
        case milliseconds
        case seconds
    }

    /// The number of values that a setting accepts.
    package enum Shape: Sendable {
        /// Exactly one.
        case single
        /// One, or none if it is empty.
        case optional
        /// Any number, separated by commas.
        case list
    }

    /// When a new value takes effect.
    package enum Effect: String, Sendable {
        /// On SIGHUP.
        case live
        /// After a restart only: the value is part of a socket, thread or file that lives as long as the process.
        case restart
    }

    /// The name in files and flags, such as `sources.allow_private`. `*` stands for a name that the user chooses.
    package let name: String
    package let kind: Kind
    package let shape: Shape
    package let effect: Effect
    /// Whether the value must never be printed or logged.
    package let isSecret: Bool
    /// The unit of a number; nil if the value carries its unit or has none.
    package let unit: String?
    /// The words for a missing value; nil if none are needed.
    package let whenUnset: String?
    /// A value for the documentation of a setting without a default.
    package let example: String?
    /// One sentence or two about the meaning, without markup.
    package let summary: String
    /// The bounds of a number, size or time, as texts.
    package let range: (lower: String, upper: String)?
    /// What a value must be, such as “a whole number from 0 to 65535”.
    package let expectation: String

    /// The text for `*` in documents.
    let exampleName: String

    private let write: @Sendable (inout Settings, String, [String]) -> String?
    private let read: @Sendable (Settings, String) -> [String]
    private let chosenNames: @Sendable (Settings) -> [String]

    /// A row for a number, duration or size, which always has a range.
    init<Owner: SettingOwner, Value: SettingValue>(
        each owner: Owner = WholeSettings(), _ name: String, _ path: any WritableKeyPath<Owner.Member, Value> & Sendable,
        in range: ClosedRange<Value.Scalar>, unit: String? = nil, _ effect: Effect, whenUnset: String? = nil,
        example: String? = nil, _ summary: String
    ) where Value.Scalar: RangedScalar {
        self.init(
            owner, name, path, Rule(range), effect, isSecret: false, unit: unit, whenUnset: whenUnset, example: example,
            summary)
    }

    /// A row for a time in whole seconds.
    init<Owner: SettingOwner, Value: SettingValue>(
        each owner: Owner = WholeSettings(), _ name: String, _ path: any WritableKeyPath<Owner.Member, Value> & Sendable,
        inWholeSeconds range: ClosedRange<Duration>, _ effect: Effect, whenUnset: String? = nil, example: String? = nil,
        _ summary: String
    ) where Value.Scalar == Duration {
        self.init(
            owner, name, path, Rule(wholeSeconds: range), effect, isSecret: false, unit: nil, whenUnset: whenUnset,
            example: example, summary)
    }

    /// A row for text, a flag or a choice.
    init<Owner: SettingOwner, Value: SettingValue>(
        each owner: Owner = WholeSettings(), _ name: String, _ path: any WritableKeyPath<Owner.Member, Value> & Sendable,
        isSecret: Bool = false, _ effect: Effect, whenUnset: String? = nil, example: String? = nil, _ summary: String
    ) where Value.Scalar: UnrangedScalar {
        self.init(
            owner, name, path, Rule(), effect, isSecret: isSecret, unit: nil, whenUnset: whenUnset, example: example, summary)
    }

    private init<Owner: SettingOwner, Value: SettingValue>(
        _ owner: Owner, _ name: String, _ path: any WritableKeyPath<Owner.Member, Value> & Sendable,
        _ rule: Rule<Value.Scalar>, _ effect: Effect, isSecret: Bool, unit: String?, whenUnset: String?, example: String?,
        _ summary: String
    ) {
        self.name = owner.fullName(of: name)
        exampleName = owner.example
        chosenNames = { owner.names(in: $0) }
        kind = rule.kind
        shape = Value.shape
        self.effect = effect
        self.isSecret = isSecret
        self.unit = unit
        self.whenUnset = whenUnset
        self.example = example
        self.summary = summary
        range = rule.range
        expectation = rule.expectation
        write = { settings, chosenName, texts in
            var scalars: [Value.Scalar] = []
            for text in texts {
                guard let scalar = Value.Scalar(settingText: text), rule.contains(scalar) else { return text }
                scalars.append(scalar)
            }
            guard let value = Value(scalars) else { return texts.joined(separator: ",") }
            owner.change(chosenName, in: &settings) { $0[keyPath: path] = value }
            return nil
        }
        read = { owner.member($1, in: $0)[keyPath: path].scalars.map(\.settingText) }
    }

    /// Whether the user chooses a part of the name.
    package var hasChosenName: Bool { name.contains("*") }

    /// Sets the property from texts as they are written in files, variables and flags.
    ///
    /// - Parameters:
    ///   - texts: One text, several for a list, or none.
    ///   - chosenName: The text for `*` in the name.
    /// - Returns: The text that is not accepted, and leaves `settings` unchanged; nil if the property is set.
    package func set(_ texts: [String], chosenName: String = "", in settings: inout Settings) -> String? {
        if shape == .single && texts.allSatisfy(\.isEmpty) { return "" }
        return write(&settings, chosenName, shape == .single ? texts : texts.filter { !$0.isEmpty })
    }

    /// The value as texts: one, several for a list, or none.
    package func texts(_ settings: Settings, chosenName: String = "") -> [String] {
        read(settings, chosenName)
    }

    /// The values in `settings` by full name: one, or one per member of the setting's family.
    func values(in settings: Settings) -> [String: [String]] {
        let pairs = names(in: settings).map { ($0.name, texts(settings, chosenName: $0.chosenName)) }
        return Dictionary(uniqueKeysWithValues: pairs)
    }

    /// The setting's full names in `settings`: one, or one per member of its family.
    package func names(in settings: Settings) -> [(name: String, chosenName: String)] {
        guard hasChosenName else { return [(name, "")] }
        return chosenNames(settings).sorted().map { (name.replacing("*", with: $0), $0) }
    }
}

/// The values of a type that a setting accepts.
private struct Rule<Scalar: SettingScalar>: Sendable {
    let kind: Setting.Kind
    let contains: @Sendable (Scalar) -> Bool
    let range: (lower: String, upper: String)?
    let expectation: String

    init() where Scalar: UnrangedScalar {
        kind = Scalar.kind
        contains = { _ in true }
        range = nil
        expectation = Scalar.expectation
    }

    init(_ range: ClosedRange<Scalar>) where Scalar: RangedScalar {
        kind = Scalar.kind
        contains = { range.contains($0) }
        self.range = (range.lowerBound.settingText, range.upperBound.settingText)
        expectation = Scalar.expectation(range)
    }

    /// - Parameter range: Its bounds are whole seconds.
    init(wholeSeconds range: ClosedRange<Duration>) where Scalar == Duration {
        let lower = range.lowerBound == .zero ? "0s" : range.lowerBound.settingText
        let upper = range.upperBound.settingText
        kind = .duration(.seconds)
        contains = { range.contains($0) && $0.components.attoseconds == 0 }
        self.range = (lower, upper)
        expectation = "a time from \(lower) to \(upper) in whole seconds, such as 10s"
    }
}

/// A type whose properties hold the values of settings.
protocol SettingOwner: Sendable {
    associatedtype Member: Sendable

    /// The name of a member in documents.
    var example: String { get }
    func fullName(of setting: String) -> String
    /// The names that the user has chosen.
    func names(in settings: Settings) -> [String]
    func member(_ name: String, in settings: Settings) -> Member
    func change(_ name: String, in settings: inout Settings, _ change: (inout Member) -> Void)
}

/// ``Settings``, whose settings have no chosen name.
struct WholeSettings: SettingOwner {
    let example = ""

    func fullName(of setting: String) -> String { setting }
    func names(in settings: Settings) -> [String] { [] }
    func member(_ name: String, in settings: Settings) -> Settings { settings }
    func change(_ name: String, in settings: inout Settings, _ change: (inout Settings) -> Void) { change(&settings) }
}

/// Members with names that the user chooses, which all have the same settings: mounts, keys, presets, hooks.
struct SettingFamily<Member: Sendable>: SettingOwner {
    /// The name of the family, such as `mounts`.
    let name: String
    let example: String
    let members: any WritableKeyPath<Settings, [String: Member]> & Sendable
    /// A member whose settings have their defaults.
    let new: Member

    /// The full name of a setting, with `*` for the member's name.
    ///
    /// - Parameter setting: Empty if the member itself is the value.
    func fullName(of setting: String) -> String { setting.isEmpty ? "\(name).*" : "\(name).*.\(setting)" }

    func names(in settings: Settings) -> [String] { Array(settings[keyPath: members].keys) }

    func member(_ name: String, in settings: Settings) -> Member { settings[keyPath: members][name] ?? new }

    func change(_ name: String, in settings: inout Settings, _ change: (inout Member) -> Void) {
        change(&settings[keyPath: members][name, default: new])
    }
}
