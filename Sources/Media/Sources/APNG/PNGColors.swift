internal import CMedia

/// The chunks that define the colour space of a PNG's samples (PNG third edition §11.3.2), in Chromium's order of precedence:
/// `cICP`, `iCCP`, `sRGB`, `gAMA` with an optional `cHRM`. The first chunk of each type counts. Flawed chunks are ignored.
struct PNGColors {
    private var codePoints: UnsafeRawBufferPointer?
    private var profile: UnsafeRawBufferPointer?
    private var isSRGB = false
    private var gamma: Int?
    private var chromaticities: UnsafeRawBufferPointer?
    private var hasPalette = false

    /// The `gAMA` values (reciprocal gammas in units of 1/100,000) that count as sRGB.
    private static let nearSRGB = 43_183...47_727
    private static let unit = 100_000.0

    /// Keeps a colour chunk. Ignores other chunks.
    mutating func keep(_ chunk: PNGChunk) {
        let data = chunk.data
        switch chunk.type {
        case PNGChunk.palette: hasPalette = true
        case PNGChunk.codePoints where codePoints == nil && !hasPalette && data.count == 4 && chunk.isSound: codePoints = data
        case PNGChunk.profile where profile == nil && chunk.isSound: profile = data
        case PNGChunk.sRGB where data.count == 1 && data[0] <= 3 && chunk.isSound: isSRGB = true
        case PNGChunk.gamma where gamma == nil && data.count == 4 && chunk.isSound: gamma = chunk.number(at: 0)
        case PNGChunk.chromaticities where chromaticities == nil && data.count == 32 && chunk.isSound: chromaticities = data
        default: break
        }
    }

    /// Returns the conversion to sRGB; nil if the colours are sRGB.
    ///
    /// - Throws: ``TranscodeError/outOfMemory``.
    func conversion(_ words: ColorConversion.Words) throws(TranscodeError) -> ColorConversion? {
        if let codePoints, codePoints[2] == 0, codePoints[3] == 1 {
            let (primaries, transfer) = (codePoints[0], codePoints[1])
            if let space = ColorSpace(primaries: primaries, transfer: transfer) {
                return Self.effective(ColorConversion(space, words))
            }
            if let range = HighRange(primaries: primaries, transfer: transfer) { return ColorConversion(range) }
        }
        if let profile, let conversion = try Self.conversion(profile, words) { return Self.effective(conversion) }
        guard !isSRGB, let gamma, gamma > 0 else { return nil }
        guard let chromaticities else {
            if Self.nearSRGB.contains(gamma) { return nil }
            return Self.effective(ColorConversion(ColorSpace(.sRGB, .power(Self.unit / Double(gamma))), words))
        }
        guard let primaries = ColorSpace.Primaries(chromaticities, unit: Self.unit) else { return nil }
        return Self.effective(ColorConversion(ColorSpace(primaries, .power(Self.unit / Double(gamma))), words))
    }

    private static func effective(_ conversion: consuming ColorConversion?) -> ColorConversion? {
        guard let conversion, !conversion.isIdentity else { return nil }
        return conversion
    }

    /// Returns the conversion from the compressed profile of `iCCP` (§11.3.2.3); nil if the profile is broken.
    private static func conversion(
        _ chunk: UnsafeRawBufferPointer, _ words: ColorConversion.Words
    ) throws(TranscodeError) -> ColorConversion? {
        guard let end = chunk.prefix(80).firstIndex(of: 0), end > 0, end + 2 < chunk.count, chunk[end + 1] == 0 else {
            return nil
        }
        let compressed = UnsafeRawBufferPointer(rebasing: chunk[(end + 2)...])
        let profile = try HeapBuffer<UInt8>(count: ColorConversion.maximumProfile)
        var count = UInt(profile.count)
        let status = uncompress(
            profile.base, &count, compressed.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt(compressed.count))
        if status == Z_MEM_ERROR { throw .outOfMemory }
        guard status == Z_OK else { return nil }
        return ColorConversion(profile: UnsafeRawBufferPointer(start: profile.base, count: Int(count)), words)
    }
}

extension ColorSpace.Primaries {
    /// Reads `cHRM` (§11.3.2.1): white, red, green and blue. Nil if one of them is not a chromaticity.
    fileprivate init?(_ data: UnsafeRawBufferPointer, unit: Double) {
        let points = (0..<4).map { index in
            func coordinate(_ number: Int) -> Double {
                Double(data.loadUnaligned(fromByteOffset: 8 * index + 4 * number, as: UInt32.self).bigEndian) / unit
            }
            return ColorSpace.Point(coordinate(0), coordinate(1))
        }
        guard points.allSatisfy(\.isValid), points[0].y > 0 else { return nil }
        self.init(red: points[1], green: points[2], blue: points[3], white: points[0])
    }
}
