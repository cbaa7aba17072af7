internal import SystemIO

/// A 256-bit PDQ hash of a picture. Resizing, re-encoding or slightly changing the picture flips few bits.
///
/// The algorithm is from “The TMK+PDQF Video-Hashing Algorithm and the PDQ Image-Hashing Algorithm” (Facebook, 2019): the luma
/// is smoothed by a Jarosz filter and reduced to 64 × 64 samples. Each bit says whether one of 16 × 16 frequencies of their
/// cosine transform is above the median.
package struct PDQHash: Sendable, Hashable {
    /// Bit `n` is bit `n % 64` of the lane `n / 64`.
    package let bits: SIMD4<UInt64>

    /// The length of ``text``, and of the bytes that it encodes.
    package static let digits = 64
    static let byteCount = 32

    package init(_ bits: SIMD4<UInt64>) { self.bits = bits }

    /// Returns the number of bits that differ: about 128 for unrelated pictures, at most ``nearDistance`` for variants.
    package func distance(to other: PDQHash) -> Int {
        let difference = bits ^ other.bits
        return difference[0].nonzeroBitCount + difference[1].nonzeroBitCount + difference[2].nonzeroBitCount
            + difference[3].nonzeroBitCount
    }

    /// The distance up to which the algorithm's authors consider two pictures the same.
    package static let nearDistance = 31

    /// The bits as hexadecimal digits, the highest bit first.
    package var text: String { (0..<4).reversed().map { Hex.encode(bits[$0]) }.joined() }

    /// Parses ``text``, in either case.
    package init?(text: some Sequence<UInt8>) {
        // One excess digit is enough to reject a text of any length.
        let digits = text.prefix(Self.digits + 1).map { (UInt8(ascii: "A")...UInt8(ascii: "F")).contains($0) ? $0 | 0x20 : $0 }
        guard digits.count == Self.digits, let bytes = Hex.decode(digits) else { return nil }
        var bits = SIMD4<UInt64>.zero
        for (index, byte) in bytes.enumerated() { bits[3 - index / 8] = bits[3 - index / 8] << 8 | UInt64(byte) }
        self.bits = bits
    }
}

/// The PDQ hash of a picture of an animation, and the amount of detail that it is based on.
package struct Fingerprint: Sendable, Equatable {
    package let hash: PDQHash
    /// 0…100: from the sum of the differences of neighbouring samples. Below ``leastQuality``, the picture has almost no
    /// detail, and its hash is similar to many others.
    package let quality: Int

    /// The quality below which the algorithm's authors do not compare pictures.
    package static let leastQuality = 50
    /// The maximum number of fingerprints per animation.
    package static let most = 16

    /// Samples and frequencies along a side.
    private static let (side, waves) = (64, 16)
    /// A picture with a shorter side has no fingerprint: all bits are 0.
    private static let leastSide = 5

    /// Returns the smoothed luma at 64 × 64 points, row by row.
    ///
    /// The filter is linear and separable, so only the samples that are kept are computed: first the weighted sum of the rows
    /// around each sample, then the weighted sum of its columns.
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

    /// Returns, for each sample along a side of this length, the positions and weights of its mean: a box filter applied twice.
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

    /// The cosine waves at each sample along a side, without the constant wave.
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

// MARK: - Fingerprints of an animation

extension Fingerprint {
    /// Computes the fingerprint of a canvas in the format ``PixelFormat/rgba``, composited over white like a JPEG poster.
    init(_ canvas: borrowing Canvas) {
        guard min(canvas.width, canvas.height) >= Self.leastSide else {
            self.init(hash: PDQHash(.zero), quality: 0)
            return
        }
        let samples = Self.samples(canvas)
        self.init(hash: Self.hash(samples), quality: Self.quality(samples))
    }

    /// Returns the frames to fingerprint: all frames of a short animation, otherwise those at evenly spaced times, so that
    /// another speed or frame rate yields the same pictures. If few frames fill the time, others are added.
    ///
    /// - Parameter delays: The delays of all frames, not negative.
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

    /// The encoded length in a file.
    static let byteCount = PDQHash.byteCount + 1

    /// Returns the encoded length for an animation with this many frames.
    package static func byteCount(ofFrames frames: Int) -> Int { min(frames, most) * byteCount }

    /// The encoding in a file: the lanes of the hash from lowest to highest (little-endian), then the quality.
    var bytes: [UInt8] {
        (0..<4).flatMap { lane in withUnsafeBytes(of: hash.bits[lane].littleEndian) { Array($0) } } + [UInt8(quality)]
    }

    /// Reads the encoding in a file.
    ///
    /// - Returns: Nil if the bytes are not a fingerprint.
    init?(_ bytes: ArraySlice<UInt8>) {
        guard bytes.count == Self.byteCount, let last = bytes.last, last <= 100 else { return nil }
        var bits = SIMD4<UInt64>.zero
        for (index, byte) in bytes.dropLast().enumerated() { bits[index / 8] |= UInt64(byte) << UInt64(index % 8 * 8) }
        hash = PDQHash(bits)
        quality = Int(last)
    }

    /// Reads the fingerprints of an animation; nil if any of them is malformed.
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
