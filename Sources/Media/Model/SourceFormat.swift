/// A format of source files. The raw value crosses the process boundary.
///
/// ``traits`` describes each case.
package enum SourceFormat: UInt8, Sendable, CaseIterable {
    case gif = 1
    case apng
    case webp
    case mp4
    case mov
    case webm
    /// An image sequence.
    case avif

    var version: String { traits.version }
    package var name: String { traits.name }
    package var fileExtensions: [String] { traits.fileExtensions }
    package var mediaType: String { traits.mediaType }
    package var title: String { traits.title }
    package var isVideo: Bool { traits.isVideo }
}

/// A set of source formats.
package struct SourceFormats: OptionSet, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    package init(_ formats: some Sequence<SourceFormat>) {
        rawValue = formats.reduce(0) { $0 | Self.bit($1) }
    }

    package static let all = SourceFormats(SourceFormat.allCases)

    private static func bit(_ format: SourceFormat) -> UInt16 { 1 << UInt16(format.rawValue) }

    package func contains(_ format: SourceFormat) -> Bool { rawValue & Self.bit(format) != 0 }
}
