import Testing

@testable import gifreel

@Suite("File descriptors are divided among what needs them") struct DescriptorBudgetTests {
    private func budget(_ limit: Int, connections: Int = 8192) -> DescriptorBudget {
        DescriptorBudget(limit: limit, connections: connections, openRenditions: 2048, conversions: 66)
    }

    @Test func aHighLimitChangesNothing() {
        let budget = budget(65_536)
        #expect(budget.connections == 8192 && budget.openRenditions == 2048 && budget.warning == nil)
    }

    @Test(arguments: [100, 300, 1024, 4096, 8192, 12_000])
    func aLowLimitLeavesDescriptorsForConversions(_ limit: Int) throws {
        let budget = budget(limit)
        #expect(limit - budget.connections - 2 * budget.openRenditions >= min(limit / 5, 400))
        let warning = try #require(budget.warning)
        #expect(warning.contains("the limit of \(limit) open files") && warning.contains("\(budget.needed)"))
    }

    @Test func fewConnectionsStayAsTheyAreSet() {
        #expect(budget(300, connections: 20).connections == 20)
    }
}
