internal import CMedia

/// Converts Y'CbCr or R'G'B' planes to full-range words in the same colour space: R, G, B, A of 8 bits each, or R, G, B of 10
/// bits each.
///
/// The arithmetic is exact to half a level and does not depend on the processor. Chroma is upsampled linearly, by the siting
/// that the stream states. Not thread-safe.
struct ClipColors: ~Copyable {
    let width: Int
    let height: Int
    private let format: AVPixelFormat
    private let isRGB: Bool
    private let isGrey: Bool
    /// Bytes of a sample: 1 or 2.
    private let bytes: Int
    private let columns: Sampling
    private let rows: Sampling
    private let matrix: Matrix
    private let tags: ClipColorTags
    /// Bits per resulting sample.
    private let bits: Int32
    /// The largest resulting sample.
    private let highest: Int32
    /// Four rows of samples, with ``margin`` more at each end.
    private let numbers: HeapBuffer<Int32>

    /// The bits of an opaque word's alpha; 0 for 10-bit words.
    private let opaque: UInt32
    /// The number of samples beyond each end of a row.
    private static let margin = 2

    /// The upsampling weights, in quarters, of the chroma samples before, at and after a pixel, for even and odd positions.
    private struct Sampling {
        /// The binary logarithm of the number of pixels per sample.
        let shift: Int
        let even: (Int32, Int32, Int32)
        let odd: (Int32, Int32, Int32)

        static let full = Sampling(shift: 0, even: (0, 4, 0), odd: (0, 4, 0))
        /// The sample lies at the first of two pixels, between both, or at the second.
        static let first = Sampling(shift: 1, even: (0, 4, 0), odd: (0, 2, 2))
        static let between = Sampling(shift: 1, even: (1, 3, 0), odd: (0, 3, 1))
        static let second = Sampling(shift: 1, even: (2, 2, 0), odd: (0, 4, 0))

        /// The weights for the last pixel if the number of pixels is odd, so that it has a sample of its own.
        var last: (Int32, Int32, Int32) { even.0 == 1 ? (0, 4, 0) : even }
    }

    /// A linear conversion with 16 fractional bits. Chroma is in sixteenths.
    private struct Matrix {
        var luma: Int32 = 0
        var redCb: Int32 = 0, redCr: Int32 = 0
        var greenCb: Int32 = 0, greenCr: Int32 = 0
        var blueCb: Int32 = 0, blueCr: Int32 = 0
        var lumaOffset: Int32 = 0
        var chromaOffset: Int32 = 0
    }

    /// - Parameters:
    ///   - frame: The first picture.
    ///   - source: The format to report in errors.
    ///   - bits: 8, or 10 for words without alpha.
    /// - Throws: ``TranscodeError/unsupported(_:_:)`` for an unsupported pixel format, or `outOfMemory`.
    init(
        _ frame: UnsafeMutablePointer<AVFrame>, _ tags: ClipColorTags, _ source: SourceFormat, bits: Int = 8
    ) throws(TranscodeError) {
        let frame = frame.pointee
        let pixels = AVPixelFormat(rawValue: frame.format)
        guard let description = av_pix_fmt_desc_get(pixels), gifreel_is_planar(description) != 0,
            description.pointee.log2_chroma_w <= 1, description.pointee.log2_chroma_h <= 1, frame.width > 0, frame.height > 0
        else { throw .unsupported(source, .pixels) }
        let depth = Int(description.pointee.comp.0.depth)
        // libaom outputs G, B and R in the planes of Y, Cb and Cr, with an identity matrix.
        let isFull444 = description.pointee.log2_chroma_w == 0 && description.pointee.log2_chroma_h == 0
        let isRGB = gifreel_is_rgb(description) != 0 || tags.matrix == 0 && isFull444 && description.pointee.nb_components > 2
        let matrix = Self.matrix(tags, height: Int(frame.height), depth: depth, isRGB: isRGB, bits: bits)
        let numbers = try HeapBuffer<Int32>(count: 4 * (Int(frame.width) + 2 * Self.margin))
        // Browsers and libavif assume centred chroma in an AVIF, whatever it states.
        let (left, top) = Self.position(source == .avif ? AVCHROMA_LOC_CENTER : frame.chroma_location)
        format = pixels
        width = Int(frame.width)
        height = Int(frame.height)
        self.isRGB = isRGB
        isGrey = Self.isGrey(frame.format)
        bytes = depth > 8 ? 2 : 1
        columns = description.pointee.log2_chroma_w == 0 ? .full : left
        rows = description.pointee.log2_chroma_h == 0 ? .full : top
        self.matrix = matrix
        self.tags = tags
        self.bits = Int32(bits)
        highest = 1 << Int32(bits) - 1
        opaque = bits == 8 ? 0xff00_0000 : 0
        self.numbers = numbers
    }

