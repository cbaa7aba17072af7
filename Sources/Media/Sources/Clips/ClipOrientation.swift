internal import CMedia

/// The quarter turns and the mirroring that make the pictures of a track upright.
struct ClipOrientation {
    private let swapsSides: Bool
    private let flipsX: Bool
    private let flipsY: Bool

    /// Reads the orientation of a track. An image sequence states it in its properties (ISO/IEC 23008-12 §6.5.10, §6.5.12). For
    /// a clip, it is the one nearest to the track's matrix (ISO/IEC 14496-12 §8.3.2).
    init(_ track: UnsafeMutablePointer<AVStream>, in container: ClipContainer) {
        if container.format == .avif {
            self.init(container.boxes(of: track))
        } else {
            self.init(track)
        }
    }

    /// Pictures are turned first, then mirrored.
    private init(_ boxes: ISOTrack?) {
        let turns = boxes?.turns ?? 0
        // An anticlockwise quarter turn moves the last column to the first row.
        swapsSides = turns & 1 == 1
        flipsX = (turns == 2 || turns == 3) != (boxes?.mirror == 1)
        flipsY = (turns == 1 || turns == 2) != (boxes?.mirror == 0)
    }

    private init(_ track: UnsafeMutablePointer<AVStream>) {
        var size = 0
        guard let data = gifreel_stream_side_data(track, AV_PKT_DATA_DISPLAYMATRIX, &size), size >= 36 else {
            (swapsSides, flipsX, flipsY) = (false, false, false)
            return
        }
        func number(_ index: Int) -> Int {
            Int(UnsafeRawPointer(data).loadUnaligned(fromByteOffset: 4 * index, as: Int32.self))
        }
        let (a, b, c, d) = (number(0), number(1), number(3), number(4))
        swapsSides = abs(a) + abs(d) < abs(b) + abs(c)
        flipsX = swapsSides ? c < 0 : a < 0
        flipsY = swapsSides ? b < 0 : d < 0
    }

    var isIdentity: Bool { !swapsSides && !flipsX && !flipsY }

    func size(of coded: (width: Int, height: Int)) -> (width: Int, height: Int) {
        swapsSides ? (coded.height, coded.width) : coded
    }

    /// Writes a row of a coded picture to its place in the upright picture.
    func place(
        _ row: UnsafePointer<UInt32>, y: Int, of coded: (width: Int, height: Int), into target: UnsafeMutablePointer<UInt32>
    ) {
        let (width, height) = coded
        if swapsSides {
            let column = flipsX ? height - 1 - y : y
            for x in 0..<width { target[(flipsY ? width - 1 - x : x) * height + column] = row[x] }
        } else {
            let line = target + (flipsY ? height - 1 - y : y) * width
            for x in 0..<width { line[flipsX ? width - 1 - x : x] = row[x] }
        }
    }

    // MARK: Pixel aspect

    /// Returns the width and height of a pixel, in proportion; nil for square pixels. The container takes precedence over the
    /// stream. Image sequences have square pixels.
    static func aspect(
        _ track: UnsafeMutablePointer<AVStream>, _ frame: UnsafeMutablePointer<AVFrame>, in container: ClipContainer
    ) -> (Int, Int)? {
        if container.format == .avif { return nil }
        let candidates =
            [container.matroska?.aspect].compactMap { $0 }
            + [
                track.pointee.sample_aspect_ratio, track.pointee.codecpar.pointee.sample_aspect_ratio,
                frame.pointee.sample_aspect_ratio,
            ].map { (Int($0.num), Int($0.den)) }
        guard let found = candidates.first(where: { $0.0 > 0 && $0.1 > 0 }), found.0 != found.1 else { return nil }
        return found
    }

    /// Returns the size with square pixels. As in browsers, the side along which pixels are longer grows. No side becomes 0.
    static func squared(_ width: Int, _ height: Int, _ aspect: (Int, Int)?) -> (width: Int, height: Int) {
        guard let (horizontal, vertical) = aspect else { return (width, height) }
        let ratio = Double(horizontal) / Double(vertical)
        // More extreme ratios are assumed to be errors.
        guard (1.0 / 64...64).contains(ratio) else { return (width, height) }
        if ratio > 1 { return (max(1, Int((Double(width) * ratio).rounded())), height) }
        return (width, max(1, Int((Double(height) / ratio).rounded())))
    }
}

/// What a container cuts off a picture, in pixels.
struct CropMargins: Equatable {
    var left = 0
    var top = 0
    var right = 0
    var bottom = 0

    /// Returns the part of a picture within the margins. Margins that leave nothing are ignored.
    func window(_ width: Int, _ height: Int) -> Rectangle {
        let rest = Rectangle(x: left, y: top, width: width - left - right, height: height - top - bottom)
        return rest.width > 0 && rest.height > 0 ? rest : Rectangle(x: 0, y: 0, width: width, height: height)
    }
}
