internal import Media

/// The options of renditions (docs/api.md), sorted by name, which is their order in canonical texts.
package enum RenditionOption: String, Sendable, CaseIterable {
    case bg
    case chroma
    case codec
    case end
    case fit
    case fps
    case frame
    case gravity
    case height
    case loops
    case maxBytes = "max_bytes"
    case preset
    case quality
    case speed
    case start
    case tune
    case undither
    case width
    case zoom

    /// Whether the option has an effect on renditions of the format. A page has the options of its video and its poster, but for the
    /// codec: it names every encoding that is stored.
    package func applies(to format: Rendition.Format) -> Bool {
        switch format {
        case .output(let output): output.traits.options.contains(group)
        case .html: self != .codec && self != .preset
        case .original: false
        }
    }

    /// The value of an option that the content of the source decides.
    private static let auto = "auto"

    /// The value of the quality of formats that are lossless without another.
    package static let lossless = "lossless"

    /// The group of the option. A format has all options of a group or none.
    private var group: OptionGroups {
        switch self {
        case .width, .height, .fit, .gravity: .size
        case .bg: .background
        case .chroma: .chroma
        case .quality: .quality
        case .speed, .fps, .start, .end, .loops: .time
        case .frame: .frame
        case .codec: .codec
        case .maxBytes: .budget
        case .preset: .preset
        case .undither, .zoom: .pixels
        case .tune: .tune
        }
    }

    /// The valid values, as the end of a sentence.
    private var expectation: String {
        switch self {
        case .bg: "must be a colour of six hexadecimal digits"
        case .chroma: "must be auto or 420"
        case .codec: "must be \(VideoCodec.offered.map(\.traits.name).joined(separator: " or "))"
        case .end, .start: "must be a number of seconds, at most 86400"
        case .fit: "must be contain, cover, fill or pad"
        case .fps: "must be a number from 1 to 60"
        case .frame: "must be a whole number from 0 on, or auto"
        case .gravity: "must be center, a side such as top, a corner such as top-left, or x:y with numbers from 0 to 1"
        case .height, .width: "must be a whole number from 2 to 4096"
        case .loops: "must be a whole number from 1 to 20"
        case .maxBytes: "must be a whole number from 1000 to 100000000"
        case .preset: "must be sticker"
        case .quality: "must be a whole number from 1 to 100"
        case .speed: "must be a number from 0.1 to 10"
        case .tune: "must be auto, film, screen or pixel"
        case .undither: "must be auto, 0 or 1"
        case .zoom: "must be a whole number from 1 to 8"
        }
    }

    /// Parses the option's value. Numbers are rounded: `speed` and `fps` to thousandths, `start` and `end` to hundredths of a
    /// second.
    ///
    /// - Parameter format: That of the rendition; nil accepts the values of all formats.
    /// - Throws: ``RenditionError/invalidOption(name:reason:)`` if the text is not a valid value.
    func read(_ text: String, of format: Rendition.Format?, into options: inout TranscodeOptions) throws(RenditionError) {
        switch self {
        case .bg: options.background = try required(RGB(hex: text))
        case .chroma: options.chroma = try required(TranscodeOptions.Chroma(name: text))
        case .codec: options.codec = try required(VideoCodec(name: text))
        case .end: options.time.end = try required(DecimalText.scaled(text, by: 100), 0...8_640_000)
        case .fit: options.size.fit = try required(SizeOptions.Fit(name: text))
        case .fps:
            options.time.ceiling = try required(DecimalText.scaled(text, by: TimeOptions.thousand), 1000...60_000)
        case .frame: options.frame = text == Self.auto ? .auto : .number(try required(DecimalText.whole(text)))
        case .gravity: options.size.gravity = try required(Gravity(name: text))
        case .height: options.size.height = try required(DecimalText.whole(text), 2...4096)
        case .loops: options.time.loops = try required(DecimalText.whole(text), 1...20)
        case .maxBytes: options.maxBytes = try required(DecimalText.whole(text), 1000...100_000_000)
        case .preset: options.preset = try required(TranscodeOptions.Preset(name: text))
        case .quality:
            let mayBeLossless = format?.isLosslessByDefault ?? true
            options.chosenQuality =
                mayBeLossless && text == Self.lossless ? nil : try required(DecimalText.whole(text), 1...100)
            format?.omitDefaults(&options)
        case .speed: options.time.speed = try required(DecimalText.scaled(text, by: TimeOptions.thousand), 100...10_000)
        case .start: options.time.start = try required(DecimalText.scaled(text, by: 100), 0...8_640_000)
        case .tune: options.tune = try required(TranscodeOptions.Tune(name: text))
        case .undither:
            options.undither = try required(TranscodeOptions.Undithering(name: text))
            format?.omitDefaults(&options)
        case .width: options.size.width = try required(DecimalText.whole(text), 2...4096)
        case .zoom: options.zoom = try required(DecimalText.whole(text), 1...8)
        }
    }

    /// The option's value in canonical form; nil for the default.
    func text(in options: TranscodeOptions) -> String? {
        let defaults = TranscodeOptions()
        switch self {
        case .bg: return options.background == defaults.background ? nil : options.background.hex
        case .chroma: return options.chroma == defaults.chroma ? nil : options.chroma.name
        case .codec: return options.codec == defaults.codec ? nil : options.codec.traits.name
        case .end: return options.time.end.map { DecimalText.text($0, by: 100) }
        case .fit: return options.size.fit == defaults.size.fit ? nil : options.size.fit.name
        case .fps: return options.time.ceiling.map { DecimalText.text($0, by: TimeOptions.thousand) }
        case .frame: return options.frame == defaults.frame ? nil : options.frame.number.map(String.init) ?? Self.auto
        case .gravity: return options.size.gravity == defaults.size.gravity ? nil : options.size.gravity.name
        case .height: return options.size.height.map(String.init)
        case .loops: return options.time.loops == defaults.time.loops ? nil : String(options.time.loops)
        case .maxBytes: return options.maxBytes.map(String.init)
        case .preset: return options.preset?.name
        case .quality: return options.chosenQuality.map(String.init)
        case .speed:
            return options.time.speed == defaults.time.speed
                ? nil : DecimalText.text(options.time.speed, by: TimeOptions.thousand)
        case .start: return options.time.start == defaults.time.start ? nil : DecimalText.text(options.time.start, by: 100)
        case .tune: return options.tune == defaults.tune ? nil : options.tune.name
        case .undither: return options.undither == defaults.undither ? nil : options.undither.name
        case .width: return options.size.width.map(String.init)
        case .zoom: return options.zoom == defaults.zoom ? nil : String(options.zoom)
        }
    }

    /// Copies the option's value.
    func copy(from source: TranscodeOptions, to options: inout TranscodeOptions) {
        switch self {
        case .bg: options.background = source.background
        case .chroma: options.chroma = source.chroma
        case .codec: options.codec = source.codec
        case .end: options.time.end = source.time.end
        case .fit: options.size.fit = source.size.fit
        case .fps: options.time.ceiling = source.time.ceiling
        case .frame: options.frame = source.frame
        case .gravity: options.size.gravity = source.size.gravity
        case .height: options.size.height = source.size.height
        case .loops: options.time.loops = source.time.loops
        case .maxBytes: options.maxBytes = source.maxBytes
        case .preset: options.preset = source.preset
        case .quality: options.chosenQuality = source.chosenQuality
        case .speed: options.time.speed = source.time.speed
        case .start: options.time.start = source.time.start
        case .tune: options.tune = source.tune
        case .undither: options.undither = source.undither
        case .width: options.size.width = source.size.width
        case .zoom: options.zoom = source.zoom
        }
    }

    private func required<Value>(_ value: Value?) throws(RenditionError) -> Value {
        guard let value else { throw .invalidOption(name: rawValue, reason: expectation) }
        return value
    }

    private func required(_ value: Int?, _ range: ClosedRange<Int>) throws(RenditionError) -> Int {
        guard let value, range.contains(value) else { throw .invalidOption(name: rawValue, reason: expectation) }
        return value
    }
}