    /// Whether pictures of a pixel format have no chroma.
    static func isGrey(_ format: Int32) -> Bool {
        av_pix_fmt_desc_get(AVPixelFormat(rawValue: format)).map { $0.pointee.nb_components < 3 } ?? false
    }

    /// Returns the chroma siting of a picture in the format of ``FramePlanes``; nil for other pictures.
    static func siting(
        _ frame: UnsafeMutablePointer<AVFrame>, _ tags: ClipColorTags, _ source: SourceFormat
    ) -> FramePlanes.Siting? {
        let frame = frame.pointee
        guard AVPixelFormat(rawValue: frame.format) == AV_PIX_FMT_YUV420P, tags.isBT709(height: Int(frame.height)),
            tags.isFull != true
        else { return nil }
        if source == .avif { return .center }
        return switch frame.chroma_location {
        case AVCHROMA_LOC_UNSPECIFIED, AVCHROMA_LOC_LEFT: .left
        case AVCHROMA_LOC_CENTER: .center
        default: nil
        }
    }

    /// A row of samples for each plane, and one for calculations.
    private var luma: UnsafeMutablePointer<Int32> { row(0) }
    private var cb: UnsafeMutablePointer<Int32> { row(1) }
    private var cr: UnsafeMutablePointer<Int32> { row(2) }
    private var half: UnsafeMutablePointer<Int32> { row(3) }

    private func row(_ number: Int) -> UnsafeMutablePointer<Int32> {
        numbers.base + number * (width + 2 * Self.margin) + Self.margin
    }

    /// Whether a picture has the size, the pixels and the tags of the first one.
    func fits(_ frame: UnsafeMutablePointer<AVFrame>, _ tags: ClipColorTags) -> Bool {
        AVPixelFormat(rawValue: frame.pointee.format) == format && Int(frame.pointee.width) == width
            && Int(frame.pointee.height) == height && tags == self.tags
    }

    /// Returns the chroma siting among columns and rows. By default, chroma lies at the left (ITU-T H.264 Annex E).
    private static func position(_ location: AVChromaLocation) -> (Sampling, Sampling) {
        switch location {
        case AVCHROMA_LOC_CENTER: (.between, .between)
        case AVCHROMA_LOC_TOPLEFT: (.first, .first)
        case AVCHROMA_LOC_TOP: (.between, .first)
        case AVCHROMA_LOC_BOTTOMLEFT: (.first, .second)
        case AVCHROMA_LOC_BOTTOM: (.between, .second)
        default: (.first, .between)
        }
    }

