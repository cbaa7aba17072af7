package import Fetch
internal import SystemIO

/// Writes targets of this service, signed if there are keys.
package struct TargetSigner: Sendable {
    private let keys: SigningKeys

    package init(keys: SigningKeys) {
        self.keys = keys
    }

    /// Writes a target such as `/mp4,expires=…,quality=80,sig=…/https://example.com/a.gif`.
    ///
    /// - Parameters:
    ///   - name: The name of a format, or ``Route/auto``.
    ///   - options: The options with their values as the target shall contain them; they are sorted by name.
    ///   - source: Nil for an upload.
    ///   - expires: The expiry of the signature in seconds since 1970; nil for none.
    ///   - fileName: The name with which the path ends, before a query with the source; nil for a path that ends with the source.
    /// - Returns: Nil if an option contains a character that cannot be signed.
    package func target(
        _ name: String, _ options: [QueryItem] = [], of source: SourceURL?, expires: Int64? = nil,
        fileName: String? = nil
    ) -> String? {
        guard let options = signed(name, options, of: source, expires: expires) else { return nil }
        let start = "/" + ([name] + options.map { "\($0.name)=\($0.value)" }).joined(separator: ",")
        guard let source else { return start }
        guard let fileName else { return "\(start)/\(source.text)" }
        return "\(start)/\(PercentEncoding.encode(fileName))?url=\(PercentEncoding.encode(source.text))"
    }

    /// Returns the options with `expires` and `sig`, for a target of another form: a mount's query. The parameters are those of
    /// ``target(_:_:of:expires:fileName:)``.
    func signed(
        _ name: String, _ options: [QueryItem], of source: SourceURL?, expires: Int64?
    ) -> [QueryItem]? {
        var options = options
        if let expires { options.append(QueryItem(name: "expires", value: String(expires))) }
        options.sort { $0.name < $1.name }
        guard let text = SignedText(name, options: options, source: source?.canonical ?? "") else { return nil }
        if let signature = keys.signature(of: text.text) { options.append(QueryItem(name: "sig", value: signature)) }
        return options
    }
}
