internal import CMedia

/// Finds the quantizer at which an encoder matches the quality that H.264 has at the same value of the option `quality`.
///
/// Each codec has its own scale of quantizers, and which values correspond depends on the pictures. So the animation is encoded
/// as H.264, and some of its pictures with the other encoder at a first guess. If the quality differs, the difference suggests
/// another quantizer. If it is large, the pictures are encoded again at that quantizer, up to twice. The result depends only on
/// the pictures and is the same on every machine.
struct QualitySearch {
    /// The encoder's quantizers; higher is coarser.
    let range: ClosedRange<Int>
    /// The approximate decibels of ``PictureSimilarity`` per step of the quantizer.
    let decibelsPerStep: Double

    /// Differences up to this are not visible, and not corrected.
    private static let tolerance = 0.3
    /// Beyond this difference, a corrected quantizer is tested, because the slope is only approximate.
    private static let far = 2.5
    private static let mostCorrections = 2
    /// The most steps by which the result may lie beyond both trials: a line through them is wrong far from both.
    private static let farthestBeyond = 4.0
    /// The approximate decibels per step of x264's rate factor.
    private static let decibelsPerRateFactor = 0.6

    /// - Parameter first: The first guess.
    func quantizer<Decoder: AnimationDecoder & ~Copyable, Settings: EncoderSettings>(
        _ trial: QualityTrial<Decoder>, first: Int, _ settings: (Int) -> Settings
    ) throws(TranscodeError) -> Int {
        guard let (target, steps) = try trial.target() else { return first }
        let more = Int((steps * Self.decibelsPerRateFactor / decibelsPerStep).rounded())
        let coarsest = min(range.upperBound, first + trial.mostStepsCoarser + more)
        func clamped(_ quantizer: Double) -> Int {
            Int(min(Double(coarsest), max(Double(range.lowerBound), quantizer)).rounded())
        }
        func distance(_ trial: (quantizer: Int, decibels: Double)) -> Double { abs(trial.decibels - target) }
        var last = (quantizer: first, decibels: try trial.quality(settings(first)))
        guard distance(last) > Self.tolerance else { return first }
        var next = clamped(Double(first) + (last.decibels - target) / decibelsPerStep)
        for _ in 0..<Self.mostCorrections where next != last.quantizer && distance(last) > Self.far {
            let before = last
            last = (next, try trial.quality(settings(next)))
            let slope = (last.decibels - before.decibels) / Double(last.quantizer - before.quantizer)
            // If the quality hardly depends on the quantizer, a line through both would lead too far.
            guard distance(last) > Self.tolerance, slope < -decibelsPerStep / 4 else {
                return distance(last) <= distance(before) ? last.quantizer : before.quantizer
            }
            let least = Double(min(before.quantizer, last.quantizer)) - Self.farthestBeyond
            let most = Double(max(before.quantizer, last.quantizer)) + Self.farthestBeyond
            next = clamped(min(most, max(least, Double(last.quantizer) + (target - last.decibels) / slope)))
        }
        return next
    }
}

/// The pictures on which encoders are compared: all pictures of a short animation, or the same number from its beginning and
/// its middle. Of large pictures, a band across the middle is compared.
final class QualityTrial<Decoder: AnimationDecoder & ~Copyable> {
    /// The most pictures of one excerpt. Two are needed to see how an encoder treats unchanged parts.
    private static var mostPictures: Int { 3 }
    /// The most pictures of an animation that is compared as a whole.
    private static var mostPicturesOfWhole: Int { 8 }
    /// The most pixels of all pictures together, beyond two pictures of each excerpt.
    private static var mostPixels: Int { 4_000_000 }
    /// An encoder and a decoder of larger pictures would need too much memory, and the trials too much time.
    private static var mostPixelsOfPicture: Int { 2_500_000 }
    /// The most pixels of a band of a larger picture.
    private static var mostPixelsOfBand: Int { 1_250_000 }
    /// Pictures after an excerpt that x264's lookahead takes into account.
    private static var lookahead: Int { 30 }

