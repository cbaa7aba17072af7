/// The signature of a request, and the text that it must cover.
package struct RequestSignature: Sendable, Equatable {
    /// The name of a format, or ``Route/auto`` or ``Route/facts``.
    var name: String
    /// The options as the client wrote them, without `sig`.
    package var options: [QueryItem] = []
    /// The source's URL as the client wrote it; empty for an upload. For a list of sources, one URL per line.
    var source = ""
    /// `sig`.
    package var signature: String?
    /// `expires`, in seconds since 1970.
    package var expires: Int64?

    /// Why a request has no text to sign.
    package static let unsignable = "An option has a line break, which cannot be signed."

    /// The texts that a valid signature may cover: with the source as the client wrote it, and with its canonical form.
    ///
    /// `gifreel sign` signs the canonical form, and that form survives a proxy that rewrites the URL. Both texts name the same
    /// source, so accepting either grants no request that was not signed.
    func texts(canonicalSource: String?) -> [SignedText] {
        [source, canonicalSource].compactMap { $0 }.compactMap {
            SignedText(name, options: options, source: $0)
        }
    }
}

/// The text that a signature covers: format, options and source as the client wrote them.
///
/// No default is filled in or left out: a request with `quality=60` is signed with that option, although 60 is the default.
/// Names and values are percent-decoded, so the text does not depend on the form of the request.
struct SignedText: Sendable, Equatable {
    /// `{format}\n{options sorted by name, k=v joined by ","}\n{source URL}`. A comma in a value is doubled: names are not empty,
    /// so two separators never meet.
    let text: String

    /// - Parameters:
    ///   - name: The name of a format, or ``Route/auto`` or ``Route/facts``.
    ///   - options: Including `expires`, without `sig`.
    ///   - source: The source's URL; empty for an upload.
    /// - Returns: Nil if a name contains a separator of the text or a value a line break: two different requests would have the
    ///   same text.
    init?(_ name: String, options: [QueryItem], source: String) {
        let pairs = options.sorted { $0.name < $1.name }
        // The first equals sign of a pair ends the name, so the value may have others.
        guard pairs.allSatisfy({ !Self.contains($0.name, ",=\n") && !Self.contains($0.value, "\n") }) else { return nil }
        let options = pairs.map { "\($0.name)=\($0.value.replacing(",", with: ",,"))" }
        text = "\(name)\n\(options.joined(separator: ","))\n\(source)"
    }

    private static func contains(_ text: String, _ separators: String) -> Bool {
        text.utf8.contains { separators.utf8.contains($0) }
    }
}
