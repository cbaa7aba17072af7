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

    private let write: @Sendable (inout Settings, String, [String]) -> Rejection?
    private let read: @Sendable (Settings, String) -> [String]
    private let copy: @Sendable (Settings, inout Settings) -> Void
    private let chosenNames: @Sendable (Settings) -> [String]

    /// The text that ``set(_:chosenName:in:)`` does not accept.
    package struct Rejection: Equatable, Sendable {
        package let text: String
    }

    /// A row for a number, duration or size, which always has a range.
    init<Value: SettingValue>(
        _ name: String, _ path: any WritableKeyPath<Settings, Value> & Sendable, in range: ClosedRange<Value.Scalar>,
        unit: String? = nil, _ effect: Effect, whenUnset: String? = nil, example: String? = nil, _ summary: String
    ) where Value.Scalar: RangedScalar {
        self.init(
            name: name, Access(path), Rule(range), effect, isSecret: false, unit: unit, whenUnset: whenUnset,
            example: example, summary)
    }

    /// A row for a time in whole seconds.
    init<Value: SettingValue>(
        _ name: String, _ path: any WritableKeyPath<Settings, Value> & Sendable,
        inWholeSeconds range: ClosedRange<Duration>, _ effect: Effect, whenUnset: String? = nil, example: String? = nil,
        _ summary: String
    ) where Value.Scalar == Duration {
        self.init(
            name: name, Access(path), Rule(wholeSeconds: range), effect, isSecret: false, unit: nil, whenUnset: whenUnset,
            example: example, summary)
    }

    /// A row for text, a flag or a choice.
    init<Value: SettingValue>(
        _ name: String, _ path: any WritableKeyPath<Settings, Value> & Sendable, isSecret: Bool = false, _ effect: Effect,
        whenUnset: String? = nil, example: String? = nil, _ summary: String
    ) where Value.Scalar: UnrangedScalar {
        self.init(
            name: name, Access(path), Rule(), effect, isSecret: isSecret, unit: nil, whenUnset: whenUnset, example: example,
            summary)
    }

    /// A row for a number, duration or size of each member of a family.
    init<Member: Sendable, Value: SettingValue>(
        each family: SettingFamily<Member>, _ name: String, _ path: any WritableKeyPath<Member, Value> & Sendable,
        in range: ClosedRange<Value.Scalar>, unit: String? = nil, _ effect: Effect, whenUnset: String? = nil,
        example: String? = nil, _ summary: String
    ) where Value.Scalar: RangedScalar {
        self.init(
            name: family.name(of: name), Access(family, path), Rule(range), effect, isSecret: false, unit: unit,
            whenUnset: whenUnset, example: example, summary, family: (family.example, family.names))
    }

    /// A row for a time in whole seconds of each member of a family.
    init<Member: Sendable, Value: SettingValue>(
        each family: SettingFamily<Member>, _ name: String, _ path: any WritableKeyPath<Member, Value> & Sendable,
        inWholeSeconds range: ClosedRange<Duration>, _ effect: Effect, whenUnset: String? = nil, example: String? = nil,
        _ summary: String
    ) where Value.Scalar == Duration {
        self.init(
            name: family.name(of: name), Access(family, path), Rule(wholeSeconds: range), effect, isSecret: false, unit: nil,
            whenUnset: whenUnset, example: example, summary, family: (family.example, family.names))
    }

    /// A row for text, a flag or a choice of each member of a family.
    init<Member: Sendable, Value: SettingValue>(
        each family: SettingFamily<Member>, _ name: String, _ path: any WritableKeyPath<Member, Value> & Sendable,
        isSecret: Bool = false, _ effect: Effect, whenUnset: String? = nil, example: String? = nil, _ summary: String
    ) where Value.Scalar: UnrangedScalar {
        self.init(
            name: family.name(of: name), Access(family, path), Rule(), effect, isSecret: isSecret, unit: nil,
            whenUnset: whenUnset, example: example, summary, family: (family.example, family.names))
    }

    private init<Value: SettingValue>(
        name: String, _ access: Access<Value>, _ rule: Rule<Value.Scalar>, _ effect: Effect, isSecret: Bool, unit: String?,
        whenUnset: String?, example: String?, _ summary: String,
        family: (example: String, names: @Sendable (Settings) -> [String]) = ("", { _ in [] })
    ) {
        self.name = name
        exampleName = family.example
        chosenNames = family.names
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
                guard let scalar = Value.Scalar(settingText: text), rule.contains(scalar) else { return Rejection(text: text) }
                scalars.append(scalar)
            }
            guard let value = Value(scalars) else { return Rejection(text: texts.joined(separator: ",")) }
            access.set(&settings, chosenName, value)
            return nil
        }
        read = { access.get($0, $1).scalars.map(\.settingText) }
        copy = { source, target in access.set(&target, "", access.get(source, "")) }
    }

    /// Whether the user chooses a part of the name.
    package var hasChosenName: Bool { name.contains("*") }

    /// Sets the property from texts as they are written in files, variables and flags.
    ///
    /// - Parameters:
    ///   - texts: One text, several for a list, or none.
    ///   - chosenName: The text for `*` in the name.
    /// - Returns: The rejected text; `settings` is then unchanged.
    package func set(_ texts: [String], chosenName: String = "", in settings: inout Settings) -> Rejection? {
        if shape == .single && texts.allSatisfy(\.isEmpty) { return Rejection(text: "") }
        return write(&settings, chosenName, shape == .single ? texts : texts.filter { !$0.isEmpty })
    }

    /// The value as texts: one, several for a list, or none.
    package func texts(_ settings: Settings, chosenName: String = "") -> [String] {
        read(settings, chosenName)
    }

    /// The value as one text, list items joined by commas; empty for none.
    package func text(_ settings: Settings, chosenName: String = "") -> String {
        texts(settings, chosenName: chosenName).joined(separator: ",")
    }

    /// Sets the property in `target` to its value in `source`. Not for rows with a chosen name.
    func copyValue(from source: Settings, to target: inout Settings) {
        copy(source, &target)
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

/// Reads and writes one property of ``Settings``.
private struct Access<Value: SettingValue>: Sendable {
    let get: @Sendable (Settings, String) -> Value
    let set: @Sendable (inout Settings, String, Value) -> Void

    init(_ path: any WritableKeyPath<Settings, Value> & Sendable) {
        get = { settings, _ in settings[keyPath: path] }
        set = { settings, _, value in settings[keyPath: path] = value }
    }

    init<Member: Sendable>(_ family: SettingFamily<Member>, _ path: any WritableKeyPath<Member, Value> & Sendable) {
        let members = family.members
        let new = family.new
        get = { settings, name in (settings[keyPath: members][name] ?? new)[keyPath: path] }
        set = { settings, name, value in settings[keyPath: members][name, default: new][keyPath: path] = value }
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

/// Members with names that the user chooses, which all have the same settings: mounts, keys, presets, hooks.
struct SettingFamily<Member: Sendable>: Sendable {
    /// The name of the family, such as `mounts`.
    let name: String
    /// The name of a member in documents.
    let example: String
    let members: any WritableKeyPath<Settings, [String: Member]> & Sendable
    /// A member whose settings have their defaults.
    let new: Member

    /// The full name of a setting, with `*` for the member's name.
    ///
    /// - Parameter setting: Empty if the member itself is the value.
    func name(of setting: String) -> String { setting.isEmpty ? "\(name).*" : "\(name).*.\(setting)" }

    /// The names of the members.
    var names: @Sendable (Settings) -> [String] {
        { [members] in Array($0[keyPath: members].keys) }
    }
}
