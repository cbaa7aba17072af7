internal import CMedia

/// Decodes the pictures of a clip to words of R, G, B, A in sRGB with straight alpha, upright and with square pixels. Not
/// thread-safe.
final class ClipPictures {
    let width: Int
    let height: Int

    private let format: SourceFormat
    private let stream: ClipStream
    private let alpha: ClipStream?
    private let alphaIsAddition: Bool
    private let isPremultiplied: Bool
    private let crop: CropMargins
    private let orientation: ClipOrientation
    private var colors: ClipColors
    private var alphaColors: ClipColors?
    /// The conversion to sRGB; nil if the colours are sRGB.
    private var conversion: ColorConversion?
    /// The first picture, until the pixels of a picture are requested.
    private var first: ClipStream.Picture?
    /// The error if the first picture cannot be decoded.
    private let damage: TranscodeError
    /// The time of the first picture. Those before it in the index cannot be decoded.
    let firstTime: Int64
    /// A row of a decoded picture, and one of its alpha.
    private var row: HeapBuffer<UInt32>
    private var alphaRow: HeapBuffer<UInt32>
    /// A decoded picture, turned upright, in its own size.
    private var upright: HeapBuffer<UInt32>
    private var uprightSize: (width: Int, height: Int)
    /// The scaler to the clip's size; nil if the picture has that size.
    private var scaler: PictureScaler?
    private let words: HeapBuffer<UInt32>
    private let planes: ClipPlanes
    /// The chroma siting of the planes; nil if pictures have to be converted.
    let siting: FramePlanes.Siting?

    /// Decodes the first picture, which determines the size.
    init(_ bytes: UnsafeRawBufferPointer, _ format: SourceFormat, _ index: ClipIndex, limits: MediaLimits)
        throws(TranscodeError)
    {
        self.format = format
        let container = try ClipContainer(bytes, format)
        guard let track = container.color, let firstFrame = index.frames.first else { throw .corrupt(format, .noFrames) }
        let parameters = track.pointee.codecpar.pointee
        try limits.check(width: Int(max(0, parameters.width)), height: Int(max(0, parameters.height)))
        let alphaTrack = container.alpha
        alphaIsAddition = index.hasAlpha
        if alphaTrack != nil || index.hasAlpha {
            let other = try ClipContainer(bytes, format)
            guard let track = index.hasAlpha ? other.color : other.alpha else { throw .corrupt(format, .header) }
            alpha = try ClipStream(
                other, track, index.hasAlpha ? .additions : .colors, reordering: index.reordering,
                unseen: index.hasAlpha ? index.unseen : [], limits: limits)
        } else {
            alpha = nil
        }
        let alphaNumber = alphaTrack.flatMap { container.boxes(of: $0)?.number }
        isPremultiplied = alphaNumber.map { container.boxes(of: track)?.premultipliedBy.contains($0) ?? false } ?? false
        stream = try ClipStream(
            container, track, .colors, reordering: index.reordering, unseen: index.unseen, limits: limits)
        orientation = ClipOrientation(track, in: container)
        // A clip that was cut out of another may begin with pictures that refer to those before the cut. Players begin with the
        // next one.
        var (time, picture) = (firstFrame.time, try stream.picture(at: firstFrame.time))
        for next in index.frames.dropFirst() {
            guard case .missing = picture else { break }
            (time, picture) = (next.time, try stream.picture(at: next.time))
        }
        firstTime = time
        damage = index.ending == .brokenOff ? .incomplete(format) : .corrupt(format, .unreadableFrame)
        guard case .frame(let frame) = picture else { throw damage }
        first = picture
        let tags = ClipColorTags(frame, track, format)
        conversion = Self.conversion(track, frame, tags, hasAlpha: alpha != nil)
        let colors = try ClipColors(frame, tags, format, bits: conversion?.bits ?? 8)
        let aperture = format == .avif ? container.boxes(of: track)?.margins(colors.width, colors.height) : nil
        crop = container.matroska?.crop ?? aperture ?? CropMargins()
        let shown = crop.window(colors.width, colors.height)
        let aspect = ClipOrientation.aspect(track, frame, in: container)
        let size = orientation.size(of: ClipOrientation.squared(shown.width, shown.height, aspect))
        try limits.check(width: size.width, height: size.height)
        (width, height) = size
        let turned = orientation.size(of: (shown.width, shown.height))
        row = try HeapBuffer(count: colors.width)
        alphaRow = try HeapBuffer(count: 1)
        upright = try HeapBuffer(count: size == turned ? 1 : turned.width * turned.height)
        uprightSize = turned
        words = try HeapBuffer(count: size.width * size.height)
        let isSized = size == (colors.width, colors.height)
        let isWhole = crop == CropMargins() && orientation.isIdentity
        let hasPlanes = conversion == nil && isSized && isWhole && alphaTrack == nil && !index.hasAlpha
        siting = hasPlanes ? ClipColors.siting(frame, tags, format) : nil
        planes = try ClipPlanes()
        self.colors = consume colors
        scaler = try makeScaler()
    }

    /// Whether some picture may have alpha.
    var hasAlpha: Bool { alpha != nil }

    /// Returns the conversion to sRGB by the profile or the tags; nil if there is none or it has no effect.
    private static func conversion(
        _ track: UnsafeMutablePointer<AVStream>, _ frame: UnsafeMutablePointer<AVFrame>, _ tags: ClipColorTags, hasAlpha: Bool
    ) -> ColorConversion? {
        var size = 0
        let words: ColorConversion.Words = ClipColors.isGrey(frame.pointee.format) ? .greys : .colors
        if let data = gifreel_stream_side_data(track, AV_PKT_DATA_ICC_PROFILE, &size),
            let found = ColorConversion(profile: UnsafeRawBufferPointer(start: data, count: size), words)
        {
            if found.isIdentity { return nil }
            return found
        }
        return tags.conversion(bits: hasAlpha ? 8 : 10)
    }

