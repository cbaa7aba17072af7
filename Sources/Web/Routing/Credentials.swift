internal import Fetch
internal import Renditions

/// What a request brings to show that it may be asked: its signature, and what that has to cover.
package struct Credentials: Sendable, Equatable {
    var format: Rendition.Format
    /// As they were written, without `sig`.
    package var options: [QueryItem] = []
    /// The source's URL as it was written; empty for an upload.
    var source = ""
    /// `sig`.
    package var signature: String?
    /// `expires`, in seconds since 1970.
    package var expires: Int64?

    /// The texts of which one has to be signed: with the source as it was written, or in its canonical form.
    ///
    /// The second is what `gifreel sign` signs and what remains where a proxy has rewritten the first. Both mean the same
    /// source, so accepting either gives nobody anything that was not signed.
    func texts(canonicalSource: String?) -> [SignedText] {
        [source, canonicalSource].compactMap { $0 }.compactMap {
            SignedText(format: format, options: options, source: $0)
        }
    }
}
