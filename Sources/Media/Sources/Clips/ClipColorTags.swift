internal import CMedia

/// The code points (ITU-T H.273) by which the pictures of a clip are shown, from the stream and its container; 2 means unspecified.
///
/// Both may state them. Chromium, and this code, take one of the two as a whole, as measured with files whose statements differ: of
/// H.264 and HEVC the stream's if it states all three, of AV1 the stream's if it states a matrix, of VP8 and VP9 the container's if that
/// states a matrix. In an image sequence, the container's statement takes precedence (ISO/IEC 23000-22 §7.3.6.4).
struct ClipColorTags: Equatable {
    let primaries: UInt8
    let transfer: UInt8
    let matrix: UInt8
    /// Whether samples use all values; nil if it is not stated.
    let isFull: Bool?
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

    /// - Parameter frame: Decoded without knowledge of the container's statement.
    init(_ frame: UnsafeMutablePointer<AVFrame>, _ track: UnsafeMutablePointer<AVStream>, _ format: SourceFormat) {
        let (frame, parameters) = (frame.pointee, track.pointee.codecpar.pointee)
        var stream = Statement(frame.color_primaries, frame.color_trc, frame.colorspace, frame.color_range)
        let container = Statement(
            parameters.color_primaries, parameters.color_trc, parameters.color_space, parameters.color_range)
        let prefersStream: Bool
        switch parameters.codec_id {
        // What libavcodec takes for a range is whether samples were clamped (RFC 6386 §9.2).
        case AV_CODEC_ID_VP8:
            stream.isFull = nil
            prefersStream = container.matrix == 2
        case AV_CODEC_ID_VP9:
            // It stands for the primaries, too.
            if stream.matrix == 9, stream.primaries == 2 { stream.primaries = 9 }
            prefersStream = container.matrix == 2
        case AV_CODEC_ID_AV1:
            prefersStream = format == .avif ? container.matrix == 2 : stream.matrix != 2 || container.matrix == 2
        default: prefersStream = stream.hasAll || container.matrix == 2
        }
        let (first, second) = prefersStream ? (stream, container) : (container, stream)
        primaries = first.primaries == 2 ? second.primaries : first.primaries
        transfer = first.transfer == 2 ? second.transfer : first.transfer
        matrix = first.matrix == 2 ? second.matrix : first.matrix
        isFull = first.isFull ?? second.isFull
        isVideo = format.isVideo
    }

    /// Whether the pictures have the colours of an encoded video, or do not state them.
    var areThoseOfVideo: Bool {
        isFull != true && [1, 2].contains(matrix) && [1, 2].contains(primaries) && [1, 2, 13].contains(transfer)
    }

    /// The luma coefficients of red and blue. Without a statement that is known, they follow from the height, as in players.
    func coefficients(height: Int) -> (red: Double, blue: Double) {
        switch matrix {
        case 1: (0.2126, 0.0722)
        case 4: (0.3, 0.11)
        case 5, 6: (0.299, 0.114)
        case 7: (0.212, 0.087)
        case 9: (0.2627, 0.0593)
        case 12: primariesOfMatrix.lumaCoefficients
        case 2: isVideo && height >= 720 ? (0.2126, 0.0722) : (0.299, 0.114)
        // Chromium knows no others.
        default: (0.299, 0.114)
        }
    }

    /// Whether the matrix is that of BT.709.
    func isBT709(height: Int) -> Bool { coefficients(height: height) == (0.2126, 0.0722) }

    private var primariesOfMatrix: ColorSpace.Primaries {
        [6, 7].contains(primaries) ? .smpteC : ColorSpace(primaries: primaries, transfer: 13)?.primaries ?? .sRGB
    }

    /// The conversion to sRGB; nil without an effective one.
    ///
    /// As in Chromium, the transfer functions of video count as that of sRGB, and of a clip so do primaries that are not stated.
    ///
    /// - Parameter bits: Those of a sample in words whose light has a high range: 8 or 10.
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
