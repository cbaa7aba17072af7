/// Everything that the program has to know about a video codec: one row of the table ``VideoCodec/traits``.
package struct VideoCodecTraits: Sendable {
    /// The value of the option `codec`: `a`…`z` and digits.
    package let name: String
    /// The version of the encoder and its settings, which becomes part of an object's name. Change it with anything that changes
    /// the output bytes.
    package let version: String
    /// The encoder's name in libavcodec.
    let encoder: String
    /// The processor time of a conversion in multiples of that to H.264, for most sources: the slots that it takes of admission, and
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
