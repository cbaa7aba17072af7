/// Everything that the program needs to know about an output format: one row of the table ``OutputFormat/traits``.
///
/// Routes, media types, options, versions, inspection, facts and pages derive from it. Without a row, a new case of
/// ``OutputFormat`` does not compile.
package struct OutputTraits: Sendable {
    package enum Kind: Sendable {
        case video
        /// An animation that browsers show as a picture.
        case sequence
        /// A still picture of one frame.
        case poster
        /// Numbers, from which a document is composed.
        case facts
    }

    /// The name in paths and the file extension: `a`…`z` and digits.
    package let name: String
    package let mediaType: String
    package let kind: Kind
    /// The options that have an effect.
    package let options: OptionGroups
    /// The version of the encoder and its settings, which becomes part of an object's name. Change it with anything that
    /// changes the output bytes.
    package let version: String
    /// The encoder's name in libavcodec; nil if none is needed.
    package let encoder: String?
    /// Whether the program refuses to start without the encoder.
    let isRequired: Bool
    /// The expected processor time of a conversion, as a multiple of H.264's.
    var cost = 1
    /// The memory that a conversion may use, in multiples of the setting `limits.memory`.
    package var memory = 1.0
    let make: @Sendable (Transcoder, UnsafeRawBufferPointer, Int32, FrameMeter) throws(TranscodeError) -> TranscodeResult
    /// Inspects a file, and returns the parameter `codecs` of its media type; see ``OutputInspection``.
    let inspect: @Sendable (OutputBytes, OutputClaim) throws(OutputFlaw) -> String?
}

extension OutputFormat {
    /// The format's row of the table.
    package var traits: OutputTraits {
        switch self {
        case .mp4: .mp4
        case .webm: .webm
        case .avif: .avif
        case .awebp: .awebp
        case .gif: .gif
        case .jpg: .jpg
        case .png: .png
        case .webp: .webp
        case .facts: .facts
        }
    }
}

extension OutputFormat {
    /// Returns the codec that the options select; nil if the format has no such option.
    func codec(_ options: TranscodeOptions) -> VideoCodec? {
        traits.options.contains(.codec) ? options.codec : nil
    }

    /// The version of the decoders and of the encoder that the options select.
    package func version(_ options: TranscodeOptions, of source: SourceFormat) -> String {
        let encoder = codec(options)?.traits.version ?? traits.version
        let version = "\(encoder)+\(source.version)"
        return options.maxBytes == nil ? version : "\(version)+\(ByteBudget.version)"
    }

    /// Returns the expected processor time of a conversion with the options, as a multiple of H.264's.
    package func cost(_ options: TranscodeOptions) -> Int { codec(options)?.traits.cost ?? traits.cost }
}

extension Transcoder {
    /// Whether the conversion starts threads: one that composes pictures, or x264's, whose number depends on the picture size.
    /// The other video encoders start none themselves, but run a trial with x264 to find the quality that they aim at.
    package var startsThreads: Bool { threads > 1 || output.traits.encoder != nil }
}

