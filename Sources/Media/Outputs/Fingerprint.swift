internal import SystemIO

/// A PDQ hash of a picture: 256 bits. Resizing, re-encoding or a small change of the picture flips few of them.
///
/// The algorithm is that of “The TMK+PDQF Video-Hashing Algorithm and the PDQ Image-Hashing Algorithm” (Facebook, 2019): the luma is
/// smoothed by a filter of Jarosz and reduced to 64 × 64 samples; a bit says whether one of 16 × 16 frequencies of their cosine
/// transform is above the median.
package struct PDQHash: Sendable, Hashable {
    /// Bit `n` is bit `n % 64` of the lane `n / 64`.
    package let bits: SIMD4<UInt64>

    /// The length of ``text``, and of the bytes that it stands for.
    package static let digits = 64
    static let byteCount = 32

    package init(_ bits: SIMD4<UInt64>) { self.bits = bits }

    /// The number of bits that differ. Of unrelated pictures about 128 do, of variants of one at most ``nearDistance``.
    package func distance(to other: PDQHash) -> Int {
        Int((bits ^ other.bits).nonzeroBits)
    }

    /// The distance up to which the authors of the algorithm take two pictures for the same.
    package static let nearDistance = 31

    /// The bits as hexadecimal digits, the highest bit first.
    package var text: String { (0..<4).reversed().map { Hex.encode(bits[$0]) }.joined() }

    /// Parses ``text``, in either case.
    package init?(text: some Sequence<UInt8>) {
        // One digit more than there should be is enough to tell, whatever the length of a line.
        let digits = text.prefix(Self.digits + 1).map { (UInt8(ascii: "A")...UInt8(ascii: "F")).contains($0) ? $0 | 0x20 : $0 }
        guard digits.count == Self.digits, let bytes = Hex.decode(digits) else { return nil }
        var bits = SIMD4<UInt64>.zero
        for (index, byte) in bytes.enumerated() { bits[3 - index / 8] = bits[3 - index / 8] << 8 | UInt64(byte) }
        self.bits = bits
    }
}

extension SIMD4<UInt64> {
    /// The number of bits that are 1.
    @inline(__always)
    fileprivate var nonzeroBits: UInt64 {
        UInt64(self[0].nonzeroBitCount + self[1].nonzeroBitCount + self[2].nonzeroBitCount + self[3].nonzeroBitCount)
    }
}

/// The PDQ hash of a picture of an animation, with the amount of detail that it stands on.
package struct Fingerprint: Sendable, Equatable {
    package let hash: PDQHash
    /// 0…100: the sum of the differences of neighbouring samples. A hash below ``leastQuality`` is that of a picture almost without detail,
    /// and similar to those of many others.
    package let quality: Int

    /// The quality below which the authors of the algorithm compare no pictures.
    package static let leastQuality = 50
    /// The most pictures of an animation.
    package static let most = 16

    /// Samples and frequencies along a side.
    private static let (side, waves) = (64, 16)
    /// A picture with a shorter side has no fingerprint: all bits are 0.
    private static let leastSide = 5

    init(hash: PDQHash, quality: Int) {
        self.hash = hash
        self.quality = quality
    }

    /// Describes a canvas of the format ``PixelFormat/rgba``, laid on white as a JPEG poster is.
    init(_ canvas: borrowing Canvas) {
        guard min(canvas.width, canvas.height) >= Self.leastSide else {
            self.init(hash: PDQHash(.zero), quality: 0)
            return
        }
        let samples = Self.samples(canvas)
        self.init(hash: Self.hash(samples), quality: Self.quality(samples))
    }

    /// The smoothed luma at 64 × 64 points, row by row.
    ///
    /// The filter is linear, and that of the rows does not depend on that of the columns. So only the samples that are kept are computed: the
    /// rows around each are added up first, then the columns of their sum.
    private static func samples(_ canvas: borrowing Canvas) -> [SIMD64<Float>] {
        let (across, down) = (taps(canvas.width), taps(canvas.height))
        let (width, pixels) = (canvas.width, canvas.pixels)
        let white = PixelFormat.rgba.pack(.white)
        return withUnsafeTemporaryAllocation(of: Float.self, capacity: width) { columns in
            down.map { rows in
                columns.initialize(repeating: 0)
                for (offset, weight) in rows.weights.enumerated() {
                    let row = pixels + (rows.first + offset) * width
                    let (red, green, blue) = (0.299 * weight, 0.587 * weight, 0.114 * weight)
                    for x in 0..<width {
                        var word = row[x]
                        if word < PixelFormat.opaque { word = PixelFormat.rgba.draw(word, .over, over: white) }
                        columns[x] +=
                            red * Float(word & 255) + green * Float(word &>> 8 & 255) + blue * Float(word &>> 16 & 255)
                    }
                }
                var samples = SIMD64<Float>.zero
                for (index, taps) in across.enumerated() {
                    var sum: Float = 0
                    for (offset, weight) in taps.weights.enumerated() { sum += weight * columns[taps.first + offset] }
                    samples[index] = sum
                }
                return samples
            }
        }
    }

    /// For each sample along a side of that length, the positions that it is the mean of, by weights: those of a box filter that is applied twice.
    private static func taps(_ length: Int) -> [(first: Int, weights: [Float])] {
        let window = (length + 2 * side - 1) / (2 * side)
        func box(_ position: Int) -> ClosedRange<Int> {
            max(0, position - (window - 1) / 2)...min(length - 1, position + window / 2)
        }
        return (0..<side).map { index in
            let outer = box((2 * index + 1) * length / (2 * side))
            let reach = box(outer.lowerBound).lowerBound...box(outer.upperBound).upperBound
            var weights = [Float](repeating: 0, count: reach.count)
            for position in outer {
                let inner = box(position)
                for each in inner { weights[each - reach.lowerBound] += 1 / Float(outer.count * inner.count) }
            }
            return (reach.lowerBound, weights)
        }
    }

    /// At each of the samples along a side, the cosine waves but the constant one.
    private static let cosines = (0..<side).map { index in
        var values = SIMD16<Float>.zero
        for wave in 1...waves {
            values[wave - 1] = Float(PortableMath.cosine(halfTurns: Double(wave * (2 * index + 1)) / Double(2 * side)))
        }
        return values
    }

    private static func hash(_ samples: [SIMD64<Float>]) -> PDQHash {
        var sums = Array(repeating: SIMD16<Float>.zero, count: waves)
        for (row, down) in zip(samples, cosines) {
            var across = SIMD16<Float>.zero
            for index in 0..<side { across += row[index] * cosines[index] }
            for wave in 0..<waves { sums[wave] += down[wave] * across }
        }
        let frequencies = sums.flatMap { sum in (0..<waves).map { sum[$0] } }
        let median = frequencies.sorted()[frequencies.count / 2 - 1]
        var bits = SIMD4<UInt64>.zero
        for (index, value) in frequencies.enumerated() where value > median { bits[index / 64] |= 1 << UInt64(index % 64) }
        return PDQHash(bits)
    }

    private static func quality(_ samples: [SIMD64<Float>]) -> Int {
        var sum = 0
        func add(_ first: Float, _ second: Float) { sum += abs(Int((first - second) * 100 / 255)) }
        for (y, row) in samples.enumerated() {
            for x in 0..<side {
                if x > 0 { add(row[x - 1], row[x]) }
                if y > 0 { add(samples[y - 1][x], row[x]) }
            }
        }
        return min(sum / 90, 100)
    }
}

