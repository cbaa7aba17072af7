/// A format of source files, recognized by its first bytes. Each case has a decoder; ``OutputMaker`` connects the two.
package enum SourceFormat: String, Sendable, CaseIterable {
    case gif

    /// The format of a file; nil if no decoder recognizes it.
    package init?(of bytes: UnsafeRawBufferPointer) {
        guard let format = Self.allCases.first(where: { $0.recognizes(bytes) }) else { return nil }
        self = format
    }

    private func recognizes(_ bytes: UnsafeRawBufferPointer) -> Bool {
        switch self {
        case .gif: GIFReader.recognizes(bytes)
        }
    }
}
