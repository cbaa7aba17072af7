internal import Renditions

/// The text that a signature covers: format, options and source, each as the client wrote it.
///
/// Nothing is filled in or left out: `quality=60` is signed where it stands in the request, though it is the default.
/// Names and values are taken after percent-decoding, so it does not matter which form of the request carries them.
package struct SignedText: Sendable, Equatable {
    /// `{format}\n{options sorted by name, k=v joined by ","}\n{source URL}`.
    package let text: String

    /// - Parameters:
    ///   - options: With `expires`, without `sig`.
    ///   - source: The source's URL; empty for an upload.
    /// - Returns: Nil where an option's name or value holds a character that separates them here: two requests would
    ///   have one text.
    init?(format: Rendition.Format, options: [QueryItem], source: String) {
        let pairs = options.sorted { $0.name < $1.name }
        let separators: Set<UInt8> = [UInt8(ascii: ","), UInt8(ascii: "="), 10]
        guard pairs.allSatisfy({ $0.name.utf8.allSatisfy { !separators.contains($0) } }),
            pairs.allSatisfy({ $0.value.utf8.allSatisfy { !separators.contains($0) } })
        else { return nil }
        text = "\(format.rawValue)\n" + pairs.map { "\($0.name)=\($0.value)" }.joined(separator: ",") + "\n\(source)"
    }
}
