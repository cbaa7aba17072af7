internal import Media

/// The options of renditions (docs/api.md), sorted by name, which is their order in canonical texts.
package enum RenditionOption: String, Sendable, CaseIterable {
    case bframes
    case bg
    case chroma
    case codec
    case end
    case facts
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

    /// The definition of each option: its group, the property that holds the value, and the form of its texts. A format has all
    /// options of a group or none. Everything else derives from this.
    private var row: OptionRow {
        switch self {
        case .bframes: OptionRow(.codec, \.bframes, .words())
        case .bg: OptionRow(.background, \.background, .colour)
        case .chroma: OptionRow(.chroma, \.chroma, .words())
        case .codec: OptionRow(.codec, \.codec, .words(VideoCodec.offered))
        case .end: OptionRow(.time, \.time.end, .optional(.seconds))
        case .facts: OptionRow(.facts, \.facts, .optional(.words()))
        case .fit: OptionRow(.size, \.size.fit, .words())
        case .fps: OptionRow(.time, \.time.ceiling, .optional(.decimal(1000...60_000, by: TimeOptions.thousand)))
        case .frame: OptionRow(.frame, \.frame, .frame)
        case .gravity: OptionRow(.size, \.size.gravity, .gravity)
        case .height: OptionRow(.size, \.size.height, .optional(.whole(2...4096)))
        case .loops: OptionRow(.time, \.time.loops, .whole(1...20))
        case .maxBytes: OptionRow(.budget, \.maxBytes, .optional(.whole(1000...100_000_000)))
        case .preset: OptionRow(.preset, \.preset, .optional(.words()))
        case .quality: OptionRow(.quality, \.chosenQuality, .optional(.whole(1...100)))
        case .speed: OptionRow(.time, \.time.speed, .decimal(100...10_000, by: TimeOptions.thousand))
        case .start: OptionRow(.time, \.time.start, .seconds)
        case .tune: OptionRow(.tune, \.tune, .words())
        case .undither: OptionRow(.pixels, \.undither, .words())
        case .width: OptionRow(.size, \.size.width, .optional(.whole(2...4096)))
        case .zoom: OptionRow(.pixels, \.zoom, .whole(1...8))
        }
    }

    private static let rows = Dictionary(uniqueKeysWithValues: allCases.map { ($0, $0.row) })

    private var known: OptionRow { Self.rows[self] ?? row }

    /// Whether the option has an effect on renditions of the format. A page has the options of its video and its poster,
    /// except `codec`, because it lists every stored encoding, and `bframes`, because `<video>` shows pictures at their own times.
    package func applies(to format: Rendition.Format) -> Bool {
        switch format {
        case .output(let output): output.traits.options.contains(known.group)
        case .html: self != .codec && self != .bframes && self != .preset && self != .facts
        case .original: false
        }
    }

    /// The default quality of formats that are lossless by default.
    package static let lossless = "lossless"

    /// The values of the option in requests for a format. For `preset`, those of the settings are valid, too.
    package func domain(of format: Rendition.Format) -> OptionDomain {
        if self == .quality, format.isLosslessByDefault, case .whole(let range) = known.domain {
            return .wholeOr(range, word: Self.lossless)
        }
        return known.domain
    }

    /// The value that is equivalent to omitting the option; nil if there is none.
    package func defaultText(of format: Rendition.Format) -> String? {
        if self != .quality { return known.defaultText }
        return format.isLosslessByDefault ? Self.lossless : String(TranscodeOptions.defaultQuality)
    }

    /// Parses the option's value. Numbers are rounded: `speed` and `fps` to thousandths, `start` and `end` to hundredths of a
    /// second.
    ///
    /// - Parameter format: The format of the rendition; nil accepts the values of all formats.
    /// - Throws: ``RenditionError/invalidOption(name:reason:)`` if the text is not a valid value.
    func read(_ text: String, of format: Rendition.Format?, into options: inout TranscodeOptions) throws(RenditionError) {
        if self == .quality, text == Self.lossless, format?.isLosslessByDefault ?? true {
            options.chosenQuality = nil
        } else if !known.read(text, &options) {
            throw .invalidOption(name: rawValue, reason: "must be \(known.expectation)")
        }
        format?.omitDefaults(&options)
    }

    /// The option's value in canonical form; nil for the default.
    func text(in options: TranscodeOptions) -> String? { known.text(options) }

    func copy(from source: TranscodeOptions, to options: inout TranscodeOptions) { known.copy(source, &options) }
}

private struct OptionRow: Sendable {
    let group: OptionGroups
    let domain: OptionDomain
    /// The valid values, as the end of a sentence.
    let expectation: String
    let defaultText: String?
    /// Returns false for a text that is not a valid value.
    let read: @Sendable (String, inout TranscodeOptions) -> Bool
    /// Nil for the default.
    let text: @Sendable (TranscodeOptions) -> String?
    let copy: @Sendable (TranscodeOptions, inout TranscodeOptions) -> Void

    init<Value: Equatable & Sendable>(
        _ group: OptionGroups, _ property: any WritableKeyPath<TranscodeOptions, Value> & Sendable, _ form: OptionForm<Value>
    ) {
        let usual = TranscodeOptions.standard[keyPath: property]
        self.group = group
        domain = form.domain
        expectation = form.expectation
        defaultText = form.text(usual)
        read = { text, options in
            guard let value = form.value(text) else { return false }
            options[keyPath: property] = value
            return true
        }
        text = { options in
            let value = options[keyPath: property]
            return value == usual ? nil : form.text(value)
        }
        copy = { source, options in options[keyPath: property] = source[keyPath: property] }
    }
}
