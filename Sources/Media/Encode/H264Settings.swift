/// How frames are encoded.
package struct H264Settings: Sendable, Equatable {
    /// x264's constant rate factor: lower is better and larger.
    package var rateFactor: Double
    /// Encoder threads.
    package var threads: Int
    /// Units a second of the times that frames are given.
    package var timescale = FrameClock.timescale
    /// Makes only the first frame one from which decoding can begin. Two such frames in a row, the last of one round and the
    /// first of the next, would have to differ in their `idr_pic_id` (ITU-T H.264 §7.4.3), and rounds are copies.
    package var hasOneKeyframe = false

    package init(rateFactor: Double, threads: Int) {
        self.rateFactor = rateFactor
        self.threads = threads
    }

    /// The name by which this way of encoding goes into an object's name. To be changed with anything that changes
    /// the bytes that come out.
    package static let version = "x264-1"

    /// x264's named preset; see the README's measurements.
    static let preset = "faster"
    /// Options over the preset, in x264's own words.
    static let options = "rc-lookahead=12"

    /// ``options`` and what the settings add to them.
    var allOptions: String {
        hasOneKeyframe ? Self.options + ":keyint=infinite:min-keyint=1000000" : Self.options
    }

    /// The rate factor for `quality` 1…100: two straight lines that meet at the default, 60 ↦ 23.
    /// 100 ↦ 11 (no loss to be seen), 1 ↦ 46.6.
    package static func rateFactor(quality: Int) -> Double {
        let distance = Double(quality - 60)
        return distance >= 0 ? 23 - distance * 0.3 : 23 - distance * 0.4
    }
}
