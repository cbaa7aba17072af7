internal import Media
package import SystemIO

/// The file of a source that is sent as it is.
package enum OriginalFile {
    /// Bytes that tell all formats apart.
    private static let headLength = 16

    /// The media type, by the first bytes.
    package static func mediaType(_ file: SharedDescriptor) -> String {
        var head = [UInt8](repeating: 0, count: headLength)
        let format = head.withUnsafeMutableBytes { head in
            let count = (try? file.read(into: head, at: 0)) ?? 0
            return SourceFormat(of: UnsafeRawBufferPointer(rebasing: head[..<count]))
        }
        return (format ?? .gif).mediaType
    }
}
