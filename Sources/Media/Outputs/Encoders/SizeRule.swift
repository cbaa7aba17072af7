/// The rule for videos that are too large for their sources.
enum SizeRule {
    /// Bytes of a source up to which its MP4 may be larger without a second attempt.
    static let smallSource = 10_000

    /// Returns the bytes of a source with only the requested frames. If the part begins later and its first frame does not
    /// cover the canvas, the source's first frame counts instead, because it is a whole picture.
    fileprivate static func sourceBytes<Decoder: AnimationDecoder & ~Copyable>(
        _ source: ScannedSource<Decoder>
    ) throws(TranscodeError) -> Int {
        let (bytes, summary, plan) = (source.bytes, source.summary, source.plan)
        guard plan.count > 0, plan.first > 1 || plan.last < summary.delays.count else { return bytes.count }
        var decoder = try Decoder(bytes, limits: source.limits)
        var (number, part, before) = (0, 0, 0)
        while try decoder.next() {
            _ = decoder.skipPixels()
            number += 1
            let isFirst = number == (summary.hasWholeFrames ? plan.first : 1)
            if isFirst || (number > plan.first && number <= plan.last) { part += decoder.dataBytes - before }
            before = decoder.dataBytes
        }
        // Headers and palettes are distributed in proportion to the data.
        return Int(Double(bytes.count) * Double(part) / Double(max(1, decoder.dataBytes)))
    }
}

extension MP4EncoderSettings {
    /// Returns the settings for another attempt after these produced `size` bytes per round; nil if this is not too large for
    /// the source, or if coarser settings would not help.
    func coarser<Decoder: AnimationDecoder & ~Copyable>(
        after size: Int, of source: ScannedSource<Decoder>
    ) throws(TranscodeError) -> Self? {
        // Enlarged pixels are meant to be sharp, and a client's own limit replaces this rule.
        guard source.options.zoom == 1, source.options.maxBytes == nil else { return nil }
        let available = try SizeRule.sourceBytes(source)
        return available > SizeRule.smallSource ? coarser(excess: Double(size) / Double(available)) : nil
    }
}
