internal import Media
internal import SystemIO

/// Named sets of options for requests: `preset=card` (docs/api.md).
///
/// A preset applies to every format: options that have no effect on the format of a request are left out. The options of the
/// request override it. Keys name the options and not the preset, so a change of the settings leaves no wrong rendition in the
/// cache. The settings define presets, and override those of ``platforms``.
package struct RenditionPresets: Sendable, Equatable {
    /// An option with its value.
    package struct Option: Sendable, Equatable {
        package let name: String
        package let value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The reason why a preset cannot be added.
    package enum Invalid: Error, Sendable, Equatable {
        /// The interface defines a preset of the same name.
        case builtInName
        /// An option is unknown or out of range, or options contradict each other.
        case option(RenditionError)
    }

    private var options = Self.platforms

    package init() {}

    /// The limits that platforms publish for animated stickers.
    ///
    /// - WhatsApp (github.com/WhatsApp/stickers): WebP, 512 × 512 pixels, 500 KB, 10 seconds.
    /// - Discord (discord.com/developers/docs/resources/sticker): GIF, 320 × 320 pixels, 512 KB, 5 seconds.
    ///
    /// KB stands for 1000 or 1024 bytes there; 1000 satisfies both.
    private static let platforms: [String: [Option]] = [
        "whatsapp": square(512, maxBytes: 500_000, seconds: 10), "discord": square(320, maxBytes: 512_000, seconds: 5),
    ]

    private static func square(_ side: Int, maxBytes: Int, seconds: Int) -> [Option] {
        [
            Option(name: "width", value: "\(side)"), Option(name: "height", value: "\(side)"),
            Option(name: "fit", value: "pad"),
            Option(name: "end", value: "\(seconds)"), Option(name: "max_bytes", value: "\(maxBytes)"),
        ]
    }

    /// The names of all presets, including those that the interface defines.
    package var names: [String] { (options.keys + Self.builtIn).sorted() }

    /// Whether a preset stands for other options.
    package func defines(_ name: String) -> Bool { options[name] != nil }

    private static let builtIn = TranscodeOptions.Preset.allCases.map(\.name)

    /// Adds a preset.
    package mutating func add(_ name: String, _ new: [Option]) throws(Invalid) {
        guard !Self.builtIn.contains(name) else { throw .builtInName }
        try translating(try define(name, as: new), to: Invalid.option)
    }

    /// Checks the options, each alone and all together, for every format, and defines a preset with them.
    private mutating func define(_ name: String, as new: [Option]) throws(RenditionError) {
        guard Set(new.map(\.name)).count == new.count else {
            let twice = new.indices.first { index in new[..<index].contains { $0.name == new[index].name } }
            throw .invalidOption(name: twice.map { new[$0].name } ?? "", reason: "is given twice")
        }
        for option in new {
            guard let known = RenditionOption(rawValue: option.name) else {
                throw .invalidOption(name: option.name, reason: RenditionOption.isUnknown(option.name))
            }
            guard known != .facts else { throw .invalidOption(name: option.name, reason: "cannot be part of a preset") }
            var values = TranscodeOptions.standard
            try known.read(option.value, of: nil, into: &values)
        }
        options[name] = new
        for format in Rendition.Format.offered where Self.hasOptions(format) {
            try rendition(Rendition(format: format), preset: name).check()
        }
    }

    /// Returns the rendition that a request with a preset means.
    ///
    /// - Parameter plain: The rendition that a request without options means.
    /// - Throws: ``RenditionError/invalidOption(name:reason:)`` for an option that is unknown, has no effect or is out of
    ///   range.
    func rendition(
        _ plain: Rendition, preset name: String, _ explicit: [Option] = []
    ) throws(RenditionError) -> Rendition {
        guard Self.hasOptions(plain.format) else {
            throw .invalidOption(name: RenditionOption.preset.rawValue, reason: "has no effect on \(plain.format.rawValue)")
        }
        var rendition = plain
        for option in options[name] ?? [] where RenditionOption(rawValue: option.name)?.applies(to: plain.format) == true {
            try rendition.set(option.name, to: option.value)
        }
        for option in explicit { try rendition.set(option.name, to: option.value) }
        return rendition
    }

    private static func hasOptions(_ format: Rendition.Format) -> Bool {
        // `json` has the option `facts`, but no preset.
        RenditionOption.allCases.contains { $0 != .facts && $0.applies(to: format) }
    }

    /// The reason for which a value of the option is refused.
    func refusal(of name: String) -> RenditionError {
        .invalidOption(
            name: RenditionOption.preset.rawValue,
            reason: "names “\(name.prefix(64))”, which does not exist; the presets are \(names.joined(separator: ", "))")
    }
}

extension RenditionDefaults {
    /// The rendition that a request for a format with options means.
    ///
    /// - Parameter preset: The preset that the settings define and the request names; nil for none.
    /// - Throws: ``RenditionError/invalidOption(name:reason:)``, including for combinations that are not allowed.
    package func rendition(
        _ format: Rendition.Format, preset: String? = nil, _ options: [RenditionPresets.Option]
    ) throws(RenditionError) -> Rendition {
        var rendition = rendition(format)
        if let preset {
            rendition = try presets.rendition(rendition, preset: preset, options)
        } else {
            for option in options { try rendition.set(option.name, to: option.value) }
        }
        try rendition.check()
        return rendition
    }

    /// The rendition for a format and options. The options may contain `preset`.
    ///
    /// - Throws: ``RenditionError/invalidOption(name:reason:)``, including for combinations that are not allowed.
    package func rendition(
        _ format: Rendition.Format, of options: [RenditionPresets.Option]
    ) throws(RenditionError) -> Rendition {
        let name = RenditionOption.preset.rawValue
        guard let named = options.first(where: { $0.name == name }), let preset = try preset(named: named.value) else {
            return try rendition(format, options)
        }
        return try rendition(format, preset: preset, options.filter { $0.name != name })
    }

    /// The preset with the name, if it stands for other options. Nil for one with rules of its own, such as `sticker`.
    ///
    /// - Throws: ``RenditionError/invalidOption(name:reason:)`` if there is no preset of that name.
    package func preset(named value: String) throws(RenditionError) -> String? {
        if presets.defines(value) { return value }
        guard presets.names.contains(value) else { throw presets.refusal(of: value) }
        return nil
    }

    /// The options of an address that identifies the rendition, with a preset where possible.
    ///
    /// - Parameter preset: The preset that the request for the address named.
    package func options(of rendition: Rendition, preset: String?) -> [(name: String, value: String)] {
        let plain = options(of: rendition)
        guard let preset, let meant = try? self.rendition(rendition.format, preset: preset, []) else { return plain }
        let known = Dictionary(uniqueKeysWithValues: meant.canonicalOptions)
        var wanted = Dictionary(uniqueKeysWithValues: rendition.canonicalOptions)
        let codec = RenditionOption.codec.rawValue
        if known[codec] != nil, wanted[codec] == nil { wanted[codec] = rendition.options.codec.traits.name }
        // Apart from the codec, an address cannot reset an option of the preset to its default.
        guard known.keys.allSatisfy({ wanted[$0] != nil }) else { return plain }
        let others = wanted.filter { known[$0.key] != $0.value }.map { (name: $0.key, value: $0.value) }
        guard !others.contains(where: { $0.name == RenditionOption.preset.rawValue }) else { return plain }
        return (others + [(name: RenditionOption.preset.rawValue, value: preset)]).sorted { $0.name < $1.name }
    }
}

/// The values of omitted options where the settings of a service differ from the defaults of the interface.
///
/// Keys name every option that differs from the interface, so a change of the settings changes no stored rendition. Addresses
/// have to name the options that differ from these defaults.
package struct RenditionDefaults: Sendable, Equatable {
    /// Whether dither is removed where it certainly lies on a film.
    package var undithers: Bool
    /// Options that requests name together.
    package var presets: RenditionPresets

    package init(undithers: Bool = true, presets: RenditionPresets = RenditionPresets()) {
        self.undithers = undithers
        self.presets = presets
    }

    /// The rendition that a request for a format without options means.
    package func rendition(_ format: Rendition.Format) -> Rendition {
        applied(to: Rendition(format: format))
    }

    /// The rendition with these defaults.
    package func applied(to rendition: Rendition) -> Rendition {
        if undithers { return rendition }
        var rendition = rendition
        rendition.keepDither()
        return rendition
    }

    /// The options of an address that identifies the rendition, sorted by name.
    package func options(of rendition: Rendition) -> [(name: String, value: String)] {
        let usual = self.rendition(rendition.format).options.undither
        guard usual != TranscodeOptions.standard.undither else { return rendition.canonicalOptions }
        let name = RenditionOption.undither.rawValue
        var options = rendition.canonicalOptions.filter { $0.name != name }
        if rendition.options.undither != usual { options.append((name, rendition.options.undither.name)) }
        return options.sorted { $0.name < $1.name }
    }
}
