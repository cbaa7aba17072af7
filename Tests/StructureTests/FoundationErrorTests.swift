import Testing

@Suite("Texts of Foundation's errors reach no user") struct FoundationErrorTests {
    @Test func noSourceUsesTheDescriptionOfAFoundationError() throws {
        for file in try SourceTree(below: "Sources").files {
            let uses = file.tokens.filter { ["localizedDescription", "NSError", "CocoaError"].contains($0.text) }
            #expect(uses.isEmpty, "\(file.path)")
        }
    }
}
