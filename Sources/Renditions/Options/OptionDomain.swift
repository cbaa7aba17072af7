internal import Media

/// The values that an option may have, as schemas describe them.
package enum OptionDomain: Sendable, Equatable {
    case whole(ClosedRange<Int>)
    case decimal(ClosedRange<Double>)
    case words([String])
    /// A whole number, or a word in its place.
    case wholeOr(ClosedRange<Int>, word: String)
    /// Six hexadecimal digits.
    case colour
    /// A word, or two numbers from 0 to 1 with a colon between them.
    case wordsOrPoint([String])
}

extension RenditionOption {
    /// The values that requests for a format may give the option. A preset of the settings is one more.
    package func domain(of format: Rendition.Format) -> OptionDomain {
        switch self {
        case .bg: .colour
        case .chroma: .words(TranscodeOptions.Chroma.allCases.map(\.name))
        case .codec: .words(VideoCodec.offered.map(\.traits.name))
        case .end, .start: .decimal(0...86_400)
        case .fit: .words(SizeOptions.Fit.allCases.map(\.name))
        case .fps: .decimal(1...60)
        case .frame: .wholeOr(0...999_999_999, word: "auto")
        case .gravity: .wordsOrPoint(Gravity.names.map(\.name))
        case .height, .width: .whole(2...4096)
        case .loops: .whole(1...20)
        case .maxBytes: .whole(1000...100_000_000)
        case .preset: .words(TranscodeOptions.Preset.allCases.map(\.name))
        case .quality: format.isLosslessByDefault ? .wholeOr(1...100, word: Self.lossless) : .whole(1...100)
        case .speed: .decimal(0.1...10)
        case .tune: .words(TranscodeOptions.Tune.allCases.map(\.name))
        case .undither: .words(TranscodeOptions.Undithering.allCases.map(\.name))
        case .zoom: .whole(1...8)
        }
    }

    /// The value of requests that leave the option out; nil if no value means that.
    package func defaultText(of format: Rendition.Format) -> String? {
        switch self {
        case .bg: "ffffff"
        case .codec: "h264"
        case .fit: "contain"
        case .gravity: "center"
        case .frame, .start, .undither: "0"
        case .loops, .speed, .zoom: "1"
        case .quality: format.isLosslessByDefault ? Self.lossless : String(TranscodeOptions.defaultQuality)
        case .chroma, .tune: "auto"
        case .end, .fps, .height, .maxBytes, .preset, .width: nil
        }
    }
}
