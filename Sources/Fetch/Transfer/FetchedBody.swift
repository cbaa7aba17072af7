internal import SystemIO

/// A whole body, begun as a GIF.
struct FetchedBody {
    let bytes: SharedDescriptor
    let count: Int
    let sha256: [UInt8]
}
