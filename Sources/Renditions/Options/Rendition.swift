package import Media

/// One output that can be made of a GIF: a format and its options (docs/api.md).
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
    package var encoderVersion: String { format.output?.traits.version ?? "" }

    /// Sets an option from its text. After the last one, ``check()`` is to be called.
    ///
    /// - Throws: ``RenditionError`` that names the option, when it is unknown, has no effect on the format, or its value is out
    ///   of range.
    package mutating func set(_ name: String, to value: String) throws(RenditionError) {
        guard let option = RenditionOption(rawValue: name) else { throw .invalidOption(name: name, reason: "is not known") }
        guard option.applies(to: format) else {
            throw .invalidOption(name: name, reason: "has no effect on \(format.rawValue)")
        }
        try option.read(value, into: &options)
    }

    /// Checks what no option tells alone.
    ///
    /// - Throws: ``RenditionError`` that names the option, when it has no effect beside the others, or contradicts them.
    package func check() throws(RenditionError) {
        if options.size.fit != .contain && (options.size.width == nil || options.size.height == nil) {
            throw .invalidOption(name: RenditionOption.fit.rawValue, reason: "has an effect only with both width and height")
        }
        if let end = options.time.end, end <= options.time.start {
            throw .invalidOption(name: RenditionOption.end.rawValue, reason: "must be later than the start")
        }
    }

    /// The same poster of another frame.
    func ofFrame(_ frame: Int) -> Rendition {
        var rendition = self
        rendition.options.frame = frame
        return rendition
    }

    /// The rendition whose alias stands for all posters of a frame past the end; nil for other renditions. Its frame is the
    /// largest number that the option takes, so a request for it means the same.
    var pastEnd: Rendition? {
        format.isPoster && options.frame > 0 ? ofFrame(999_999_999) : nil
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
