/// How often an animation flashes (WCAG 2.2, definition “general flash and red flash thresholds”, success criterion 2.3.1).
///
/// The picture is assumed to be shown on white at its own size in CSS pixels. Squares of at least 4 × 4 pixels are compared,
/// because the definition exempts finer patterns. A transition is a change of a square from its last extreme. For general
/// flashes, the relative luminance changes by at least 0.1 and the darker picture is below 0.8. For red flashes, 320 × (R − G −
/// B), at least 0, changes by more than 20 and one of the pictures is saturated (R / (R + G + B) ≥ 0.8). Two opposing
/// transitions are a flash. A flash counts if it covers a quarter of a field of 341 × 256 pixels, which is 10 degrees wide.
package struct Flashes: Sendable, Equatable {
    /// The number of flashes of either kind that the criterion allows within one second.
    package static let allowed = 3

    /// The maximum number of general flashes within one second.
    package let general: Int
    /// The maximum number of red flashes within one second.
    package let red: Int
    /// The start of the second with the most flashes of either kind, in units of the source's timescale; 0 without flashes.
    package let worstSecond: Int

    /// The upper bound of both numbers; more are counted as this many. Only clips have pictures of less than 11 ms, and thus
    /// more than 45 flashes in a second.
    fileprivate static let most = 100
}

/// The form in a worker's file.
extension Flashes {
    static let byteCount = 10

    /// The encoding in a file: both numbers, then the time in little-endian order.
    var bytes: [UInt8] {
        [UInt8(general), UInt8(red)] + withUnsafeBytes(of: UInt64(worstSecond).littleEndian) { Array($0) }
    }

    /// Reads the encoding in a file.
    ///
    /// - Returns: Nil if the bytes are malformed.
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
    /// The number of plays; nil for an endless loop.
    private let plays: Int?
    private var time = 0
    /// The pictures of the first second: a hundred and one in each hundredth, because a clip may have thousands.
    private var first: [(colors: [SIMD4<Float>], delay: Int)] = []

    /// - Parameters:
    ///   - timescale: Units of delays per second.
    ///   - plays: The number of plays; nil for an endless loop.
    init(width: Int, height: Int, timescale: Int, plays: Int?) {
        squares = SquareColors(width: width, height: height)
        meter = FlashMeter(columns: squares.columns, rows: squares.rows, side: squares.side, second: timescale)
        second = timescale
        self.plays = plays
    }

    /// Adds the next picture.
    ///
    /// - Parameters:
    ///   - changed: The changes since the previous picture; nil for everything.
    ///   - delay: The duration of the picture.
    mutating func show(_ canvas: borrowing Canvas, _ changed: Rectangle?, for delay: Int) {
        squares.update(canvas, changed)
        meter.show(squares.colors, at: time)
        if time < second, plays != 1 {
            if first.count < 100 + 100 * time / second {
                first.append((squares.colors, delay))
            } else {
                first[first.count - 1].delay += delay
            }
        }
        time += delay
    }

    /// The flashes of all pictures so far, including the first second again if the animation repeats.
    var flashes: Flashes {
        var (meter, time) = (meter, time)
        // A flash that begins in the last second may continue in the next play.
        let (duration, end) = (time, time + second)
        var play = 1
        // If a play flashes, this many reach the upper bound. A clip may have a million within the second.
        while duration > 0, time < end, play <= Flashes.most, plays.map({ play < $0 }) ?? true {
            for picture in first where time < end {
                meter.show(picture.colors, at: time)
                time += picture.delay
            }
            play += 1
        }
        return Flashes(
            general: meter.general.most, red: meter.red.most,
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
    /// The linear light of each sRGB level, in units of 1/``full``.
    private let linear: [UInt32]
    private static let full: Float = 65535

    init(width: Int, height: Int) {
        side = max(4, (max(width, height) + 95) / 96)
        columns = (width + side - 1) / side
        rows = (height + side - 1) / side
        colors = Array(repeating: .zero, count: columns * rows)
        linear = (0..<256).map { UInt32(PortableMath.linear(sRGB: Double($0) / 255) * Double(Self.full) + 0.5) }
    }

    /// - Parameter area: The changed area; nil for everything.
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
    struct Kind {
        /// The values at the extremes since the last transition, and whether the colours there were saturated.
        private var low: [Float]
        private var high: [Float]
        private var wasSaturated: [Bool]
        /// 1 after an increase, -1 after a decrease, 0 before the first transition.
        private var direction: [Int8]
        /// The transitions of each square within the last second, and the squares with transitions in each of its pictures.
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

        /// Records the value of a square.
        ///
        /// - Parameters:
        ///   - step: The smallest change of a transition.
        ///   - ceiling: The bound that the lower value of a transition must be below.
        ///   - isSaturated: Whether the colour is saturated, as a transition requires at one of its ends.
        /// - Returns: Whether the change is a transition.
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

        /// Records the squares with a transition in a picture.
        mutating func add(_ squares: [Int], at time: Int, second: Int, columns: Int, side: Int) {
            while let first = pictures.first, first.time <= time - second {
                for square in first.squares { counts[square] -= 1 }
                pictures.removeFirst()
            }
            // More transitions of a square change nothing.
            let squares = squares.filter { counts[$0] < 2 * Flashes.most }
            guard !squares.isEmpty else { return }
            for square in squares { counts[square] += 1 }
            pictures.append((time, squares))
            while most < Flashes.most, covers(transitions: 2 * (most + 1), columns: columns, side: side) {
                most += 1
                worst = pictures[0].time
            }
        }

        /// Whether squares with at least this many transitions cover a quarter of a field.
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

    /// Adds a picture.
    ///
    /// - Parameter time: The time at which it appears, not before the previous picture.
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