    private func makeScaler() throws(TranscodeError) -> PictureScaler? {
        if uprightSize == (width, height) { return nil }
        let all = Rectangle(x: 0, y: 0, width: uprightSize.width, height: uprightSize.height)
        return try PictureScaler(all, to: (width, height), isOpaque: alpha == nil)
    }

    /// Returns the picture at a time, which must be later than in earlier calls; the last picture if the clip has none at that
    /// time.
    ///
    /// - Parameter asPlanes: Whether to return planes if the picture has any. Pass true only if ``siting`` is not nil.
    /// - Returns: Words or planes that are valid until the next call; nil if the clip cannot be decoded any further.
    func picture(at time: Int64, asPlanes: Bool) throws(TranscodeError) -> FramePixels? {
        let whole = UnsafeBufferPointer(start: words.base, count: width * height)
        switch try nextPicture(time) {
        case .brokenOff: return nil
        case .missing:
            if let current = planes.current { return .planes(current) }
            return .colors(whole)
        case .frame(let frame):
            let tags = ClipColorTags(frame, stream.stream, format)
            if asPlanes, conversion == nil, colors.fits(frame, tags), ClipColors.siting(frame, tags, format) != nil {
                return .planes(try planes.hold(frame))
            }
            planes.release()
            return try draw(frame, time) ? .colors(whole) : nil
        }
    }

    /// Skips to a sync sample without decoding the pictures before it.
    func skip(to sync: Int64) {
        // Alpha may have sync samples at other times.
        guard alpha == nil, sync > firstTime else { return }
        stream.skip(to: sync)
    }

    private func nextPicture(_ time: Int64) throws(TranscodeError) -> ClipStream.Picture {
        let picture = first
        first = nil
        if time == firstTime, let picture { return picture }
        // The clip may have no picture at the time, and nothing was drawn before. It is black then.
        if picture != nil { words.base.initialize(repeating: 0xff00_0000, count: width * height) }
        return try stream.picture(at: time)
    }

    /// Draws a picture, opaque if it has no alpha. Returns false if its alpha cannot be decoded.
    ///
    /// - Throws: ``TranscodeError``; `incomplete` or `corrupt` for the alpha of the first picture.
    private func draw(_ frame: UnsafeMutablePointer<AVFrame>, _ time: Int64) throws(TranscodeError) -> Bool {
        try adapt(to: frame)
        var alphaFrame: UnsafeMutablePointer<AVFrame>?
        if let alpha {
            switch try alpha.picture(at: time) {
            case .missing: break
            case .brokenOff:
                if time == firstTime { throw damage }
                return false
            case .frame(let found):
                let tags = ClipColorTags(found, alpha.stream, format)
                if !(alphaColors?.fits(found, tags) ?? false) {
                    let colors = try ClipColors(found, tags, format)
                    alphaRow = try HeapBuffer(count: colors.width)
                    alphaColors = consume colors
                }
                alphaFrame = found
            }
        }
        let window = crop.window(colors.width, colors.height)
        let target = scaler == nil ? words.base : upright.base
        for y in 0..<window.height {
            colors.convertRow(window.y + y, of: frame, into: row.base)
            if let alphaFrame { addAlpha(window.y + y, of: alphaFrame) }
            let shown = row.base + window.x
            if isPremultiplied { Self.divideByAlpha(shown, count: window.width) }
            conversion?.convert(UnsafeMutableBufferPointer(start: shown, count: window.width))
            orientation.place(shown, y: y, of: (window.width, window.height), into: target)
        }
        try scaler?.scale(upright.base, stride: uprightSize.width, into: words.base, pitch: width)
        return true
    }

    /// Adapts to a change of size or colours in the stream. The clip keeps the size of its first picture.
    private func adapt(to frame: UnsafeMutablePointer<AVFrame>) throws(TranscodeError) {
        let tags = ClipColorTags(frame, stream.stream, format)
        if colors.fits(frame, tags) { return }
        conversion = Self.conversion(stream.stream, frame, tags, hasAlpha: alpha != nil)
        colors = try ClipColors(frame, tags, format, bits: conversion?.bits ?? 8)
        row = try HeapBuffer(count: colors.width)
        let shown = crop.window(colors.width, colors.height)
        let turned = orientation.size(of: (shown.width, shown.height))
        if turned != uprightSize {
            upright = try HeapBuffer(count: turned.width * turned.height)
            uprightSize = turned
            scaler = try makeScaler()
        }
    }

    /// Adds alpha to the row of a picture. Stretches alpha of another size (ISO/IEC 23008-12 §6.6.2.1.1).
    private func addAlpha(_ y: Int, of frame: UnsafeMutablePointer<AVFrame>) {
        let (width, height) = (Int(frame.pointee.width), Int(frame.pointee.height))
        if (width, height) == (colors.width, colors.height) {
            alphaColors?.convertAlphaRow(y, of: frame, isExact: alphaIsAddition, into: row.base)
            return
        }
        alphaColors?.convertAlphaRow(
            (2 * y + 1) * height / (2 * colors.height), of: frame, isExact: alphaIsAddition, into: alphaRow.base)
        for x in 0..<colors.width {
            let alpha = alphaRow.base[(2 * x + 1) * width / (2 * colors.width)]
            row.base[x] = row.base[x] & 0xff_ffff | alpha & 0xff00_0000
        }
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
