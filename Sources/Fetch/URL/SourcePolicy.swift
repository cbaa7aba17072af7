/// Which sources may be fetched at all: one of the patterns has to match. With no pattern nothing may.
package struct SourcePolicy: Sendable {
    package let patterns: [SourcePattern]

    package init(patterns: [SourcePattern] = [.any]) {
        self.patterns = patterns
    }

    /// Whether `url` may be fetched, as far as its text goes; its addresses are ``AddressPolicy``'s to judge.
    package func allows(_ url: SourceURL) -> Bool {
        patterns.contains { $0.matches(url) }
    }
}