    private let source: ScannedSource<Decoder>
    private let content: PictureContent
    /// The pixels of one picture of the animation.
    let pixels: Int
    private let width: Int
    /// The height of the band that is compared, and the rows above it.
    private let height: Int
    private let top: Int
    /// The indices of the pictures among the samples, in ascending order, and the pictures.
    private var indices: [Int] = []
    private var pictures: [OwnedPlanes] = []
    /// The number of all pictures of the animation.
    private let samples: Int
    /// Whether the animation has more pictures than are compared.
    private let isExcerpt: Bool

    init(_ source: ScannedSource<Decoder>, _ content: PictureContent) throws(TranscodeError) {
        self.source = source
        self.content = content
        let chroma = content.chroma
        let reader = try SampleSource(source, chroma: chroma)
        width = reader.width
        pixels = width * reader.height
        height = pixels > Self.mostPixelsOfPicture ? max(2, Self.mostPixelsOfBand / width / 2 * 2) : reader.height
        top = (reader.height - height) / 4 * 2
        let band = width * height
        samples = source.plan.count
        let isShort = samples <= Self.mostPicturesOfWhole && samples * band <= Self.mostPixels
        let count = isShort ? samples : min(Self.mostPictures, max(2, Self.mostPixels / band / 2))
        let middle = max(count, samples / 2)
        isExcerpt = samples > 2 * count
        let canvas = try OwnedPlanes(width: width, height: reader.height, chroma)
        while reader.samples < middle + count, try reader.next(into: { () throws(TranscodeError) in canvas.planes }) != nil {
            let index = reader.samples - 1
            guard index < count || index >= middle else { continue }
            indices.append(index)
            pictures.append(try OwnedPlanes(copying: canvas, from: top, height: height))
        }
    }

    /// The most steps by which the result may be coarser than the first guess, if H.264 has its usual rate factor. In small
    /// pictures with full chroma, coarser steps hardly save bytes, and single steps lose whole colours.
    var mostStepsCoarser: Int { content.chroma == .full && content.isSmall ? 0 : 12 }

    /// Returns the quality that the other encoder must reach, and the steps by which x264's rate factor is raised because the
    /// MP4 would be larger than its source. Nil if the animation has no picture.
    func target() throws(TranscodeError) -> (decibels: Double, stepsCoarser: Double)? {
        guard !indices.isEmpty else { return nil }
        let settings = H264Settings(source.options, content)
        var (reached, bytesPerPicture) = try quality(ofMP4With: settings)
        var steps = 0.0
        let size = Int(bytesPerPicture * Double(samples))
        if let coarser = try settings.coarser(after: size, of: source) {
            steps = coarser.rateFactor - settings.rateFactor
            reached = try quality(ofMP4With: coarser).decibels
        }
        let clear = Self.clear(quality: source.options.quality)
        return (min(reached, clear) + Self.correction(content, isExcerpt: isExcerpt), steps)
    }

    /// Returns the quality of the compared pictures in an MP4 of the animation, and the mean bytes per encoded picture.
    private func quality(ofMP4With settings: H264Settings) throws(TranscodeError) -> (decibels: Double, bytesPerPicture: Double)
    {
        let reader = try SampleSource(source)
        let canvas = reader.height > height ? try OwnedPlanes(width: width, height: reader.height, reader.chroma) : nil
        let encoder = try VideoEncoder(width: width, height: height, settings: settings)
        let decoder = try PictureDecoder(encoder, H264Settings.self)
        var similarity = PictureSimilarity()
        var (next, size) = (0, 0)
        func compare(_ frame: UnsafeMutablePointer<AVFrame>) {
            guard next < indices.count, frame.pointee.pts == indices[next] else { return }
            similarity.add(pictures[next], frame)
            next += 1
        }
        func decode(_ packet: UnsafeMutablePointer<AVPacket>) throws(TranscodeError) {
            size += Int(packet.pointee.size)
            try decoder.decode(packet, compare)
        }
        let end = (indices.last ?? 0) + Self.lookahead
        func planes() throws(TranscodeError) -> FramePlanes {
            if let canvas { canvas.planes } else { try encoder.planes() }
        }
        while reader.samples <= end, try reader.next(into: planes) != nil {
            if let canvas { canvas.copy(from: top, height: height, to: try encoder.planes()) }
            try encoder.encode { packet throws(TranscodeError) in try decode(packet) }
        }
        try encoder.finish { packet throws(TranscodeError) in try decode(packet) }
        try decoder.decode(nil, compare)
        let share = Double(width * height) / Double(pixels)
        return (similarity.decibels, Double(size) / share / Double(max(1, reader.samples)))
    }

