/// What is made of a GIF in a worker. The raw value crosses the worker's border.
package enum OutputFormat: UInt8, Sendable, CaseIterable {
    /// H.264 in MP4.
    case mp4 = 1
    /// One frame as JPEG.
    case jpg
    /// One frame as PNG.
    case png
    /// One frame as WebP.
    case webp
    /// What the GIF says of itself: the delays of its frames, two bytes each (little-endian), as they are shown.
    case facts
}
