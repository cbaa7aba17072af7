internal import CMedia

/// The code points (ITU-T H.273) of a clip's colours, from the stream and its container; 2 means unspecified.
///
/// Both may state them. Like Chromium, as measured with files whose statements differ, this code takes one as a whole: for VP8
/// and VP9 the container's, for other codecs the stream's, if it states all three, or else the other. Of a statement that lacks
/// some, only the matrix and the range count. In an image sequence, the container takes precedence (ISO/IEC 23000-22 §7.3.6.4),
/// and the stream fills its gaps.
struct ClipColorTags: Equatable {
    let primaries: UInt8
    let transfer: UInt8
    let matrix: UInt8
    /// Whether samples have full range; nil if it is not stated.
    let isFull: Bool?
    /// Whether the colours are those of encoded outputs, or unspecified. Considers even code points that do not count.
    let areThoseOfVideo: Bool
    private let isVideo: Bool

    private struct Statement {
        var primaries: UInt8
        var transfer: UInt8
        var matrix: UInt8
        var isFull: Bool?

        init(
            _ primaries: AVColorPrimaries, _ transfer: AVColorTransferCharacteristic, _ matrix: AVColorSpace,
            _ range: AVColorRange
        ) {
            self.primaries = UInt8(clamping: primaries.rawValue)
            self.transfer = UInt8(clamping: transfer.rawValue)
            self.matrix = UInt8(clamping: matrix.rawValue)
            isFull = range == AVCOL_RANGE_JPEG ? true : range == AVCOL_RANGE_MPEG ? false : nil
        }

        var hasAll: Bool { primaries != 2 && transfer != 2 && matrix != 2 }
    }

    /// - Parameter frame: A frame decoded without the container's code points.
    init(_ frame: UnsafeMutablePointer<AVFrame>, _ track: UnsafeMutablePointer<AVStream>, _ format: SourceFormat) {
        let (frame, parameters) = (frame.pointee, track.pointee.codecpar.pointee)
        var stream = Statement(frame.color_primaries, frame.color_trc, frame.colorspace, frame.color_range)
        var container = Statement(
            parameters.color_primaries, parameters.color_trc, parameters.color_space, parameters.color_range)
        let isVideo = format.isVideo
        var prefersStream = container.matrix == 2 || isVideo && stream.hasAll
        if [AV_CODEC_ID_VP8, AV_CODEC_ID_VP9].contains(parameters.codec_id) {
            // libavcodec reports the clamping type of VP8 as the range (RFC 6386 §9.2).
            if parameters.codec_id == AV_CODEC_ID_VP8 { stream.isFull = nil }
            // A matrix of VP9 implies the primaries and the transfer function, too.
            if stream.matrix != 2 { (stream.primaries, stream.transfer) = (stream.matrix == 9 ? 9 : 1, 1) }
            prefersStream = !container.hasAll
            if prefersStream { container.matrix = 2 }
        }
        let (first, second) = prefersStream ? (stream, container) : (container, stream)
        matrix = first.matrix == 2 ? second.matrix : first.matrix
        let statedPrimaries = first.primaries == 2 ? second.primaries : first.primaries
        let statedTransfer = first.transfer == 2 ? second.transfer : first.transfer
        (primaries, transfer) = isVideo && !first.hasAll ? (2, 2) : (statedPrimaries, statedTransfer)
        isFull = first.isFull ?? second.isFull
        self.isVideo = isVideo
        areThoseOfVideo =
            isFull != true && [1, 2].contains(matrix) && [1, 2].contains(statedPrimaries)
            && [1, 2, 13].contains(statedTransfer)
    }

    /// Returns the luma coefficients of red and blue. Without a stated matrix, they depend on the height, as in players.
    func coefficients(height: Int) -> (red: Double, blue: Double) {
        switch matrix {
        case 1: (0.2126, 0.0722)
        case 4: (0.3, 0.11)
        case 5, 6: (0.299, 0.114)
        case 7: (0.212, 0.087)
        case 9: (0.2627, 0.0593)
        case 12: primariesOfMatrix.lumaCoefficients
        case 2: isVideo && height >= 720 ? (0.2126, 0.0722) : (0.299, 0.114)
        // Chromium supports no other matrices.
        default: (0.299, 0.114)
        }
    }

    /// Whether the matrix is that of BT.709.
    func isBT709(height: Int) -> Bool { coefficients(height: height) == (0.2126, 0.0722) }

    private var primariesOfMatrix: ColorSpace.Primaries {
        [6, 7].contains(primaries) ? .smpteC : ColorSpace(primaries: primaries, transfer: 13)?.primaries ?? .sRGB
    }

    /// Returns the conversion to sRGB; nil if there is none or it has no effect.
    ///
    /// As in Chromium, the transfer functions of video count as that of sRGB, and so do unspecified primaries of a clip.
    ///
    /// - Parameter bits: Bits per sample in words of PQ or HLG: 8 or 10.
    func conversion(bits: Int) -> ColorConversion? {
        if let range = HighRange(primaries: primaries == 2 ? 9 : primaries, transfer: transfer, bits: bits) {
            return ColorConversion(range)
        }
        if isVideo && primaries == 2 { return nil }
        let light: UInt8 = [4, 5, 8, 17].contains(transfer) ? transfer : 13
        guard var space = ColorSpace(primaries: primaries, transfer: light) ?? ColorSpace(primaries: 1, transfer: light) else {
            return nil
        }
        if !isVideo {
            if [6, 7].contains(primaries) { space = ColorSpace(.smpteC, space.transfer) }
            if transfer == 7 { space = ColorSpace(space.primaries, .smpte240) }
        }
        guard let found = ColorConversion(space, .colors), !found.isIdentity else { return nil }
        return found
    }
}