    /// Returns the decibels to add to the quality of the H.264.
    static func correction(_ content: PictureContent, isExcerpt: Bool) -> Double {
        (isExcerpt ? excerptGain : 0) - (content.chroma == .full && !content.isSmall ? worthOfColors : 0)
            + (content.isUndithered ? costOfSmoothing : 0)
    }

    /// The decibels by which excerpts are better than the same pictures in the whole animation, because more of them closely
    /// follow a keyframe.
    private static var excerptGain: Double { 0.6 }

    /// The luma decibels that full-resolution chroma is worth: with so much less, files are as large as in 4:2:0. Small pictures
    /// keep them, because they cost few bytes.
    private static var worthOfColors: Double { 1 }

    /// The extra decibels for films whose dither was removed: at equal similarity, AV1 and VP9 smooth them more than H.264,
    /// which is visible in comparison with the film.
    private static var costOfSmoothing: Double { 0.9 }

    /// The quality above which no difference is visible: an SSIM of 0.997 at the default, and more for a higher `quality`.
    private static func clear(quality: Int) -> Double { PictureSimilarity.clear + 0.4 * Double(max(0, quality - 60)) }

    func quality<Settings: EncoderSettings>(_ settings: Settings) throws(TranscodeError) -> Double {
        var pass = EncoderPass.only
        if settings.hasTwoPasses {
            let encoder = try VideoEncoder(width: width, height: height, settings: settings, pass: .first)
            try encode(by: encoder) { _ in }
            pass = try encoder.finishFirstPass()
        }
        let encoder = try VideoEncoder(width: width, height: height, settings: settings, pass: pass)
        let decoder = try PictureDecoder(encoder, Settings.self)
        var similarity = PictureSimilarity()
        var next = 0
        func compare(_ frame: UnsafeMutablePointer<AVFrame>) {
            guard next < pictures.count else { return }
            similarity.add(pictures[next], frame)
            next += 1
        }
        try encode(by: encoder) { packet throws(TranscodeError) in try decoder.decode(packet, compare) }
        try encoder.finish { packet throws(TranscodeError) in try decoder.decode(packet, compare) }
        try decoder.decode(nil, compare)
        return similarity.decibels
    }

    private func encode<Settings: EncoderSettings>(
        by encoder: VideoEncoder<Settings>, _ sink: (UnsafeMutablePointer<AVPacket>) throws(TranscodeError) -> Void
    ) throws(TranscodeError) {
        for picture in pictures {
            picture.copy(height: height, to: try encoder.planes())
            try encoder.encode(sink)
        }
    }
}

extension OwnedPlanes {
    /// Copies `height` rows of another picture, from the row `top`. Both are even.
    fileprivate convenience init(copying other: OwnedPlanes, from top: Int, height: Int) throws(TranscodeError) {
        try self.init(width: other.width, height: height, other.chroma)
        other.copy(from: top, height: height, to: planes)
    }

    /// Copies `height` rows to the planes, from the row `top`. Both are even.
    fileprivate func copy(from top: Int = 0, height: Int, to other: FramePlanes) {
        let all = Rectangle(x: 0, y: 0, width: width, height: height)
        other.copy(all, from: planes.from(x: 0, y: top), width: width, height: height)
    }
}

/// The structural similarity of pictures (SSIM; Wang et al., "Image quality assessment", 2004), computed over blocks of 8 × 8
/// samples. Luma has two thirds of the weight. The H.264 of 4:4:4 pictures is compared by luma alone, because its chroma is
/// subsampled.
struct PictureSimilarity {
    private static let side = 8
    // (0.01 · 219)² and (0.03 · 219)²: luma has a range of 219.
    private static let meanConstant = 4.8
    private static let varianceConstant = 43.2