    private static func matrix(_ tags: ClipColorTags, height: Int, depth: Int, isRGB: Bool, bits: Int) -> Matrix {
        let isFull = tags.isFull ?? isRGB
        let highest = Double(1 << depth - 1)
        let unit = Double(1 << (depth - 8))
        // One level of the result, in samples.
        let levels = Double(1 << bits - 1)
        let (lumaStep, chromaStep) = isFull ? (highest / levels, highest / levels) : (219 * unit / levels, 224 * unit / levels)
        func fixed(_ factor: Double, _ step: Double) -> Int32 { Int32((factor / step * 65536).rounded()) }
        var matrix = Matrix()
        matrix.luma = fixed(1, lumaStep)
        matrix.lumaOffset = isFull ? 0 : Int32(16 * unit)
        matrix.chromaOffset = Int32(1 << (depth - 1)) * 16
        if isRGB { return matrix }
        let chroma = chromaStep * 16
        if tags.matrix == 8 {
            // Cb is Cg, and Cr is Co.
            (matrix.redCb, matrix.redCr) = (fixed(-1, chroma), fixed(1, chroma))
            (matrix.greenCb, matrix.greenCr) = (fixed(1, chroma), 0)
            (matrix.blueCb, matrix.blueCr) = (fixed(-1, chroma), fixed(-1, chroma))
            return matrix
        }
        let (red, blue) = tags.coefficients(height: height)
        let green = 1 - red - blue
        matrix.redCr = fixed(2 * (1 - red), chroma)
        matrix.greenCb = fixed(-2 * (1 - blue) * blue / green, chroma)
        matrix.greenCr = fixed(-2 * (1 - red) * red / green, chroma)
        matrix.blueCb = fixed(2 * (1 - blue), chroma)
        return matrix
    }

    /// Converts one row of a picture that ``fits(_:)`` to opaque words.
    func convertRow(_ y: Int, of frame: UnsafeMutablePointer<AVFrame>, into words: UnsafeMutablePointer<UInt32>) {
        load(frame, plane: 0, row: y, count: width, into: luma)
        if isGrey {
            for x in 0..<width {
                let grey = Self.clamped((matrix.luma &* (luma[x] &- matrix.lumaOffset) &+ 32768) &>> 16, highest)
                words[x] = UInt32(truncatingIfNeeded: grey | grey &<< bits | grey &<< (2 &* bits)) | opaque
            }
            return
        }
        if isRGB { return convertRGB(y, frame, into: words) }
        loadChroma(frame, plane: 1, row: y, into: cb)
        loadChroma(frame, plane: 2, row: y, into: cr)
        let (lumaRow, cbRow, crRow, matrix) = (luma, cb, cr, matrix)
        let (highest, bits, opaque) = (highest, bits, opaque)
        for x in 0..<width {
            let grey = matrix.luma &* (lumaRow[x] &- matrix.lumaOffset) &+ 32768
            let (u, v) = (cbRow[x] &- matrix.chromaOffset, crRow[x] &- matrix.chromaOffset)
            let red = Self.clamped((grey &+ matrix.redCb &* u &+ matrix.redCr &* v) &>> 16, highest)
            let green = Self.clamped((grey &+ matrix.greenCb &* u &+ matrix.greenCr &* v) &>> 16, highest)
            let blue = Self.clamped((grey &+ matrix.blueCb &* u &+ matrix.blueCr &* v) &>> 16, highest)
            words[x] = UInt32(truncatingIfNeeded: red | green &<< bits | blue &<< (2 &* bits)) | opaque
        }
    }

    /// Converts a row of G, B and R planes.
    private func convertRGB(_ y: Int, _ frame: UnsafeMutablePointer<AVFrame>, into words: UnsafeMutablePointer<UInt32>) {
        load(frame, plane: 1, row: y, count: width, into: cb)
        load(frame, plane: 2, row: y, count: width, into: cr)
        let (matrix, highest, bits, opaque) = (matrix, highest, bits, opaque)
        func level(_ sample: Int32) -> Int32 {
            Self.clamped((matrix.luma &* (sample &- matrix.lumaOffset) &+ 32768) &>> 16, highest)
        }
        for x in 0..<width {
            let (red, green, blue) = (level(cr[x]), level(luma[x]), level(cb[x]))
            words[x] = UInt32(truncatingIfNeeded: red | green &<< bits | blue &<< (2 &* bits)) | opaque
        }
    }

