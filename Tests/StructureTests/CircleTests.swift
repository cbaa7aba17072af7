import Testing

@Suite("Targets and folders depend on one another in one direction") struct CircleTests {
    private let sources: SourceTree

    init() throws {
        sources = try SourceTree(below: "Sources")
    }

    @Test func noTargetsFormACircle() {
        #expect(sources.targets.count > 5)
        #expect(sources.targetGraph.circles.isEmpty)
    }

    /// Types are looked for by name, so a dependency through members alone (an extension's method, a case) is not seen.
    @Test(arguments: [1, nil]) func noFoldersOfATargetFormACircle(_ depth: Int?) {
        for target in sources.targets.sorted() {
            let graph = sources.folderGraph(of: target, depth: depth)
            for circle in graph.circles where circle.contains(where: { !$0.hasSuffix(".swift") }) {
                Issue.record(
                    "\(target): \(circle.joined(separator: ", "))\n\(graph.reasons(for: circle).joined(separator: "\n"))")
            }
        }
    }
}
