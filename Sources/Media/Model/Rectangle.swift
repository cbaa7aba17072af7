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

    /// The smallest rectangle that contains both. An empty rectangle has no effect.
    func union(_ other: Rectangle) -> Rectangle {
        if isEmpty { return other }
        if other.isEmpty { return self }
        let left = min(x, other.x)
        let top = min(y, other.y)
        return Rectangle(x: left, y: top, width: max(maxX, other.maxX) - left, height: max(maxY, other.maxY) - top)
    }

    /// Returns the rectangle with all values multiplied by `factor`.
    func scaled(by factor: Int) -> Rectangle {
        Rectangle(x: x * factor, y: y * factor, width: width * factor, height: height * factor)
    }

    /// The area that both share.
    func intersection(_ other: Rectangle) -> Rectangle {
        let left = max(x, other.x)
        let top = max(y, other.y)
        return Rectangle(x: left, y: top, width: min(maxX, other.maxX) - left, height: min(maxY, other.maxY) - top)
    }
}

/// A colour of 8-bit sRGB components.
package struct RGB: Sendable, Equatable, Hashable {
    package var red: UInt8
    package var green: UInt8
    package var blue: UInt8

    package init(red: UInt8, green: UInt8, blue: UInt8) {
        self.red = red
        self.green = green
        self.blue = blue
    }

    package static let white = RGB(red: 255, green: 255, blue: 255)
}
