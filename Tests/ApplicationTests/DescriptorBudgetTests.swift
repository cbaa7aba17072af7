import HTTP
import Sandbox
import Settings
import Store
import Testing

@testable import gifreel

@Suite("File descriptors are divided among what needs them") struct DescriptorBudgetTests {
    private func configuration(connections: Int = 8192) throws -> ServiceConfiguration {
        var configuration = try ServiceConfiguration(Settings())
        configuration.http.maxConnections = connections
        configuration.cache.hotEntries = 2048
        (configuration.pool.workers, configuration.pool.queue) = (2, 64)
        return configuration
    }

    @Test func aHighLimitChangesNothing() throws {
        var configuration = try configuration()
        #expect(configuration.fit(descriptorLimit: 65_536) == nil)
        #expect(configuration.http.maxConnections == 8192 && configuration.cache.hotEntries == 2048)
    }

    @Test(arguments: [100, 300, 1024, 4096, 8192, 12_000])
    func aLowLimitLeavesDescriptorsForConversions(_ limit: Int) throws {
        var configuration = try configuration()
        let warning = configuration.fit(descriptorLimit: limit) ?? ""
        #expect(limit - configuration.http.maxConnections - 2 * configuration.cache.hotEntries >= min(limit / 5, 400))
        let needed = 8192 + 2 * 2048 + 5 * 66 + 64
        #expect(warning.contains("the limit of \(limit) open files") && warning.contains("\(needed)"))
    }

    @Test func fewConnectionsStayAsTheyAreSet() throws {
        var configuration = try configuration(connections: 20)
        _ = configuration.fit(descriptorLimit: 300)
        #expect(configuration.http.maxConnections == 20)
    }
}
