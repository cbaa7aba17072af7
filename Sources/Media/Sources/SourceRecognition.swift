extension SourceFormat {
    /// The format of a file; nil if no decoder recognizes it. A PNG, WebP or AVIF may be a still picture: see ``isAnimation(_:)``.
    package init?(of bytes: UnsafeRawBufferPointer) {
        guard let format = Self.allCases.first(where: { $0.recognizes(bytes) }) else { return nil }
        self = format
    }

    private func recognizes(_ bytes: UnsafeRawBufferPointer) -> Bool {
        switch self {
        case .gif: GIFReader.recognizes(bytes)
        case .apng: APNGReader.recognizes(bytes)
        case .webp: WebPReader.recognizes(bytes)
        case .mp4, .mov, .webm, .avif: ClipBoxes.format(of: bytes) == self
        }
    }

    /// Whether a file of the format says that it is an animation. A GIF with one frame is one, a PNG without `acTL` is not.
    package func isAnimation(_ bytes: UnsafeRawBufferPointer) -> Bool {
        switch self {
        case .gif: true
        case .apng: APNGReader.isAnimation(bytes)
        case .webp: WebPReader.isAnimation(bytes)
        case .mp4, .mov, .webm: true
        case .avif: ClipBoxes.isSequence(bytes)
        }
    }

    /// The pixels of the canvas that the header of a file claims; 0 without one. The bytes need not be of a known format.
    package static func canvasPixels(of bytes: UnsafeRawBufferPointer) -> Int {
        switch SourceFormat(of: bytes) {
        case .gif: GIFReader.screenPixels(of: bytes)
        case .apng: APNGReader.canvasPixels(of: bytes)
        case .webp: WebPReader.canvasPixels(of: bytes)
        // The header is not at the beginning.
        case .mp4, .mov, .webm, .avif: 0
        case nil: 0
        }
    }
}
