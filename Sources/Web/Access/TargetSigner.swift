package import Fetch
package import Renditions

/// Writes targets that this service answers, signed where it has keys.
package struct TargetSigner: Sendable {
    private let keys: SigningKeys

    package init(keys: SigningKeys) {
        self.keys = keys
    }

    /// `/mp4,expires=…,quality=80,sig=…/https://example.com/a.gif`; without a source the target of an upload.
    ///
    /// - Parameters:
    ///   - options: As they are to stand in the target; they are sorted by name.
    ///   - expires: Until when it may be asked, in seconds since 1970; nil for always.
    /// - Returns: Nil where an option holds a character that no option may hold.
    package func target(
        _ format: Rendition.Format, _ options: [QueryItem] = [], of source: SourceURL?, expires: Int64? = nil
    ) -> String? {
        guard let options = signed(format, options, of: source, expires: expires) else { return nil }
        let words = [format.rawValue] + options.map { "\($0.name)=\($0.value)" }
        return "/" + words.joined(separator: ",") + (source.map { "/\($0.canonical)" } ?? "")
    }

    /// The options with `expires` and `sig`, for a target of another form: a mount's query. The parameters are those of
    /// ``target(_:_:of:expires:)``.
    func signed(
        _ format: Rendition.Format, _ options: [QueryItem], of source: SourceURL?, expires: Int64?
    ) -> [QueryItem]? {
        var options = options
        if let expires { options.append(QueryItem(name: "expires", value: String(expires))) }
        options.sort { $0.name < $1.name }
        guard let text = SignedText(format: format, options: options, source: source?.canonical ?? "") else { return nil }
        if let signature = keys.signature(of: text) { options.append(QueryItem(name: "sig", value: signature)) }
        return options
    }
}
