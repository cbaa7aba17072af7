/// How often an animation flashes (WCAG 2.2, definition “general flash and red flash thresholds”, success criterion 2.3.1).
///
/// The picture is taken as shown at its own size in CSS pixels, on white. Squares of at least 4 pixels are compared, because the
/// definition exempts finer patterns. A transition is a change of a square from its last extreme: of the relative luminance by 0.1 where the
/// darker picture is below 0.8; for red, of 320 × (R − G − B), at least 0, by more than 20 where one of both pictures is saturated
/// (R / (R + G + B) ≥ 0.8). Two opposing transitions are a flash. Those count that cover a quarter of a field of 341 × 256 pixels, which is
/// 10 degrees wide.
package struct Flashes: Sendable, Equatable {
    /// The flashes of either kind within one second that the criterion allows.
    package static let allowed = 3

    /// The most general flashes within one second.
    package let general: Int
    /// The most red flashes within one second.
    package let red: Int
    /// When the second with the most flashes of either kind begins, in units of the source's timescale; 0 without a flash.
    package let worstSecond: Int

    /// The bound of both numbers. Pictures are shown for 11 ms or longer, so that a second has 45 flashes at most.
    fileprivate static let most = 100

    init(general: Int, red: Int, worstSecond: Int) {
        self.general = general
        self.red = red
        self.worstSecond = worstSecond
    }

    // MARK: In a worker's file

    static let byteCount = 10

    /// The form in a file: both numbers, and the time in little-endian order.
    var bytes: [UInt8] {
        [UInt8(general), UInt8(red)] + withUnsafeBytes(of: UInt64(worstSecond).littleEndian) { Array($0) }
    }

    /// Reads the form in a file.
    ///
    /// - Returns: Nil for bytes that are none.
    package init?(_ bytes: ArraySlice<UInt8>) {
        guard bytes.count == Self.byteCount, bytes.prefix(2).allSatisfy({ $0 <= Self.most }) else { return nil }
        let raw = bytes.dropFirst(2).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard let worst = Int(exactly: raw), FactRange.duration.contains(worst) else { return nil }
        self.init(general: Int(bytes[bytes.startIndex]), red: Int(bytes[bytes.startIndex + 1]), worstSecond: worst)
    }
}

/// Counts the flashes of an animation from its pictures.
struct FlashCounter {
    private var squares: SquareColors
    private var meter: FlashMeter
    private let second: Int
    /// How often the animation is played; nil for endlessly.
    private let plays: Int?
    private var time = 0
    /// The pictures of the first second. At most a hundred, because none is shown for less than 10 ms.
    private var first: [(colors: [SIMD4<Float>], delay: Int)] = []

    /// - Parameters:
    ///   - timescale: Units of delays per second.
    ///   - plays: How often the animation is played; nil for endlessly.
    init(width: Int, height: Int, timescale: Int, plays: Int?) {
        squares = SquareColors(width: width, height: height)
        meter = FlashMeter(columns: squares.columns, rows: squares.rows, side: squares.side, second: timescale)
        second = timescale
        self.plays = plays
    }

    /// Enters the next picture.
    ///
    /// - Parameters:
    ///   - changed: What differs from the picture before; nil for everything.
    ///   - delay: How long it is shown.
    mutating func show(_ canvas: borrowing Canvas, _ changed: Rectangle?, for delay: Int) {
        squares.update(canvas, changed)
        meter.show(squares.colors, at: time)
        if time < second, plays != 1 { first.append((squares.colors, delay)) }
        time += delay
    }

    /// The flashes of all pictures so far, and of those of the first second once more if the animation is repeated.
    var flashes: Flashes {
        var (meter, time) = (meter, time)
        // What begins in the last second goes on after the first picture has returned.
        let (duration, end) = (time, time + second)
        var play = 1
        while duration > 0, time < end, plays.map({ play < $0 }) ?? true {
            for picture in first where time < end {
                meter.show(picture.colors, at: time)
                time += picture.delay
            }
            play += 1
        }
        return Flashes(
            general: min(meter.general.most, Flashes.most), red: min(meter.red.most, Flashes.most),
            worstSecond: meter.general.most >= meter.red.most ? meter.general.worst : meter.red.worst)
    }
}

/// The mean colours of squares of a picture, in linear light.
private struct SquareColors {
    let side: Int
    let columns: Int
    let rows: Int
    /// R, G and B from 0 to 1, row by row.
    private(set) var colors: [SIMD4<Float>]
    /// The light of each level of sRGB, in parts of ``full``.
    private let linear: [UInt32]
    private static let full: Float = 65535

    init(width: Int, height: Int) {
        side = max(4, (max(width, height) + 95) / 96)
        columns = (width + side - 1) / side
        rows = (height + side - 1) / side
        colors = Array(repeating: .zero, count: columns * rows)
        linear = (0..<256).map { UInt32(PortableMath.linear(sRGB: Double($0) / 255) * Double(Self.full) + 0.5) }
    }

    /// - Parameter area: What has changed; nil for everything.
    mutating func update(_ canvas: borrowing Canvas, _ area: Rectangle?) {
        let area = area ?? Rectangle(x: 0, y: 0, width: canvas.width, height: canvas.height)
        guard area.width > 0, area.height > 0 else { return }
        let white = PixelFormat.rgba.pack(.white)
        let (width, height, pixels) = (canvas.width, canvas.height, canvas.pixels)
        linear.withUnsafeBufferPointer { linear in
            for row in area.y / side...(area.maxY - 1) / side {
                for column in area.x / side...(area.maxX - 1) / side {
                    let (rows, columns) = (
                        row * side..<min((row + 1) * side, height), column * side..<min((column + 1) * side, width)
                    )
                    var (red, green, blue) = (UInt64(0), UInt64(0), UInt64(0))
                    for y in rows {
                        for x in columns {
                            var word = pixels[y * width + x]
                            if word < PixelFormat.opaque { word = PixelFormat.rgba.draw(word, .over, over: white) }
                            red += UInt64(linear[Int(word & 255)])
                            green += UInt64(linear[Int(word &>> 8 & 255)])
                            blue += UInt64(linear[Int(word &>> 16 & 255)])
                        }
                    }
                    colors[row * self.columns + column] =
                        SIMD4(Float(red), Float(green), Float(blue), 0) / (Float(rows.count * columns.count) * Self.full)
                }
            }
        }
    }
}

