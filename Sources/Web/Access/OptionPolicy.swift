internal import Renditions

/// Which options requests without a valid signature may have (`options.allow`).
package enum OptionPolicy: Sendable, Equatable {
    case any
    /// Only a preset, and options that do not multiply the renditions of a source.
    case presets

    /// The names of options that are always allowed: the codec is a part of the format, and the others change no rendition.
    private static let unbounded: Set<String> = [
        "preset", "codec", "expires", "on_miss", "on_error", "on_larger", "callback", "title",
    ]

    /// Checks the options of a request.
    ///
    /// - Parameters:
    ///   - isSigned: Whether a key has verified the request's signature.
    ///   - presets: The presets of the service.
    /// - Throws: `option_not_allowed`.
    func check(_ options: [(name: String, value: String)], isSigned: Bool, presets: RenditionPresets) throws(Problem) {
        guard self == .presets, !isSigned, let refused = options.first(where: { !Self.isAllowed($0.name, $0.value) }) else {
            return
        }
        throw Problem(
            403, "option_not_allowed",
            "The option “\(refused.name.prefix(64))” needs a signed request. Requests without a signature may have "
                + "a preset: \(presets.names.joined(separator: ", ")).")
    }

    private static func isAllowed(_ name: String, _ value: String) -> Bool {
        // The width of the client is one of a few.
        unbounded.contains(name) || name == "width" && value == "auto"
    }
}
