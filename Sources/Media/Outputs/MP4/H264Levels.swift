/// The levels of H.264's High profile that the sizes and decoding times of an encoded stream allow (ITU-T H.264 table A-1).
///
/// x264 chooses the level by picture size, rate and references. It ignores the bit rate unless it is told to limit it.
struct H264Levels {
    /// A level and its decoder's buffer, from which pictures are removed at their decoding times (ITU-T H.264 §C.1).
    private struct Buffer {
        /// `level_idc`.
        let level: UInt8
        /// Bits per second, which fill the buffer (`MaxBR`).
        let rate: Double
        /// Bits (`MaxCPB`).
        let size: Double
        /// The bits that were removed and have not been refilled.
        var missing = 0.0

        /// In units of 1250 bits (`cpbBrVclFactor` of High profile).
        init(_ level: UInt8, rate: Double, size: Double) {
            (self.level, self.rate, self.size) = (level, 1250 * rate, 1250 * size)
        }
    }

    private let timescale: Double
    /// From the lowest level that is possible so far.
    private var buffers = [
        Buffer(10, rate: 64, size: 175), Buffer(11, rate: 192, size: 500), Buffer(12, rate: 384, size: 1000),
        Buffer(13, rate: 768, size: 2000), Buffer(20, rate: 2000, size: 2000), Buffer(21, rate: 4000, size: 4000),
        Buffer(30, rate: 10_000, size: 10_000), Buffer(31, rate: 14_000, size: 14_000), Buffer(32, rate: 20_000, size: 20_000),
        Buffer(40, rate: 20_000, size: 25_000), Buffer(41, rate: 50_000, size: 62_500),
        Buffer(50, rate: 135_000, size: 135_000), Buffer(51, rate: 240_000, size: 240_000),
        Buffer(61, rate: 480_000, size: 480_000), Buffer(62, rate: 800_000, size: 800_000),
    ]
    private var decoding: Int64?

    /// - Parameter timescale: Units per second of decoding times, within ``FactRange/timescale``.
    init(timescale: Int) {
        self.timescale = Double(timescale)
    }

    /// Adds the next picture in decoding order.
    mutating func add(bytes: Int, at time: Int64) {
        let seconds = Double(time - (decoding ?? time)) / timescale
        decoding = time
        for index in buffers.indices {
            buffers[index].missing = max(0, buffers[index].missing - seconds * buffers[index].rate) + Double(8 * bytes)
        }
        // A level has at least the buffer and the rate of the one before it.
        while buffers.count > 1, buffers[0].missing > buffers[0].size { buffers.removeFirst() }
    }

    /// The lowest level; the highest of all if the pictures exceed every level.
    var lowest: UInt8 { buffers[0].level }
}
