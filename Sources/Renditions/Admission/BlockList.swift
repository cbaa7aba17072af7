package import Media
package import Store

/// The sources that an operator does not want to be converted: hashes of pictures and of whole files, each with a label.
///
/// Immutable, so that a reload replaces the list as a whole.
package struct BlockList: Sendable {
    /// Why a file is not a valid list.
    package enum Invalid: Error, Sendable, Equatable, CustomStringConvertible {
        /// A line, counted from 1. `reason` completes the sentence “Line … ”.
        case line(Int, reason: String)
        case tooLong(maxEntries: Int)

        package var description: String {
            switch self {
            case .line(let number, let reason): "line \(number) \(reason)"
            case .tooLong(let maximum): "it has more than \(maximum) entries"
            }
        }
    }

    /// The maximum number of entries. A comparison with all of them takes a few milliseconds.
    package static let maxEntries = 250_000
    /// The maximum size of a file in bytes: ``maxEntries`` with long labels.
    package static let maxBytes = 64 << 20
    private static let longestLabel = 200

    /// The hashes of pictures. ``labelsOfHashes`` contains the indices of their labels, in the same order.
    private var hashes: [PDQHash] = []
    private var labelsOfHashes: [UInt32] = []
    private var files: [SourceDigest: UInt32] = [:]
    private var labels: [String] = []

    /// Parses a list: a line per entry, `pdq:HASH LABEL` or `sha256:HASH LABEL`. Empty lines and lines that begin with `#` are
    /// ignored.
    package init(_ text: UnsafeRawBufferPointer) throws(Invalid) {
        var indices: [String: UInt32] = [:]
        var (start, number) = (0, 0)
        while start < text.count {
            number += 1
            let end = text[start...].firstIndex(of: UInt8(ascii: "\n")) ?? text.count
            let line = Self.trimmed(text[start..<end])
            start = end + 1
            guard let first = line.first, first != UInt8(ascii: "#") else { continue }
            guard hashes.count + files.count < Self.maxEntries else { throw .tooLong(maxEntries: Self.maxEntries) }
            let name = line.prefix { !Self.isSpace($0) }
            let label = try Self.label(Self.trimmed(line[name.endIndex...]), number)
            let index = indices[label] ?? UInt32(labels.count)
            if index == labels.count {
                labels.append(label)
                indices[label] = index
            }
            if name.starts(with: "pdq:".utf8), let hash = PDQHash(text: name.dropFirst(4)) {
                hashes.append(hash)
                labelsOfHashes.append(index)
            } else if name.starts(with: "sha256:".utf8),
                let digest = SourceDigest(hex: String(decoding: name.dropFirst(7).prefix(65), as: UTF8.self).lowercased())
            {
                files[digest] = index
            } else {
                throw .line(number, reason: "does not begin with pdq: or sha256: and 64 hexadecimal digits")
            }
        }
    }

    /// The text of a line without the spaces around it. Lines may end in CR LF.
    private static func trimmed(_ line: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
        guard let first = line.firstIndex(where: { !isSpace($0) }), let last = line.lastIndex(where: { !isSpace($0) }) else {
            return line[line.endIndex...]
        }
        return line[first...last]
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0d }

    private static func label(_ bytes: Slice<UnsafeRawBufferPointer>, _ line: Int) throws(Invalid) -> String {
        guard !bytes.isEmpty else { throw .line(line, reason: "has no label after the hash") }
        guard let text = String(validating: bytes, as: UTF8.self), isLabel(text) else {
            throw .line(line, reason: "has a label that is not a text of at most \(longestLabel) bytes")
        }
        return text
    }

    /// Whether a text may be a label. Labels go into log lines.
    package static func isLabel(_ text: String) -> Bool {
        (1...longestLabel).contains(text.utf8.count) && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
            && !text.hasPrefix(" ") && !text.hasSuffix(" ")
    }

    /// The number of entries; duplicate entries for a file count once.
    package var count: Int { hashes.count + files.count }

    /// Whether pictures have to be compared.
    var hasHashes: Bool { !hashes.isEmpty }

    /// The label of the entry for a file; nil if there is none.
    package func label(of file: SourceDigest) -> String? { files[file].map { labels[Int($0)] } }

    /// The label of the entry nearest to any of the pictures, if it is within ``PDQHash/nearDistance``.
    ///
    /// Compares each picture with each entry: 100,000 entries take less than a millisecond for each picture.
    package func label(of pictures: [PDQHash]) -> String? {
        var (nearest, label) = (PDQHash.nearDistance + 1, UInt32?.none)
        hashes.withUnsafeBufferPointer { hashes in
            for picture in pictures {
                for index in hashes.indices {
                    let distance = picture.distance(to: hashes[index])
                    if distance < nearest { (nearest, label) = (distance, labelsOfHashes[index]) }
                }
            }
        }
        return label.map { labels[Int($0)] }
    }
}
