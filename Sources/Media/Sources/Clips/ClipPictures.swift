internal import CAV

/// Decodes the pictures of a clip as words of R, G, B, A in sRGB with straight alpha: turned upright, with square pixels. Not
/// thread-safe.
final class ClipPictures {
    let width: Int
    let height: Int

    private let format: SourceFormat
    private let stream: ClipStream
    private let alpha: ClipStream?
    private let alphaIsAddition: Bool
    private let isPremultiplied: Bool
    private let orientation: ClipOrientation
    private var colors: ClipColors
    private var alphaColors: ClipColors?
    /// Nil if the colours are those of sRGB.
    private let conversion: ColorConversion?
    /// The first picture, whose pixels were not asked for yet.
    private var first: ClipStream.Picture?
    private let firstTime: Int64
    /// A decoded picture that is turned upright, in its own size.
    private var upright: HeapBuffer<UInt32>
    private var uprightSize: (width: Int, height: Int)
    /// Nil where the size of the picture is that of the clip.
    private var scaler: PictureScaler?
    private let words: HeapBuffer<UInt32>
    private let planes: ClipPlanes
    /// Where the chroma of ``planes(at:)`` lies; nil if pictures have to be converted.
    let siting: FramePlanes.Siting?

    /// Decodes the first picture, which determines the size.
    ///
    /// - Throws: ``TranscodeError``.
    init(_ bytes: UnsafeRawBufferPointer, _ format: SourceFormat, _ index: ClipIndex, limits: MediaLimits)
        throws(TranscodeError)
    {
        self.format = format
        let container = try ClipContainer(bytes, format)
        let videos = container.videos
        guard let track = videos.first, let firstFrame = index.frames.first else { throw .corrupt(format, .noFrames) }
        let parameters = track.pointee.codecpar.pointee
        let (codedWidth, codedHeight) = (Int(max(0, parameters.width)), Int(max(0, parameters.height)))
        try limits.check(.side, max(codedWidth, codedHeight))
        try limits.check(.canvasPixels, codedWidth * codedHeight)
        stream = try ClipStream(
            container, track, .colors, format: format, reordering: index.reordering, limits: limits)
        let alphaTrack = format == .avif ? videos.dropFirst().first : nil
        alphaIsAddition = index.hasAlpha
        if alphaTrack != nil || index.hasAlpha {
            let other = try ClipContainer(bytes, format)
            let tracks = other.videos
            guard tracks.count == videos.count else { throw .corrupt(format, .header) }
            alpha = try ClipStream(
                other, tracks[alphaTrack == nil ? 0 : 1], index.hasAlpha ? .additions : .colors, format: format,
                reordering: index.reordering, limits: limits)
        } else {
            alpha = nil
        }
        isPremultiplied = alphaTrack != nil && ClipBoxes.isPremultiplied(bytes)
        orientation = ClipOrientation(track)
        firstTime = firstFrame.time
        let picture = try stream.picture(at: firstTime)
        guard case .frame(let frame) = picture else {
            throw index.ending == .brokenOff ? .incomplete(format) : .corrupt(format, .unreadableFrame)
        }
        first = picture
        let colors = try ClipColors(frame, format)
        let aspect = ClipOrientation.aspect(track, frame, isWebM: format == .webm)
        let size = orientation.size(of: ClipOrientation.squared(colors.width, colors.height, aspect))
        try limits.check(.side, max(size.width, size.height))
        try limits.check(.canvasPixels, size.width * size.height)
        (width, height) = size
        let isConverted: Bool
        if let found = Self.conversion(track, frame, format) {
            conversion = consume found
            isConverted = true
        } else {
            conversion = nil
            isConverted = false
        }
        let turned = orientation.size(of: (colors.width, colors.height))
        upright = try HeapBuffer(count: size == turned ? 1 : turned.width * turned.height)
        uprightSize = turned
        words = try HeapBuffer(count: size.width * size.height)
        let isSized = size == (colors.width, colors.height)
        let hasPlanes = !isConverted && isSized && alphaTrack == nil && !index.hasAlpha && ClipOrientation(track).isIdentity
        siting = hasPlanes ? ClipColors.siting(frame, format) : nil
        planes = try ClipPlanes(width: size.width, height: size.height)
        self.colors = consume colors
        scaler = try makeScaler()
    }

    /// Whether some picture may have alpha.
    var hasAlpha: Bool { alpha != nil }

