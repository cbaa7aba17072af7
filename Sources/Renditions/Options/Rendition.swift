package import Media

/// One output that can be made of a GIF: a format and its options (API.md §1).
package struct Rendition: Sendable, Hashable {
    package let format: Format
    /// Options that do not apply to the format have their defaults.
    package private(set) var options: TranscodeOptions

    package init(format: Format) {
        self.format = format
        options = TranscodeOptions()
    }

    /// The format and the options that are not the defaults, sorted by name: renditions are the same exactly when
    /// their texts are.
    package var canonicalText: String {
        ([format.rawValue] + canonicalOptions.map { "\($0.name)=\($0.value)" }).joined(separator: ",")
    }

    /// The options that are not the defaults, sorted by name, with their values in canonical form.
    package var canonicalOptions: [(name: String, value: String)] {
        RenditionOption.allCases.compactMap { option in
            option.text(in: options).map { (name: option.rawValue, value: $0) }
        }
    }

    /// What changes the bytes beside the source and the canonical text.
    var encoderVersion: String { format.output?.traits.version ?? "" }

    /// Sets an option from its text. After the last one, ``check()`` is to be called.
    ///
    /// - Throws: ``Problem`` that names the option, when it is unknown, has no effect on the format, or its value is out
    ///   of range.
    package mutating func set(_ name: String, to value: String) throws(Problem) {
        guard let option = RenditionOption(rawValue: name) else { throw .badOption(name, "is not known") }
        guard option.applies(to: format) else { throw .badOption(name, "has no effect on \(format.rawValue)") }
        try option.read(value, into: &options)
    }

    /// Checks what no option tells alone.
    ///
    /// - Throws: ``Problem`` that names the option, when it has no effect beside the others, or contradicts them.
    package func check() throws(Problem) {
        if options.size.fit != .contain && (options.size.width == nil || options.size.height == nil) {
            throw .badOption(RenditionOption.fit.rawValue, "has an effect only with both width and height")
        }
        if let end = options.time.end, end <= options.time.start {
            throw .badOption(RenditionOption.end.rawValue, "must be later than the start")
        }
    }

    /// The rendition in another format, with those of the options that apply to it: the video or the poster of a page.
    package func inFormat(_ other: Format) -> Rendition {
        var rendition = Rendition(format: other)
        let defaults = rendition.options
        rendition.options = options
        for option in RenditionOption.allCases where !option.applies(to: other) {
            option.copy(from: defaults, to: &rendition.options)
        }
        return rendition
    }
}