extension OutputTraits {
    fileprivate static let mp4 = OutputTraits(
        name: "mp4", mediaType: "video/mp4", kind: .video,
        options: [.size, .background, .quality, .budget, .time, .codec, .pixels, .tune, .chroma],
        version: H264Settings.version, encoder: VideoCodec.h264.traits.encoder, isRequired: true, make: MP4Output.convert,
        inspect: MP4Inspection.inspect)
    fileprivate static let webm = OutputTraits(
        name: "webm", mediaType: "video/webm", kind: .video,
        options: [.size, .quality, .budget, .time, .preset, .pixels, .tune, .chroma],
        version: VP9Settings.version, encoder: VP9Settings.encoder, isRequired: false, cost: 3,
        // libvpx keeps 48 bytes per pixel for the tokens of one frame. A job with three slots may use more than one slot's
        // memory.
        memory: 1.5, make: WebMOutput.convert, inspect: WebMInspection.inspect)
    fileprivate static let avif = OutputTraits(
        name: "avif", mediaType: "image/avif", kind: .sequence,
        options: [.size, .quality, .budget, .time, .pixels, .tune, .chroma],
        version: AVIFSettings.version, encoder: AVIFSettings.encoder, isRequired: false, cost: 3, make: AVIFOutput.convert,
        inspect: withoutCodecs(AVIFInspection.inspect))
    fileprivate static let awebp = OutputTraits(
        name: "awebp", mediaType: "image/webp", kind: .sequence,
        options: [.size, .quality, .lossless, .budget, .time, .pixels],
        version: AnimatedWebPOutput.version, encoder: nil, isRequired: false, cost: 3,
        // libwebp searches the whole picture for repetitions.
        memory: 1.5, make: AnimatedWebPOutput.convert, inspect: withoutCodecs(AnimatedWebPInspection.inspect))
    fileprivate static let gif = OutputTraits(
        name: "gif", mediaType: "image/gif", kind: .sequence,
        options: [.size, .quality, .lossless, .budget, .time, .pixels],
        version: GIFOutput.version, encoder: nil, isRequired: false, cost: 2, make: GIFOutput.convert,
        inspect: withoutCodecs(GIFInspection.inspect))
    fileprivate static let jpg = OutputTraits(
        name: "jpg", mediaType: "image/jpeg", kind: .poster, options: [.size, .background, .quality, .frame, .pixels],
        version: PosterEncoder.version, encoder: nil, isRequired: true, make: PosterOutput.convert,
        inspect: withoutCodecs(JPEGInspection.inspect))
    fileprivate static let png = OutputTraits(
        name: "png", mediaType: "image/png", kind: .poster, options: [.size, .frame, .pixels],
        version: PosterEncoder.version, encoder: nil, isRequired: true, make: PosterOutput.convert,
        inspect: withoutCodecs(PNGInspection.inspect))
    fileprivate static let webp = OutputTraits(
        name: "webp", mediaType: "image/webp", kind: .poster, options: [.size, .quality, .frame, .pixels],
        version: PosterEncoder.version, encoder: nil, isRequired: false, make: PosterOutput.convert,
        inspect: withoutCodecs(WebPInspection.inspect))
    fileprivate static let facts = OutputTraits(
        name: "json", mediaType: "application/json", kind: .facts, options: [.facts],
        version: FactsOutput.version, encoder: nil, isRequired: false, make: FactsOutput.convert,
        inspect: withoutCodecs(FactsOutput.inspect))

    /// Wraps the inspection of a format whose media type has no `codecs` parameter.
    private static func withoutCodecs(
        _ inspect: @escaping @Sendable (OutputBytes, OutputClaim) throws(OutputFlaw) -> Void
    ) -> @Sendable (OutputBytes, OutputClaim) throws(OutputFlaw) -> String? {
        { bytes, claim throws(OutputFlaw) in
            try inspect(bytes, claim)
            return nil
        }
    }
}

/// Everything that the program needs to know about a video codec: one row of the table ``VideoCodec/traits``.
package struct VideoCodecTraits: Sendable {
    /// The value of the option `codec`: `a`…`z` and digits.
    package let name: String
    /// The version of the encoder and its settings, which becomes part of an object's name. Change it with anything that
    /// changes the output bytes.
    package let version: String
    /// The encoder's name in libavcodec.
    let encoder: String
    /// The processor time of a conversion as a multiple of H.264's, for most sources: the number of its admission slots, and
    /// the multiple of `limits.cpu` that it may use.
    package let cost: Int
}

extension VideoCodec {
    /// The codec's row of the table.
    package var traits: VideoCodecTraits {
        switch self {
        case .h264: .h264
        case .av1: .av1
        }
    }
}

extension VideoCodecTraits {
    fileprivate static let h264 = VideoCodecTraits(
        name: "h264", version: H264Settings.version, encoder: "libx264", cost: 1)
    fileprivate static let av1 = VideoCodecTraits(name: "av1", version: AV1Settings.version, encoder: "libaom-av1", cost: 3)
}