    /// Stores a row of a picture's luma as the alpha of words.
    ///
    /// - Parameter isExact: Whether 8-bit samples are alpha levels, whatever range is stated, as in WebM.
    func convertAlphaRow(
        _ y: Int, of frame: UnsafeMutablePointer<AVFrame>, isExact: Bool, into words: UnsafeMutablePointer<UInt32>
    ) {
        load(frame, plane: 0, row: y, count: width, into: luma)
        let (matrix, highest) = (matrix, highest)
        for x in 0..<width {
            let sample = luma[x]
            let level =
                isExact && bytes == 1
                ? sample : Self.clamped((matrix.luma &* (sample &- matrix.lumaOffset) &+ 32768) &>> 16, highest)
            words[x] = words[x] & 0xff_ffff | UInt32(truncatingIfNeeded: level) << 24
        }
    }

    @inline(__always)
    private static func clamped(_ level: Int32, _ highest: Int32) -> Int32 { max(0, min(highest, level)) }

    private func load(
        _ frame: UnsafeMutablePointer<AVFrame>, plane: Int, row: Int, count: Int, into target: UnsafeMutablePointer<Int32>
    ) {
        let (base, stride) = Self.plane(frame, plane)
        guard let base else { return target.update(repeating: 0, count: count) }
        let start = UnsafeRawPointer(base) + row * Int(stride)
        if bytes == 1 {
            let samples = start.assumingMemoryBound(to: UInt8.self)
            for x in 0..<count { target[x] = Int32(samples[x]) }
        } else {
            let samples = start.assumingMemoryBound(to: UInt16.self)
            for x in 0..<count { target[x] = Int32(samples[x]) }
        }
    }

    /// Loads a row of chroma, upsampled to a row of luma, in sixteenths.
    private func loadChroma(
        _ frame: UnsafeMutablePointer<AVFrame>, plane: Int, row: Int, into target: UnsafeMutablePointer<Int32>
    ) {
        let count = (width + (1 << columns.shift) - 1) >> columns.shift
        let lastRow = (height + (1 << rows.shift) - 1) >> rows.shift - 1
        let center = row >> rows.shift
        let vertical = rows.shift == 1 && row & 1 == 1 ? rows.odd : rows.even
        let samples = half
        samples.update(repeating: 0, count: count)
        let parts = [(center - 1, vertical.0), (center, vertical.1), (center + 1, vertical.2)]
        for (line, weight) in parts where weight != 0 {
            load(frame, plane: plane, row: min(max(0, line), lastRow), count: count, into: target)
            for x in 0..<count { samples[x] = samples[x] &+ weight &* target[x] }
        }
        if columns.shift == 0 {
            for x in 0..<width { target[x] = samples[x] &* 4 }
            return
        }
        // Edges are repeated.
        samples[-1] = samples[0]
        samples[count] = samples[count - 1]
        let (even, odd) = (columns.even, columns.odd)
        for x in 0..<(width / 2) {
            let (before, at, after) = (samples[x &- 1], samples[x], samples[x &+ 1])
            target[2 &* x] = even.0 &* before &+ even.1 &* at &+ even.2 &* after
            target[2 &* x &+ 1] = odd.0 &* before &+ odd.1 &* at &+ odd.2 &* after
        }
        if width & 1 == 1 {
            let (x, last) = (count - 1, columns.last)
            target[width - 1] = last.0 &* samples[x - 1] &+ last.1 &* samples[x] &+ last.2 &* samples[x + 1]
        }
    }

    /// Returns the samples of a plane, and the bytes from one row to the next.
    private static func plane(
        _ frame: UnsafeMutablePointer<AVFrame>, _ number: Int
    ) -> (samples: UnsafeMutablePointer<UInt8>?, stride: Int32) {
        switch number {
        case 0: (frame.pointee.data.0, frame.pointee.linesize.0)
        case 1: (frame.pointee.data.1, frame.pointee.linesize.1)
        default: (frame.pointee.data.2, frame.pointee.linesize.2)
        }
    }
}
