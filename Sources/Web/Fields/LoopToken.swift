/// This service's name in `CDN-Loop` (RFC 8586). Fetches carry it, so a request that carries it was caused by a fetch of this
/// service.
struct LoopToken: Sendable {
    private let name: String

    /// - Parameter name: A token or a host.
    init(_ name: String) {
        self.name = name.lowercased()
    }

    /// Whether an element of the fields' values has the name.
    func occurs(in values: [String]) -> Bool {
        ListField.elements(values).contains { $0.name == name }
    }
}