/// Counts the flashes of squares within a second.
private struct FlashMeter {
    /// One kind of flashes.
    struct Kind {
        /// The values at the extremes since the last transition, and whether the colours there were saturated.
        private var low: [Float]
        private var high: [Float]
        private var wasSaturated: [Bool]
        /// 1 after an increase, -1 after a decrease, 0 before the first transition.
        private var direction: [Int8]
        /// Transitions of the squares within the last second, and those of each picture in it.
        private var counts: [Int]
        private var pictures: [(time: Int, squares: [Int])] = []
        private(set) var most = 0
        private(set) var worst = 0

        init(count: Int) {
            (low, high) = (Array(repeating: .infinity, count: count), Array(repeating: -.infinity, count: count))
            wasSaturated = Array(repeating: false, count: count)
            direction = Array(repeating: 0, count: count)
            counts = Array(repeating: 0, count: count)
        }

        /// Enters the value of a square.
        ///
        /// - Parameters:
        ///   - step: The least change of a transition.
        ///   - ceiling: What the lower value of a transition has to be below.
        ///   - isSaturated: Whether the colour has what a transition needs at one of its ends.
        /// - Returns: Whether it is a transition.
        mutating func enter(_ value: Float, of square: Int, step: Float, ceiling: Float, isSaturated: Bool) -> Bool {
            let isEligible = isSaturated || wasSaturated[square]
            if direction[square] <= 0, value >= low[square] + step, low[square] < ceiling, isEligible {
                (direction[square], high[square], wasSaturated[square]) = (1, value, isSaturated)
                return true
            }
            if direction[square] >= 0, value <= high[square] - step, value < ceiling, isEligible {
                (direction[square], low[square], wasSaturated[square]) = (-1, value, isSaturated)
                return true
            }
            if direction[square] <= 0, value < low[square] { (low[square], wasSaturated[square]) = (value, isSaturated) }
            if direction[square] >= 0, value > high[square] {
                (high[square], wasSaturated[square]) = (value, isSaturated || direction[square] == 0 && wasSaturated[square])
            }
            return false
        }

        /// Enters the squares that have a transition in a picture.
        mutating func add(_ squares: [Int], at time: Int, second: Int, columns: Int, side: Int) {
            while let first = pictures.first, first.time <= time - second {
                for square in first.squares { counts[square] -= 1 }
                pictures.removeFirst()
            }
            guard !squares.isEmpty else { return }
            for square in squares { counts[square] += 1 }
            pictures.append((time, squares))
            while covers(transitions: 2 * (most + 1), columns: columns, side: side) {
                most += 1
                worst = pictures[0].time
            }
        }

        /// Whether squares with that many transitions cover a quarter of a field.
        private func covers(transitions: Int, columns: Int, side: Int) -> Bool {
            let least = (341 * 256 / 4 + side * side - 1) / (side * side)
            guard counts.lazy.filter({ $0 >= transitions }).count >= least else { return false }
            let rows = counts.count / columns
            // Sums over all squares above and to the left.
            var sums = Array(repeating: 0, count: (columns + 1) * (rows + 1))
            for row in 0..<rows {
                for column in 0..<columns {
                    let at = (row + 1) * (columns + 1) + column + 1
                    sums[at] =
                        sums[at - 1] + sums[at - columns - 1] - sums[at - columns - 2]
                        + (counts[row * columns + column] >= transitions ? 1 : 0)
                }
            }
            let (width, height) = (min(columns, max(1, 341 / side)), min(rows, max(1, 256 / side)))
            for row in 0...rows - height {
                for column in 0...columns - width {
                    let (top, bottom) = (row * (columns + 1) + column, (row + height) * (columns + 1) + column)
                    if sums[bottom + width] - sums[bottom] - sums[top + width] + sums[top] >= least { return true }
                }
            }
            return false
        }
    }

    private(set) var general: Kind
    private(set) var red: Kind
    private let columns: Int
    private let side: Int
    private let second: Int

    init(columns: Int, rows: Int, side: Int, second: Int) {
        (general, red) = (Kind(count: columns * rows), Kind(count: columns * rows))
        (self.columns, self.side, self.second) = (columns, side, second)
    }

    /// Enters a picture.
    ///
    /// - Parameter time: When it appears; not before the last one.
    mutating func show(_ colors: [SIMD4<Float>], at time: Int) {
        var (changed, reddened) = ([Int](), [Int]())
        for (square, color) in colors.enumerated() {
            let luminance = (color * SIMD4(0.2126, 0.7152, 0.0722, 0)).sum()
            if general.enter(luminance, of: square, step: 0.1, ceiling: 0.8, isSaturated: true) { changed.append(square) }
            let redness = max(0, (color[0] - color[1] - color[2]) * 320)
            let isSaturated = color[0] > 0 && color[0] >= 0.8 * color.sum()
            if red.enter(redness, of: square, step: Float(20).nextUp, ceiling: .infinity, isSaturated: isSaturated) {
                reddened.append(square)
            }
        }
        general.add(changed, at: time, second: second, columns: columns, side: side)
        red.add(reddened, at: time, second: second, columns: columns, side: side)
    }
}
