internal import Media

/// The options of requests that leave them out, where the settings of a service differ from those of the interface.
///
/// Keys name every option that differs from the interface, so a change of the settings changes no stored rendition. Addresses
/// have to name the options that differ from these defaults.
package struct RenditionDefaults: Sendable, Equatable {
    /// Whether dither is taken out where it is certain to lie on a film.
    package var undithers: Bool
    /// Options that requests name together.
    package var presets: RenditionPresets

    package init(undithers: Bool = true, presets: RenditionPresets = RenditionPresets()) {
        self.undithers = undithers
        self.presets = presets
    }

    /// The rendition that a request for a format without options means.
    package func rendition(_ format: Rendition.Format) -> Rendition {
        applied(to: Rendition(format: format))
    }

    /// The rendition with these defaults.
    package func applied(to rendition: Rendition) -> Rendition {
        if undithers { return rendition }
        var rendition = rendition
        rendition.keepDither()
        return rendition
    }

    /// The options of an address that means the rendition, sorted by name.
    package func options(of rendition: Rendition) -> [(name: String, value: String)] {
        let usual = self.rendition(rendition.format).options.undither
        guard usual != TranscodeOptions().undither else { return rendition.canonicalOptions }
        let name = RenditionOption.undither.rawValue
        var options = rendition.canonicalOptions.filter { $0.name != name }
        if rendition.options.undither != usual { options.append((name, rendition.options.undither.name)) }
        return options.sorted { $0.name < $1.name }
    }
}
