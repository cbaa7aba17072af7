internal import Media
internal import SystemIO

/// Holds a worker's file against what the worker says of it, before anybody else sees the file.
///
/// The code that made the file had a hostile GIF in its hands. So nothing is taken from it but bytes, through bounds that
/// are checked: the file must be one whole file of its format, with the size, duration and samples that were claimed.
enum OutputInspection {
    /// Inspects the file.
    ///
    /// - Parameter limit: Bytes that it may have at most.
    /// - Throws: The first flaw.
    static func inspect(_ file: SharedDescriptor, as claim: OutputClaim, limit: Int) throws(OutputFlaw) {
        guard claim.isInRange else { throw .outOfRange }
        let bytes = try OutputBytes(file)
        guard bytes.count == claim.bytes, bytes.count <= limit else { throw .wrongLength }
        switch claim.format {
        case .mp4:
            try MP4Inspection.inspect(bytes, claim)
        case .jpg:
            try check(try JPEGInspection.size(of: bytes), claim)
        case .png:
            try check(try PNGInspection.size(of: bytes), claim)
        case .webp:
            try check(try WebPInspection.size(of: bytes), claim)
        case .facts:
            // Two bytes a frame, any of which is a delay.
            guard bytes.count == 2 * claim.frames else { throw .wrongLength }
        }
    }

    private static func check(_ size: PictureSize, _ claim: OutputClaim) throws(OutputFlaw) {
        guard size.width == claim.width, size.height == claim.height else { throw .wrongSize }
    }
}

/// A picture's size in pixels, as its file has it.
struct PictureSize: Equatable {
    var width: Int
    var height: Int
}
