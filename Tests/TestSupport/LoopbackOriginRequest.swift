/// A request as a ``LoopbackOrigin`` received it.
package struct LoopbackRequest: Sendable {
    package let method: String
    /// Path and query.
    package let target: String
    package let path: String
    /// What follows the question mark; empty without one.
    package let query: String
    /// By lower-case name; of repeated fields the last.
    package let headers: [String: String]
    /// How often its path was asked for, this time included.
    package private(set) var number = 0

    init?(head: String) {
        let lines = head.split(separator: "\r\n")
        let parts = lines.first?.split(separator: " ") ?? []
        guard parts.count == 3 else { return nil }
        method = String(parts[0])
        target = String(parts[1])
        path = String(target.prefix { $0 != "?" })
        query = String(target.dropFirst(path.count + 1))
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] = String(line[line.index(after: colon)...].drop { $0 == " " })
        }
        self.headers = headers
    }

    func numbered(_ number: Int) -> LoopbackRequest {
        var copy = self
        copy.number = number
        return copy
    }
}
