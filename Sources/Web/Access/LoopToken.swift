/// This service's name in `CDN-Loop` (RFC 8586): fetches carry it, so a request that carries it comes of our own fetch.
struct LoopToken: Sendable {
    private let name: String

    /// - Parameter name: A token or a host.
    init(_ name: String) {
        self.name = name.lowercased()
    }

    /// Whether the name is among those of the fields' values.
    func occurs(in values: [String]) -> Bool {
        ListField.elements(values).contains { $0.name == name }
    }
}