    /// The decibels above which no difference is visible at the default quality.
    static let clear = 25.6
    /// The most decibels by which 4:4:4 chroma lowers the result below luma's: the colours of some drawings cost twice the
    /// bytes of their H.264. With 4 decibels, orange turned yellow in pixel art.
    private static let mostOfColors = 6.0

    private var sum = 0.0
    /// The sum of the weights of the blocks.
    private var blocks = 0.0
    /// The sums for luma alone; 0 except in 4:4:4.
    private var luma = (sum: 0.0, blocks: 0.0)

    /// Adds a picture and its decoded counterpart.
    fileprivate mutating func add(_ picture: OwnedPlanes, _ frame: UnsafeMutablePointer<AVFrame>) {
        guard let decoded = FramePlanes(frame) else { return }
        let planes = picture.planes
        let width = min(picture.width, Int(frame.pointee.width))
        let height = min(picture.height, Int(frame.pointee.height))
        let before = (sum: sum, blocks: blocks)
        add(planes.luma, planes.lumaStride, decoded.luma, decoded.lumaStride, width: width, height: height)
        guard picture.chroma == .half || decoded.chroma == .full else { return }
        if picture.chroma == .full { luma = (sum - before.sum + luma.sum, blocks - before.blocks + luma.blocks) }
        let (columns, rows) = (width >> picture.chroma.shift, height >> picture.chroma.shift)
        let weight = picture.chroma == .half ? 1 : 0.25
        add(planes.cb, planes.cbStride, decoded.cb, decoded.cbStride, width: columns, height: rows, weight: weight)
        add(planes.cr, planes.crStride, decoded.cr, decoded.crStride, width: columns, height: rows, weight: weight)
    }

    /// Adds the blocks of two planes.
    mutating func add(
        _ first: UnsafeMutablePointer<UInt8>, _ firstStride: Int, _ second: UnsafeMutablePointer<UInt8>, _ secondStride: Int,
        width: Int, height: Int, weight: Double = 1
    ) {
        for y in stride(from: 0, to: height, by: Self.side) {
            for x in stride(from: 0, to: width, by: Self.side) {
                sum +=
                    weight
                    * Self.similarity(
                        first + y * firstStride + x, firstStride, second + y * secondStride + x, secondStride,
                        width: min(Self.side, width - x), height: min(Self.side, height - y))
                blocks += weight
            }
        }
    }

    private static func similarity(
        _ first: UnsafePointer<UInt8>, _ firstStride: Int, _ second: UnsafePointer<UInt8>, _ secondStride: Int, width: Int,
        height: Int
    ) -> Double {
        var (firstSum, secondSum, firstSquares, secondSquares, products) = (0, 0, 0, 0, 0)
        for y in 0..<height {
            let (a, b) = (first + y * firstStride, second + y * secondStride)
            for x in 0..<width {
                let (p, q) = (Int(a[x]), Int(b[x]))
                firstSum &+= p
                secondSum &+= q
                firstSquares &+= p &* p
                secondSquares &+= q &* q
                products &+= p &* q
            }
        }
        let count = Double(width * height)
        let (p, q) = (Double(firstSum) / count, Double(secondSum) / count)
        let variances = Double(firstSquares + secondSquares) / count - p * p - q * q
        let covariance = Double(products) / count - p * q
        return (2 * p * q + meanConstant) * (2 * covariance + varianceConstant)
            / ((p * p + q * q + meanConstant) * (variances + varianceConstant))
    }

    /// The mean similarity s as -10 · log₁₀(1 - s), up to 70.
    var decibels: Double {
        func decibels(_ sum: Double, _ blocks: Double) -> Double {
            Self.decibels(error: max(1e-7, blocks > 0 ? 1 - sum / blocks : 0))
        }
        let all = decibels(sum, blocks)
        return luma.blocks > 0 ? max(all, min(decibels(luma.sum, luma.blocks), Self.clear) - Self.mostOfColors) : all
    }

    /// Returns -10 · log₁₀ of a positive number.
    static func decibels(error: Double) -> Double { -3.010_299_956_639_812 * PortableMath.log2(error) }
}
