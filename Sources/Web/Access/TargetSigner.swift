package import Fetch
package import Renditions

/// Writes targets of this service, signed if there are keys.
package struct TargetSigner: Sendable {
    private let keys: SigningKeys

    package init(keys: SigningKeys) {
        self.keys = keys
    }

    /// Writes a target such as `/mp4,expires=…,quality=80,sig=…/https://example.com/a.gif`.
    ///
    /// - Parameters:
    ///   - options: The options with their values as the target shall contain them; they are sorted by name.
    ///   - source: Nil for an upload.
    ///   - expires: The expiry of the signature in seconds since 1970; nil for none.
    /// - Returns: Nil if an option contains a character that cannot be signed.
    package func target(
        _ format: Rendition.Format, _ options: [QueryItem] = [], of source: SourceURL?, expires: Int64? = nil
    ) -> String? {
        guard let options = signed(format, options, of: source, expires: expires) else { return nil }
        let words = [format.rawValue] + options.map { "\($0.name)=\($0.value)" }
        return "/" + words.joined(separator: ",") + (source.map { "/\($0.text)" } ?? "")
    }

    /// Returns the options with `expires` and `sig`, for a target of another form: a mount's query. The parameters are those of
    /// ``target(_:_:of:expires:)``.
    func signed(
        _ format: Rendition.Format, _ options: [QueryItem], of source: SourceURL?, expires: Int64?
    ) -> [QueryItem]? {
        var options = options
        if let expires { options.append(QueryItem(name: "expires", value: String(expires))) }
        options.sort { $0.name < $1.name }
        guard let text = SignedText(format: format, options: options, source: source?.canonical ?? "") else { return nil }
        if let signature = keys.signature(of: text.text) { options.append(QueryItem(name: "sig", value: signature)) }
        return options
    }
}
