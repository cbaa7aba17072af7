internal import CMedia
internal import Synchronization

/// The memory in which libvpx collects the coefficients of a picture.
///
/// libvpx 1.12 allocates it for squares of 16 × 16 pixels, but codes a transform of 32 × 32 pixels that crosses an edge of the picture
/// as a whole. If all pixels of a small picture differ from their neighbours, it writes coefficients past the end. Later versions
/// allocate memory for squares of 64 × 64 pixels, as this type does.
enum VP9Memory {
    /// libvpx's coefficients for 16 × 16 pixels of three planes.
    private static let perSquare = 16 * 16 * 3 + 4

    /// Held while an encoder opens, which is when it allocates.
    private static let opening = Mutex(())
    /// The coefficients that libvpx allocates while an encoder opens, and those that it may write.
    private static let allocated = Atomic(0)
    private static let needed = Atomic(0)

    /// Whether the linker has put ``allocate(count:size:)`` in place of libvpx's function.
    static var isAmple: Bool { gifreel_vpx_is_wrapped() != 0 }

    /// Opens an encoder with room for all coefficients. Returns an AVERROR, or 0.
    static func open(_ context: UnsafeMutablePointer<AVCodecContext>, _ codec: UnsafePointer<AVCodec>) -> Int32 {
        opening.withLock { _ in
            func coefficients(inSquaresOf side: Int) -> Int {
                func rounded(_ length: Int32) -> Int { (Int(length) + side - 1) / side * side }
                return rounded(context.pointee.width) * rounded(context.pointee.height) / 256 * perSquare
            }
            allocated.store(coefficients(inSquaresOf: 16), ordering: .relaxed)
            needed.store(coefficients(inSquaresOf: 64), ordering: .relaxed)
            return avcodec_open2(context, codec, nil)
        }
    }

    /// Allocates in place of libvpx.
    fileprivate static func allocate(count: Int, size: Int) -> UnsafeMutableRawPointer? {
        let isShort = count == allocated.load(ordering: .relaxed)
        return gifreel_vpx_calloc(isShort ? needed.load(ordering: .relaxed) : count, size)
    }
}

/// Called by libvpx, on any thread.
@_cdecl("__wrap_vpx_calloc")
func allocateForVPX(count: Int, size: Int) -> UnsafeMutableRawPointer? {
    VP9Memory.allocate(count: count, size: size)
}