    /// The conversion to sRGB, by the profile or the tags of the stream; nil without an effective one.
    private static func conversion(
        _ track: UnsafeMutablePointer<AVStream>, _ frame: UnsafeMutablePointer<AVFrame>, _ format: SourceFormat
    ) -> ColorConversion? {
        var size = 0
        if let data = gifreel_stream_side_data(track, AV_PKT_DATA_ICC_PROFILE, &size),
            let found = ColorConversion(profile: UnsafeRawBufferPointer(start: data, count: size), .colors)
        {
            if found.isIdentity { return nil }
            return found
        }
        // The container's tags are only used where the stream has none.
        let parameters = track.pointee.codecpar.pointee
        func tag(_ ofFrame: UInt32, _ ofTrack: UInt32) -> UInt8 { UInt8(clamping: ofFrame == 2 ? ofTrack : ofFrame) }
        var primaries = tag(frame.pointee.color_primaries.rawValue, parameters.color_primaries.rawValue)
        var transfer = tag(frame.pointee.color_trc.rawValue, parameters.color_trc.rawValue)
        if let range = HighRange(primaries: primaries == 2 ? 9 : primaries, transfer: transfer) {
            return ColorConversion(range)
        }
        // Players show the transfer functions of video as sRGB.
        if format.isVideo && [1, 6, 7, 14, 15].contains(transfer) || transfer == 2 { transfer = 13 }
        if primaries == 2 || format.isVideo && primaries == 5 { primaries = 1 }
        guard let space = ColorSpace(primaries: primaries, transfer: transfer), let found = ColorConversion(space, .colors),
            !found.isIdentity
        else { return nil }
        return found
    }

    private func makeScaler() throws(TranscodeError) -> PictureScaler? {
        if uprightSize == (width, height) { return nil }
        let all = Rectangle(x: 0, y: 0, width: uprightSize.width, height: uprightSize.height)
        return try PictureScaler(all, to: (width, height), isOpaque: alpha == nil)
    }

    /// The picture of a time, which must be later than those asked for before. The last one again if the clip has none for it.
    ///
    /// - Returns: Words that are valid until the next call; nil if the clip cannot be decoded any further.
    func picture(at time: Int64) throws(TranscodeError) -> UnsafeBufferPointer<UInt32>? {
        let whole = UnsafeBufferPointer(start: words.base, count: width * height)
        switch try nextPicture(time) {
        case .brokenOff: return nil
        case .missing: return whole
        case .frame(let frame):
            try draw(frame, time)
            return whole
        }
    }

    /// The planes of the picture of a time, in place of ``picture(at:)``. Only where ``siting`` is not nil.
    func planes(at time: Int64) throws(TranscodeError) -> FramePlanes? {
        switch try nextPicture(time) {
        case .brokenOff: return nil
        case .missing: return planes.current
        case .frame(let frame):
            if colors.fits(frame), ClipColors.siting(frame, format) != nil { return try planes.hold(frame) }
            try draw(frame, time)
            return try planes.convert(words.base)
        }
    }

    /// Continues with a sync sample, without decoding the pictures before it.
    func skip(to sync: Int64) {
        // Alpha may have sync samples at other times.
        guard alpha == nil, sync > firstTime else { return }
        first = nil
        stream.skip(to: sync)
    }

    private func nextPicture(_ time: Int64) throws(TranscodeError) -> ClipStream.Picture {
        let picture = first
        first = nil
        if time == firstTime, let picture { return picture }
        return try stream.picture(at: time)
    }

    private func draw(_ frame: UnsafeMutablePointer<AVFrame>, _ time: Int64) throws(TranscodeError) {
        if !colors.fits(frame) {
            // A stream may change its size. The first picture's is that of the clip.
            colors = try ClipColors(frame, format)
            let turned = orientation.size(of: (colors.width, colors.height))
            if turned != uprightSize {
                upright = try HeapBuffer(count: turned.width * turned.height)
                uprightSize = turned
                scaler = try makeScaler()
            }
        }
        var alphaFrame: UnsafeMutablePointer<AVFrame>?
        if let alpha, case .frame(let found) = try alpha.picture(at: time), Int(found.pointee.width) == colors.width,
            Int(found.pointee.height) == colors.height
        {
            if !(alphaColors?.fits(found) ?? false) { alphaColors = try ClipColors(found, format) }
            alphaFrame = found
        }
        let target = scaler == nil ? words.base : upright.base
        let row = try HeapBuffer<UInt32>(count: colors.width)
        for y in 0..<colors.height {
            let place = orientation.isIdentity ? target + y * colors.width : row.base
            colors.convertRow(y, of: frame, into: place)
            if let alphaFrame {
                alphaColors?.convertAlphaRow(y, of: alphaFrame, isExact: alphaIsAddition, into: place)
            }
            if isPremultiplied { Self.divideByAlpha(place, count: colors.width) }
            conversion?.convert(UnsafeMutableBufferPointer(start: place, count: colors.width))
            if !orientation.isIdentity {
                orientation.place(row.base, y: y, of: (colors.width, colors.height), into: target)
            }
        }
        try scaler?.scale(upright.base, stride: uprightSize.width, into: words.base, pitch: width)
    }

    private static func divideByAlpha(_ words: UnsafeMutablePointer<UInt32>, count: Int) {
        for x in 0..<count {
            let alpha = words[x] >> 24
            if alpha == 255 || alpha == 0 { continue }
            var word = alpha << 24
            for shift in stride(from: UInt32(0), to: 24, by: 8) {
                word |= min(255, ((words[x] >> shift & 255) * 255 + alpha / 2) / alpha) << shift
            }
            words[x] = word
        }
    }
}
