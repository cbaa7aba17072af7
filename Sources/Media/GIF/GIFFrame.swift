/// One image of a GIF as its descriptor and its graphic control extension have it (GIF89a §20, §23).
package struct GIFFrame: Sendable, Equatable {
    /// What becomes of the frame's rectangle before the next one is drawn.
    package enum Disposal: UInt8, Sendable {
        case unspecified = 0
        case keep = 1
        /// The rectangle becomes transparent (browsers do not paint the background colour).
        case clear = 2
        /// The rectangle becomes what it was before the frame.
        case restore = 3
    }

    /// The rectangle on the canvas; it may lie partly or wholly outside it.
    package var rectangle: Rectangle
    package var isInterlaced: Bool
    /// The delay as coded, in hundredths of a second; 0 when there was no graphic control extension.
    package var delay: Int
    package var disposal: Disposal
    /// The palette index that leaves the canvas as it is.
    package var transparentIndex: UInt8?
    package var hasLocalPalette: Bool
}

/// A rectangle in whole pixels, never of negative size.
package struct Rectangle: Sendable, Equatable {
    package var x: Int
    package var y: Int
    package var width: Int
    package var height: Int

    package init(x: Int, y: Int, width: Int, height: Int) {
        self.x = x
        self.y = y
        self.width = max(0, width)
        self.height = max(0, height)
    }

    static let empty = Rectangle(x: 0, y: 0, width: 0, height: 0)

    var isEmpty: Bool { width == 0 || height == 0 }
    var maxX: Int { x + width }
    var maxY: Int { y + height }

    /// The part of the rectangle inside a canvas of the given size.
    func clipped(toWidth width: Int, height: Int) -> Rectangle {
        let left = min(max(x, 0), width)
        let top = min(max(y, 0), height)
        return Rectangle(x: left, y: top, width: min(maxX, width) - left, height: min(maxY, height) - top)
    }

    /// The smallest rectangle around both; an empty one adds nothing.
    func union(_ other: Rectangle) -> Rectangle {
        if isEmpty { return other }
        if other.isEmpty { return self }
        let left = min(x, other.x)
        let top = min(y, other.y)
        return Rectangle(x: left, y: top, width: max(maxX, other.maxX) - left, height: max(maxY, other.maxY) - top)
    }
}
