/// Which part of an animation a video shows, how fast and how often (API.md §1).
package struct TimeOptions: Sendable, Hashable {
    /// What ``speed`` and ``ceiling`` are counted in.
    package static let thousand = 1000

    /// In thousandths: 2000 is twice as fast.
    package var speed: Int
    /// Thousandths of frames a second of the video, of which there are never more; nil for all there are.
    package var ceiling: Int?
    /// Where it begins, in hundredths of a second of the GIF's own time.
    package var start: Int
    /// Where it ends, in hundredths of a second of the GIF's own time; nil, or past the end, for the GIF's end.
    package var end: Int?
    /// How often the animation stands in the file.
    package var loops: Int

    package init(speed: Int = Self.thousand, ceiling: Int? = nil, start: Int = 0, end: Int? = nil, loops: Int = 1) {
        self.speed = speed
        self.ceiling = ceiling
        self.start = start
        self.end = end
        self.loops = loops
    }
}
