internal import CMedia

/// Converts the colours of a source to sRGB, by Little CMS.
///
/// The cost of a profile is bounded: it has at most ``maximumProfile`` bytes, and its unbounded elements are not used. Not thread-safe.
struct ColorConversion: ~Copyable {
    /// What the words of a source hold.
    enum Words {
        /// Greys, whose three colours are equal.
        case greys
        /// Few colours, such as those of a palette.
        case palette
        /// Any colours.
        case colors
    }

    /// The most bytes of a profile. The largest usual ones, of printers, have two million.
    static let maximumProfile = 4 << 20

    /// One of these.
    private let transform: cmsHTRANSFORM?
    private let highRange: HighRange?
    /// What each grey becomes, with an alpha of 0; empty for other words than greys.
    private var greys: [UInt32] = []
    /// Whether nothing changes, because the colours are those of sRGB up to rounding.
    private(set) var isIdentity = false

    /// A conversion from an ICC profile; nil if it is broken, too large or not one of the words' colour model.
    init?(profile: UnsafeRawBufferPointer, _ words: Words) {
        guard let profile = Self.usable(profile) else { return nil }
        self.init(Profile(profile.withUnsafeBytes { cmsOpenProfileFromMem($0.baseAddress, UInt32($0.count)) }), words)
    }

    /// A conversion from a colour space; nil if there is none with such primaries.
    init?(_ space: ColorSpace, _ words: Words) {
        self.init(Profile(space), words)
    }

    /// The bits of a sample in the words to convert.
    var bits: Int { highRange?.bits ?? 8 }

    /// A conversion of a high range of light.
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

    /// Converts words of R, G, B, A in place. Their alpha stays. See ``HighRange`` for those of 10 bits.
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

    /// Whether colours on a grid in all of the space stay as they are, up to rounding. Most profiles in files describe sRGB; their
    /// conversion would only add errors of rounding.
    private func hasNoEffect() -> Bool {
        let steps: [UInt32] = [0, 7, 18, 32, 51, 77, 102, 128, 153, 179, 204, 230, 255]
        let colors = steps.flatMap { red in steps.flatMap { green in steps.map { red | green << 8 | $0 << 16 } } }
        var converted = colors
        converted.withUnsafeMutableBufferPointer { convert($0) }
        return zip(colors, converted).allSatisfy { Self.differ($0, $1) <= 1 }
    }

    /// The largest difference of two words' colours.
    private static func differ(_ one: UInt32, _ other: UInt32) -> Int {
        [0, 8, 16].map { abs(Int(one >> $0 & 255) - Int(other >> $0 & 255)) }.max() ?? 0
    }

    /// A copy of a profile without what browsers ignore: its class, conversions in floating point and, beside the perceptual intent,
    /// conversions of other intents.
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
