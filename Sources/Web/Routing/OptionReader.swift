package import Renditions
internal import SystemIO

/// Collects the options of a rendition from path, query and form. A repeated option is an error.
package struct OptionReader {
    private var rendition: Rendition
    /// The signature and the data that it must cover. The caller sets the source.
    package var credentials: RequestSignature
    // The options that do not concern the rendition; nil if they are not given. `on_error` and `title` are options of pages.
    private(set) var onMiss: Mount.OnMiss?
    private(set) var onError: Mount.OnError?
    private(set) var onLarger: OnLarger?
    private(set) var callback: String?
    private(set) var title: String?
    /// The requested preset, if the settings define it.
    package private(set) var preset: String?
    /// Whether the client's hints decide the width (`width=auto`).
    private(set) var hasAutomaticWidth = false
    private let defaults: RenditionDefaults
    private var names = Set<String>()
    private var explicit: [RenditionPresets.Option] = []

    /// - Parameters:
    ///   - name: The name that a signature covers; nil for the format's name.
    ///   - defaults: The values of options that the request omits.
    package init(
        format: Rendition.Format, named name: String? = nil, defaults: RenditionDefaults = RenditionDefaults()
    ) {
        rendition = defaults.rendition(format)
        self.defaults = defaults
        credentials = RequestSignature(name: name ?? format.rawValue)
    }

    /// The answer to a request for a rendition that is larger than its source.
    enum OnLarger: String, CaseIterable {
        case send
        /// A problem, so that the client shows the source.
        case problem

        /// Returns the choices for requests for the format; empty if the format has no such option.
        static func choices(for format: Rendition.Format) -> [OnLarger] {
            format.isSentAsStored && !format.isPoster ? allCases : []
        }
    }

    /// The name of the option for the URL that receives the outcome of a request.
    static let callback = "callback"
    static let signature = "sig"

    /// The name of the option for the text that describes a page's animation.
    static let title = "title"
    private static let longestTitle = 500

    static func isOption(_ name: String) -> Bool {
        [signature, "expires", "on_miss", "on_error", "on_larger", callback].contains(name)
            || RenditionOption(rawValue: name) != nil
    }

    /// Whether a parameter with this name is an option of the format. `title` is an option of pages only, because origins may
    /// have a parameter of that name.
    func hasOption(_ name: String) -> Bool { Self.isOption(name) || name == Self.title && rendition.format == .html }

    /// Reads `name=value` from a path.
    package mutating func readPair(_ text: Substring) throws(Problem) {
        guard !text.isEmpty else {
            throw .badRequest("The path has a comma without an option after it: options are written “,name=value”.")
        }
        var parts = text.parts(at: UInt8(ascii: "="), maxSplits: 1, keepingEmpty: true)
        // Some clients encode the equals sign.
        if parts.count == 1, let decoded = PercentEncoding.decode(text) {
            parts = decoded[...].parts(at: UInt8(ascii: "="), maxSplits: 1, keepingEmpty: true)
        }
        guard parts.count == 2 else { throw .badOption(String(text), "is not of the form name=value") }
        guard let name = PercentEncoding.decode(parts[0]), let value = PercentEncoding.decode(parts[1]) else {
            throw .badOption(String(text), "is not percent-encoded correctly")
        }
        try read(name, value)
    }

    /// Reads the parameters of a query.
    ///
    /// - Returns: The value of `url`.
    mutating func readQuery(_ items: [QueryItem]) throws(Problem) -> String? {
        var url: String?
        for item in items {
            if item.name == "url" {
                guard url == nil else { throw .badOption("url", "is given twice") }
                url = item.value
            } else if let url, url.utf8.contains(UInt8(ascii: "?")), !hasOption(item.name), item.name != Self.title {
                // The rest of a source URL whose ampersands are not encoded.
                throw .badOption(
                    item.name, "\(RenditionOption.isUnknown(item.name)); a parameter of the source has to be percent-encoded")
            } else {
                try read(item.name, item.value)
            }
        }
        return url
    }

    /// Checks the combination of the options read so far, and returns the rendition.
    ///
    /// - Parameter awaitsFields: Whether a form adds options. Then the combination is not checked, and the rendition is not
    ///   complete.
    package func finish(awaitsFields: Bool = false) throws(Problem) -> Rendition {
        if awaitsFields { return rendition }
        do throws(RenditionError) {
            let result =
                preset == nil ? rendition : try defaults.rendition(rendition.format, preset: preset, explicit)
            // Checks with a width, so that a combination is refused for all clients or for none.
            try (hasAutomaticWidth ? result.ofWidth(2) : result).check()
            return result
        } catch {
            throw Problem(error)
        }
    }

    mutating func read(_ name: String, _ value: String) throws(Problem) {
        guard names.insert(name).inserted else { throw .badOption(name, "is given twice") }
        switch name {
        case Self.signature:
            credentials.signature = value
            return
        case "expires":
            credentials.expires = try Self.time(value)
        case Self.callback:
            callback = value
        case "on_miss":
            onMiss = try choice(name, value, of: Mount.OnMiss.choices(for: rendition.format))
        case "on_error":
            onError = try choice(name, value, of: rendition.format == .html ? Mount.OnError.allCases : [])
        case Self.title:
            guard rendition.format == .html else { throw .badOption(name, "has no effect on \(rendition.format.rawValue)") }
            guard value.utf8.count <= Self.longestTitle else {
                throw .badOption(name, "is longer than \(Self.longestTitle) bytes")
            }
            // Captions have line breaks, which a title cannot show. Spaces that do not break stay beside visible text.
            let words = value.split { $0 == " " || $0 == "\t" || $0.isNewline }
            let properties = value.unicodeScalars.map(\.properties)
            let isBlank = properties.allSatisfy { $0.isWhitespace || $0.isDefaultIgnorableCodePoint }
            title = isBlank ? nil : words.joined(separator: " ")
        case "on_larger":
            onLarger = try choice(name, value, of: OnLarger.choices(for: rendition.format))
        default:
            try translating(try readOption(name, value), to: Problem.init)
        }
        credentials.options.append(QueryItem(name: name, value: value))
    }

    /// Reads an option of the rendition. The options of a preset are applied in ``finish(awaitsFields:)``, because others
    /// override them.
    private mutating func readOption(_ name: String, _ value: String) throws(RenditionError) {
        if name == RenditionOption.preset.rawValue, let named = try defaults.preset(named: value) {
            preset = named
            return
        }
        if name == RenditionOption.width.rawValue, value == Self.automatic, RenditionOption.width.applies(to: rendition.format)
        {
            hasAutomaticWidth = true
            return
        }
        try rendition.set(name, to: value)
        explicit.append(RenditionPresets.Option(name: name, value: value))
    }

    /// The value of `width` that leaves the width to the client's hints.
    static let automatic = "auto"

    /// Reads an option whose choices depend on the format.
    private func choice<Choice: RawRepresentable<String>>(
        _ name: String, _ value: String, of choices: [Choice]
    ) throws(Problem) -> Choice {
        guard !choices.isEmpty else { throw .badOption(name, "has no effect on \(rendition.format.rawValue)") }
        guard let choice = choices.first(where: { $0.rawValue == value }) else {
            throw .badOption(name, "must be \(choices.map(\.rawValue).joined(separator: " or "))")
        }
        return choice
    }

    private static func time(_ text: String) throws(Problem) -> Int64 {
        let isNumber = text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard isNumber, text.utf8.count <= 15, let seconds = Int64(text) else {
            throw .badOption("expires", "must be a time in Unix seconds")
        }
        return seconds
    }
}
