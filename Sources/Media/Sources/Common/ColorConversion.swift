internal import CMedia

/// Converts colours of a source to sRGB with Little CMS.
///
/// The cost of a profile is bounded: ``maximumProfile`` limits its size, and unbounded elements are not used. Not thread-safe.
struct ColorConversion: ~Copyable {
    /// The content of a source's words.
    enum Words {
        /// Greys, with equal red, green and blue.
        case greys
        /// Few colours, such as those of a palette.
        case palette
        /// Any colours.
        case colors
    }

    /// The maximum size of a profile in bytes. The largest common profiles, those of printers, have two million.
    static let maximumProfile = 4 << 20

    /// Either this or `highRange` is set.
    private let transform: cmsHTRANSFORM?
    private let highRange: HighRange?
    /// The converted colour of each grey, with an alpha of 0; empty unless the words are greys.
    private var greys: [UInt32] = []
    /// Whether the conversion has no effect, because the colours are sRGB up to rounding.
    private(set) var isIdentity = false

    /// Creates a conversion from an ICC profile. Nil if it is broken, too large or not for the words' colour model.
    init?(profile: UnsafeRawBufferPointer, _ words: Words) {
        guard let profile = Self.usable(profile) else { return nil }
        self.init(Profile(profile.withUnsafeBytes { cmsOpenProfileFromMem($0.baseAddress, UInt32($0.count)) }), words)
    }

    /// Creates a conversion from a colour space. Nil if no profile can have its primaries.
    init?(_ space: ColorSpace, _ words: Words) {
        self.init(Profile(space), words)
    }

    /// Bits per sample in the words to convert.
    var bits: Int { highRange?.bits ?? 8 }

    /// Creates a conversion from PQ or HLG.
    init(_ range: HighRange) {
        transform = nil
        highRange = range
    }

    private init?(_ source: consuming Profile?, _ words: Words) {
        guard let source, let sRGB = Profile(cmsCreate_sRGBProfile()) else { return nil }
        let isGrey = cmsGetColorSpace(source.handle) == cmsSigGrayData
        guard isGrey ? words == .greys : cmsGetColorSpace(source.handle) == cmsSigRgbData else { return nil }
        let handle: cmsHTRANSFORM? =
            isGrey
            ? gifreel_lcms_greys(source.handle, sRGB.handle)
            : gifreel_lcms_colors(source.handle, sRGB.handle, words == .colors ? 0 : 1)
        guard let handle else { return nil }
        transform = handle
        highRange = nil
        guard words == .greys else {
            isIdentity = hasNoEffect()
            return
        }
        let samples = (0...255).map(UInt8.init)
        var table: [UInt32] = (0..<256).map { isGrey ? 0 : $0 * 0x01_0101 }
        table.withUnsafeMutableBytes { table in
            samples.withUnsafeBytes {
                cmsDoTransform(handle, isGrey ? $0.baseAddress : UnsafeRawPointer(table.baseAddress), table.baseAddress, 256)
            }
        }
        greys = table
        isIdentity = table.enumerated().allSatisfy { Self.differ($1, UInt32($0) * 0x01_0101) <= 1 }
    }

    deinit {
        if let transform { cmsDeleteTransform(transform) }
    }

    /// Converts R, G, B, A words in place and keeps their alpha. See ``HighRange`` for 10-bit words.
    func convert(_ words: UnsafeMutableBufferPointer<UInt32>) {
        if let highRange { return highRange.convert(words) }
        guard !greys.isEmpty else {
            if let transform { cmsDoTransform(transform, words.baseAddress, words.baseAddress, UInt32(words.count)) }
            return
        }
        greys.withUnsafeBufferPointer { greys in
            for index in words.indices { words[index] = words[index] & 0xff00_0000 | greys[Int(words[index] & 255)] }
        }
    }

    /// Whether a grid of colours in the whole space stays unchanged, up to rounding. Most profiles in files describe sRGB;
    /// converting them would only add rounding errors.
    private func hasNoEffect() -> Bool {
        let steps: [UInt32] = [0, 7, 18, 32, 51, 77, 102, 128, 153, 179, 204, 230, 255]
        let colors = steps.flatMap { red in steps.flatMap { green in steps.map { red | green << 8 | $0 << 16 } } }
        var converted = colors
        converted.withUnsafeMutableBufferPointer { convert($0) }
        return zip(colors, converted).allSatisfy { Self.differ($0, $1) <= 1 }
    }

    /// Returns the largest difference between the colours of two words.
    private static func differ(_ one: UInt32, _ other: UInt32) -> Int {
        [0, 8, 16].map { abs(Int(one >> $0 & 255) - Int(other >> $0 & 255)) }.max() ?? 0
    }

    /// Returns a copy of a profile without the parts that browsers ignore: its class, floating-point conversions and, if it has
    /// a perceptual conversion, the colorimetric one.
    private static func usable(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        guard (132...maximumProfile).contains(bytes.count),
            bytes.loadUnaligned(as: UInt32.self).bigEndian <= bytes.count
        else { return nil }
        var profile = Array(bytes)
        func name(_ at: Int) -> String { String(decoding: bytes[at..<at + 4], as: UTF8.self) }
        func rename(_ at: Int, _ name: String) { profile.replaceSubrange(at..<at + 4, with: name.utf8) }
        rename(12, "mntr")
        let tags = Int(bytes.loadUnaligned(fromByteOffset: 128, as: UInt32.self).bigEndian)
        let entries = (0..<min(tags, (bytes.count - 132) / 12)).map { 132 + 12 * $0 }
        let isPerceptual = entries.contains { name($0) == "A2B0" }
        for entry in entries where name(entry).hasPrefix("D2B") || isPerceptual && name(entry) == "A2B1" {
            rename(entry, name(entry).lowercased())
        }
        return profile
    }

    private struct Profile: ~Copyable {
        let handle: cmsHPROFILE

        init?(_ handle: cmsHPROFILE?) {
            guard let handle else { return nil }
            self.handle = handle
        }

        init?(_ space: ColorSpace) {
            let curve =
                switch space.transfer {
                case .power(let exponent): cmsBuildParametricToneCurve(nil, 1, [exponent])
                case .sRGB: cmsBuildParametricToneCurve(nil, 4, [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045])
                case .cinema: cmsBuildParametricToneCurve(nil, 2, [2.6, 1.034_080_527_699, 0])
                case .smpte240: cmsBuildParametricToneCurve(nil, 4, [1 / 0.45, 1 / 1.1115, 0.1115 / 1.1115, 0.25, 0.0913])
                }
            guard let curve else { return nil }
            defer { cmsFreeToneCurve(curve) }
            func point(_ point: ColorSpace.Point) -> cmsCIExyY { cmsCIExyY(x: point.x, y: point.y, Y: 1) }
            let points = space.primaries
            var white = point(points.white)
            var primaries = cmsCIExyYTRIPLE(Red: point(points.red), Green: point(points.green), Blue: point(points.blue))
            self.init(cmsCreateRGBProfile(&white, &primaries, [curve, curve, curve]))
        }

        deinit { cmsCloseProfile(handle) }
    }
}
