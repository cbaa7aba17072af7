/// Nodes, the edges between them, and for each edge one reason.
struct DependencyGraph {
    private var edges: [String: [String: String]] = [:]

    mutating func add(from: String, to: String, because reason: String) {
        // The smallest reason, so that each run reports the same.
        if let known = edges[from]?[to], known <= reason { return }
        edges[from, default: [:]][to] = reason
    }

    /// The strongly connected components of more than one node (Tarjan, 1972), each sorted.
    var circles: [[String]] {
        var search = Search(edges: edges.mapValues { $0.keys.sorted() })
        for node in edges.keys.sorted() where search.index[node] == nil { search.visit(node) }
        return search.found.map { $0.sorted() }.sorted { $0[0] < $1[0] }
    }

    /// One reason for each edge within a circle.
    func reasons(for circle: [String]) -> [String] {
        circle.flatMap { from in
            (edges[from] ?? [:]).filter { circle.contains($0.key) }.sorted { $0.key < $1.key }
                .map { "\(from) → \($0.key): \($0.value)" }
        }
    }

    private struct Search {
        let edges: [String: [String]]
        var index: [String: Int] = [:]
        private var lowest: [String: Int] = [:]
        private var stack: [String] = []
        private(set) var found: [[String]] = []

        init(edges: [String: [String]]) {
            self.edges = edges
        }

        mutating func visit(_ node: String) {
            let number = index.count
            index[node] = number
            lowest[node] = number
            stack.append(node)
            for next in edges[node] ?? [] {
                if index[next] == nil {
                    visit(next)
                    lowest[node] = min(lowest[node] ?? number, lowest[next] ?? number)
                } else if stack.contains(next) {
                    lowest[node] = min(lowest[node] ?? number, index[next] ?? number)
                }
            }
            guard lowest[node] == number, let start = stack.firstIndex(of: node) else { return }
            let component = Array(stack[start...])
            stack.removeSubrange(start...)
            if component.count > 1 { found.append(component) }
        }
    }
}
