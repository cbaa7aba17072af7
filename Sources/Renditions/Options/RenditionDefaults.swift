internal import Media

/// The options of requests that leave them out, where the settings of a service differ from those of the interface.
///
/// Keys name every option that differs from the interface, so a change of the settings changes no stored rendition. Addresses
/// have to name the options that differ from these defaults.
package struct RenditionDefaults: Sendable, Equatable {
    /// Whether dither is taken out.
    package var undither: Bool
    /// Options that requests name together.
    package var presets: RenditionPresets

    package init(undither: Bool = false, presets: RenditionPresets = RenditionPresets()) {
        self.undither = undither
        self.presets = presets
    }

    /// The rendition that a request for a format without options means.
    package func rendition(_ format: Rendition.Format) -> Rendition {
        applied(to: Rendition(format: format))
    }

    /// The rendition with these defaults.
    package func applied(to rendition: Rendition) -> Rendition {
        guard undither else { return rendition }
        var rendition = rendition
        rendition.undither()
        return rendition
    }

    /// The options of an address that means the rendition, sorted by name.
    package func options(of rendition: Rendition) -> [(name: String, value: String)] {
        guard undither, RenditionOption.undither.applies(to: rendition.format) else { return rendition.canonicalOptions }
        var options = rendition.canonicalOptions.filter { $0.name != RenditionOption.undither.rawValue }
        if !rendition.options.undither { options.append((RenditionOption.undither.rawValue, "0")) }
        return options.sorted { $0.name < $1.name }
    }
}