// MARK: - Those of an animation

extension Fingerprint {
    /// The frames of an animation whose pictures are described: all of a short one; else those at evenly spread times, so that another speed or
    /// frame rate gives the same pictures, and where few frames fill the time, others.
    ///
    /// - Parameter delays: Those of all frames, not negative.
    package static func frames(of delays: [Int]) -> [Int] {
        guard delays.count > most else { return Array(delays.indices) }
        let total = delays.reduce(0.0) { $0 + Double($1) }
        var (frames, frame, end) = (Set<Int>(), 0, Double(delays[0]))
        for index in 0..<most {
            let time = total * Double(2 * index + 1) / Double(2 * most)
            while end <= time, frame < delays.count - 1 {
                frame += 1
                end += Double(delays[frame])
            }
            frames.insert(frame)
        }
        for index in 0..<most where frames.count < most { frames.insert((2 * index + 1) * delays.count / (2 * most)) }
        var next = 0
        while frames.count < most {
            frames.insert(next)
            next += 1
        }
        return frames.sorted()
    }

    // MARK: In a worker's file

    /// The length of the form in a file.
    static let byteCount = PDQHash.byteCount + 1

    /// The length of the forms of an animation with that many frames.
    package static func byteCount(ofFrames frames: Int) -> Int { min(frames, most) * byteCount }

    /// The form in a file: the lanes of the hash from the lowest to the highest, little-endian, and the quality.
    var bytes: [UInt8] {
        (0..<4).flatMap { lane in withUnsafeBytes(of: hash.bits[lane].littleEndian) { Array($0) } } + [UInt8(quality)]
    }

    /// Reads the form in a file.
    ///
    /// - Returns: Nil for bytes that are no fingerprint.
    init?(_ bytes: ArraySlice<UInt8>) {
        guard bytes.count == Self.byteCount, let last = bytes.last, last <= 100 else { return nil }
        var bits = SIMD4<UInt64>.zero
        for (index, byte) in bytes.dropLast().enumerated() { bits[index / 8] |= UInt64(byte) << UInt64(index % 8 * 8) }
        hash = PDQHash(bits)
        quality = Int(last)
    }

    /// Reads the forms of an animation; nil if one of them is no fingerprint.
    package static func list(_ bytes: ArraySlice<UInt8>) -> [Fingerprint]? {
        guard bytes.count % byteCount == 0 else { return nil }
        var list: [Fingerprint] = []
        for start in stride(from: bytes.startIndex, to: bytes.endIndex, by: byteCount) {
            guard let each = Fingerprint(bytes[start..<start + byteCount]) else { return nil }
            list.append(each)
        }
        return list
    }
}
