/// The differences between pictures of the same size.
enum PictureDifference {
    /// Returns the smallest rectangle that contains all pixels that differ.
    static func bounds(
        _ first: UnsafePointer<UInt32>, _ second: UnsafePointer<UInt32>, width: Int, height: Int
    ) -> Rectangle {
        var (left, right, top, bottom) = (width, 0, height, 0)
        for y in 0..<height {
            let (one, other) = (first + y * width, second + y * width)
            var start = 0
            while start < width, one[start] == other[start] { start &+= 1 }
            if start == width { continue }
            var end = width
            while one[end &- 1] == other[end &- 1] { end &-= 1 }
            (left, right) = (min(left, start), max(right, end))
            (top, bottom) = (min(top, y), y + 1)
        }
        return Rectangle(x: left, y: top, width: right - left, height: bottom - top)
    }
}
