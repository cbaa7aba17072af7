/// The part of a canvas that a picture shows, and the picture's size: larger than the canvas only by a zoom, margin or preset.
package struct PictureGeometry: Sendable, Equatable {
    /// The shown part of the canvas.
    let source: Rectangle
    /// The size of the picture in pixels; may be odd.
    package let width: Int
    package let height: Int

    /// The size of H.264 videos and 4:2:0 planes: an odd side gets one more pixel, a copy of its edge.
    package var evenWidth: Int { Self.even(width) }
    package var evenHeight: Int { Self.even(height) }

    /// Returns a side rounded up to an even number.
    private static func even(_ side: Int) -> Int { (side + 1) & ~1 }

    /// Whether the picture is the whole canvas at its own size.
    let isIdentity: Bool
    /// The zoom factor. Above 1, every pixel of the canvas becomes a square of this side, and nothing is interpolated.
    let zoom: Int
    /// The part of the picture that shows the canvas. Around it is a margin of transparent pixels, or of the background.
    let content: Rectangle

    /// - Parameters:
    ///   - width: The width of the canvas.
    ///   - height: The height of the canvas.
    package init(width: Int, height: Int, options: SizeOptions) {
        let canvas = Rectangle(x: 0, y: 0, width: width, height: height)
        var source = canvas
        var size = (width: width, height: height)
        var content: Rectangle?
        switch (options.width, options.height, options.fit) {
        case (nil, nil, _):
            break
        case (let wanted?, nil, _):
            if wanted < width { size = (wanted, Self.scale(height, by: wanted, over: width)) }
        case (nil, let wanted?, _):
            if wanted < height { size = (Self.scale(width, by: wanted, over: height), wanted) }
        case (let boxWidth?, let boxHeight?, .contain):
            size = Self.contained((width, height), in: (boxWidth, boxHeight))
        case (let boxWidth?, let boxHeight?, .cover):
            // A box larger than the canvas is reduced, keeping its aspect ratio, until the canvas covers it without scaling.
            size = Self.contained((boxWidth, boxHeight), in: (width, height))
            source = Self.covering(size, of: canvas, options.gravity)
        case (let boxWidth?, let boxHeight?, .fill):
            size = (min(boxWidth, width), min(boxHeight, height))
        case (let boxWidth?, let boxHeight?, .pad):
            let shown = Self.contained((width, height), in: (boxWidth, boxHeight))
            size = (boxWidth, boxHeight)
            // Even offsets, so that the same pixels share a chroma sample with and without a margin.
            content = Rectangle(
                x: (boxWidth - shown.width) / 2 & ~1, y: (boxHeight - shown.height) / 2 & ~1, width: shown.width,
                height: shown.height)
        }
        self.source = source
        self.width = size.width
        self.height = size.height
        isIdentity = source == canvas && size == (width, height)
        zoom = 1
        self.content = content ?? Rectangle(x: 0, y: 0, width: size.width, height: size.height)
    }

    /// Creates the geometry for a preset, the zoom or the size options.
    package init(width: Int, height: Int, options: TranscodeOptions) {
        let longerSide = options.preset?.longerSide
        guard options.zoom > 1 || longerSide != nil else {
            self.init(width: width, height: height, options: options.size)
            return
        }
        self.init(wholeOfWidth: width, height: height, zoom: max(1, options.zoom), longerSide: longerSide)
    }

    private init(wholeOfWidth width: Int, height: Int, zoom: Int, longerSide: Int?) {
        source = Rectangle(x: 0, y: 0, width: width, height: height)
        self.zoom = zoom
        if let longerSide, zoom == 1 {
            // The whole canvas, enlarged or reduced.
            let longer = max(width, height)
            content = Rectangle(
                x: 0, y: 0, width: Self.scale(width, by: longerSide, over: longer),
                height: Self.scale(height, by: longerSide, over: longer))
            (self.width, self.height) = (content.width, content.height)
            isIdentity = longer == longerSide
        } else {
            // Enlarged pixels, and a margin at the ends of a longer side that is shorter than the preset's.
            self.width = max(width * zoom, width >= height ? longerSide ?? 0 : 0)
            self.height = max(height * zoom, width >= height ? 0 : longerSide ?? 0)
            content = Rectangle(
                x: (self.width - width * zoom) / 2, y: (self.height - height * zoom) / 2, width: width * zoom,
                height: height * zoom)
            isIdentity = false
        }
    }

    /// Whether some pixels show nothing of the canvas.
    var hasMargin: Bool { content.width < width || content.height < height }

    /// Whether pixels are interpolated.
    var isScaled: Bool { zoom == 1 && (content.width != source.width || content.height != source.height) }

    /// Checks a picture with a zoom or a margin against the limits. The canvas itself is within them.
    ///
    /// - Parameter frames: The maximum number of frames to write in this size.
    func check(_ limits: MediaLimits, frames: Int) throws(TranscodeError) {
        guard zoom > 1 || hasMargin else { return }
        try limits.check(width: width, height: height)
        try limits.check(.totalPixels, width * height * frames)
    }

    /// Returns the size reduced to fit into the box, with its aspect ratio; never enlarged.
    private static func contained(
        _ size: (width: Int, height: Int), in box: (width: Int, height: Int)
    ) -> (width: Int, height: Int) {
        if size.width <= box.width && size.height <= box.height { return size }
        // The side that exceeds the box by the larger factor decides.
        if size.width * box.height >= box.width * size.height {
            return (box.width, scale(size.height, by: box.width, over: size.width))
        }
        return (scale(size.width, by: box.height, over: size.height), box.height)
    }

    /// Returns the largest part of the canvas with the aspect ratio of `size`.
    private static func covering(
        _ size: (width: Int, height: Int), of canvas: Rectangle, _ gravity: Gravity
    ) -> Rectangle {
        var part = canvas
        if canvas.width * size.height >= size.width * canvas.height {
            part.width = min(canvas.width, scale(size.width, by: canvas.height, over: size.height))
        } else {
            part.height = min(canvas.height, scale(size.height, by: canvas.width, over: size.width))
        }
        part.x = Gravity.offset(of: part.width, in: canvas.width, at: gravity.x)
        part.y = Gravity.offset(of: part.height, in: canvas.height, at: gravity.y)
        return part
    }

    /// Returns a side times a fraction, rounded to the nearest number and at least 1.
    private static func scale(_ side: Int, by numerator: Int, over denominator: Int) -> Int {
        max(1, (2 * side * numerator + denominator) / (2 * denominator))
    }
}
