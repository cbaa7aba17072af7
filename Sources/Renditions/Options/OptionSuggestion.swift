internal import SystemIO

extension RenditionOption {
    /// The end of a sentence about a name that no option has. It names the option that was probably meant.
    package static func isUnknown(_ name: String) -> String {
        guard let option = nearest(to: name) else { return "is not known" }
        return "is not known (did you mean “\(option.rawValue)”?)"
    }

    /// The only option with the name as a prefix, or else the nearest option within two byte edits; nil if there is none. At the same
    /// distance, an option with the same first letter is preferred.
    private static func nearest(to name: String) -> RenditionOption? {
        let longest = 16
        guard !name.isEmpty, name.utf8.count <= longest else { return nil }
        let bytes = Array(name.lowercased().utf8)
        let begun = allCases.filter { $0.rawValue.utf8.starts(with: bytes) }
        if begun.count == 1 { return begun.first }
        let allowed = min(2, bytes.count / 2)
        let begins = { (option: RenditionOption) in option.rawValue.utf8.first == bytes.first }
        return allCases.map { (option: $0, changes: editDistance(bytes, Array($0.rawValue.utf8))) }
            .filter { $0.changes <= allowed }
            .min { ($0.changes, begins($0.option) ? 0 : 1) < ($1.changes, begins($1.option) ? 0 : 1) }?.option
    }
}
