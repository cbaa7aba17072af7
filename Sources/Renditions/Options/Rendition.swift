package import Media

/// One output of a source: a format and its options (docs/api.md).
package struct Rendition: Sendable, Hashable {
    package let format: Format
    /// The options. Those that do not apply to the format have their defaults.
    package private(set) var options: TranscodeOptions

    package init(format: Format) {
        self.format = format
        options = TranscodeOptions.standard
    }

    /// Returns the rendition `json` with the requested facts in addition to the usual ones.
    package static func facts(_ requested: TranscodeOptions.Facts) -> Rendition {
        var rendition = Rendition(format: .json)
        rendition.options.facts = requested
        return rendition
    }

    /// The format and the options that differ from their defaults, sorted by name. Renditions are equal if and only if their
    /// texts are.
    package var canonicalText: String {
        ([format.rawValue] + canonicalOptions.map { "\($0.name)=\($0.value)" }).joined(separator: ",")
    }

    /// The options that differ from their defaults, sorted by name, with their values in canonical form.
    package var canonicalOptions: [(name: String, value: String)] {
        RenditionOption.allCases.compactMap { option in
            option.text(in: options).map { (name: option.rawValue, value: $0) }
        }
    }

    /// The versions of the encoder and of the decoder for the source format. The output depends on them in addition to the
    /// source and the canonical text.
    package func encoderVersion(of source: SourceFormat) -> String { format.output?.version(options, of: source) ?? "" }

    /// The expected processor time of a conversion, in multiples of a conversion to H.264; 0 for the source itself.
    package var cost: Int { format == .original ? 0 : format.output?.cost(options) ?? 1 }

    /// The memory that its conversion may use, in multiples of `limits.memory`.
    package var memory: Double { format.output?.traits.memory ?? 1 }

    /// Sets an option from its text. The caller calls ``check()`` after the last option.
    ///
    /// - Throws: ``RenditionError/invalidOption(name:reason:)`` if the option is unknown, has no effect on the format, or is
    ///   out of range.
    package mutating func set(_ name: String, to value: String) throws(RenditionError) {
        guard let option = RenditionOption(rawValue: name) else {
            throw .invalidOption(name: name, reason: RenditionOption.isUnknown(name))
        }
        guard option.applies(to: format) else {
            throw .invalidOption(name: name, reason: "has no effect on \(format.rawValue)")
        }
        try option.read(value, of: format, into: &options)
    }

    /// Validates combinations of options.
    ///
    /// - Throws: ``RenditionError/invalidOption(name:reason:)`` if an option has no effect together with the others, or
    ///   contradicts them.
    package func check() throws(RenditionError) {
        if options.size.fit != .contain && (options.size.width == nil || options.size.height == nil) {
            throw .invalidOption(name: RenditionOption.fit.rawValue, reason: "has an effect only with both width and height")
        }
        if options.size.gravity != .center && options.size.fit != .cover {
            throw .invalidOption(name: RenditionOption.gravity.rawValue, reason: "has an effect only with fit=cover")
        }
        if options.preset != nil {
            // The preset decides these.
            for option in [RenditionOption.width, .height, .fit, .loops, .maxBytes, .zoom] where option.text(in: options) != nil
            {
                throw .invalidOption(name: option.rawValue, reason: "has no effect together with a preset")
            }
        }
        if options.zoom > 1, options.size != TranscodeOptions.standard.size {
            throw .invalidOption(name: RenditionOption.zoom.rawValue, reason: "cannot be combined with width, height and fit")
        }
        if let end = options.time.end, end <= options.time.start {
            throw .invalidOption(name: RenditionOption.end.rawValue, reason: "must be later than the start")
        }
    }

    /// The rendition without B-frames, for players that show each picture from its decoding on.
    package var withoutBFrames: Rendition {
        var rendition = self
        if RenditionOption.bframes.applies(to: format), options.codec == .h264 { rendition.options.bframes = .never }
        return rendition
    }

    /// Keeps the dither of films. Lossless formats keep it by default.
    mutating func keepDither() {
        guard RenditionOption.undither.applies(to: format), !format.isLosslessByDefault else { return }
        options.undither = .never
    }

    /// Returns the rendition with another video codec; nil if the program has no encoder for it.
    package func encoded(by codec: VideoCodec) -> Rendition? {
        guard VideoCodec.offered.contains(codec), RenditionOption.codec.applies(to: format) else { return nil }
        var rendition = self
        rendition.options.codec = codec
        return rendition
    }

    /// The stored renditions that the facts of a source list: every format and codec on offer, with the defaults of all other
    /// options.
    package static let listed: [Rendition] = Format.offered.filter(\.isSentAsStored).flatMap { format in
        let rendition = Rendition(format: format)
        let codecs = RenditionOption.codec.applies(to: format) ? VideoCodec.offered : []
        return codecs.isEmpty ? [rendition] : codecs.compactMap(rendition.encoded)
    }

    /// The rendition in H.264 with the same options, against which AV1 is measured. Nil for other renditions.
    package var comparedWith: Rendition? { options.codec == .av1 ? encoded(by: .h264) : nil }

    /// Whether to offer an AV1 rendition beside its H.264 counterpart, which every client can play: only if AV1 is at least a
    /// twentieth smaller.
    package static func isWorthOffering(av1: Int64, besideH264 h264: Int64) -> Bool { av1 <= h264 - h264 / 20 }

    /// Returns the rendition with another width, for an address that leaves the width to the client.
    package func ofWidth(_ width: Int) -> Rendition {
        var rendition = self
        rendition.options.size.width = width
        return rendition
    }

    /// The still picture that is sent in place of an animation. Its format has transparency, and all browsers show it.
    var still: Rendition { inFormat(.webp) }

    /// Returns the poster with another frame.
    func ofFrame(_ frame: Int) -> Rendition {
        var rendition = self
        rendition.options.frame = .number(frame)
        return rendition
    }

    /// The rendition whose alias represents all posters of frames past the end; nil for other renditions. Its frame is the
    /// maximum of the option, so a request for that frame has the same alias.
    var pastEnd: Rendition? {
        guard format.isPoster, let frame = options.frame.number, frame > 0 else { return nil }
        return ofFrame(999_999_999)
    }

    /// Returns the rendition in another format, with the options that apply to that format. Used for the video and the poster
    /// of a page.
    package func inFormat(_ other: Format) -> Rendition {
        var rendition = Rendition(format: other)
        let defaults = rendition.options
        rendition.options = options
        for option in RenditionOption.allCases where !option.applies(to: other) {
            option.copy(from: defaults, to: &rendition.options)
        }
        other.omitDefaults(&rendition.options)
        return rendition
    }
}
