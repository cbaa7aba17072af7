/// The size that a picture is to have; never larger than the canvas (API.md §1).
package struct SizeOptions: Sendable, Hashable {
    /// Pixels; nil follows from the height, or is the canvas' own.
    package var width: Int?
    /// Pixels; nil follows from the width, or is the canvas' own.
    package var height: Int?
    package var fit: Fit

    /// How a picture is brought into a box of another shape. The raw value crosses the worker's border.
    package enum Fit: UInt8, Sendable, CaseIterable {
        /// All of it, inside the box.
        case contain
        /// The whole box, what sticks out cut off on both sides alike.
        case cover
        /// The whole box, by distorting the picture.
        case fill
    }

    package init(width: Int? = nil, height: Int? = nil, fit: Fit = .contain) {
        self.width = width
        self.height = height
        self.fit = fit
    }
}
