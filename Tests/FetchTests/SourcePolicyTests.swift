import Fetch
import Testing

@Suite("A source policy decides by the URL alone") struct SourcePolicyTests {
    private func refusal(_ url: String, _ change: (inout FetchConfiguration) -> Void) throws -> SourcePolicy.Refusal? {
        var configuration = FetchConfiguration()
        change(&configuration)
        return configuration.sourcePolicy.refusal(of: try SourceURL(url))
    }

    @Test func defaultsAllowEveryPublicSource() throws {
        #expect(try refusal("https://example.com/a.gif") { _ in } == nil)
        #expect(try refusal("http://93.184.215.14:8080/a.gif") { _ in } == nil)
    }

    @Test func narrowedPatternsRefuse() throws {
        let narrow = { (configuration: inout FetchConfiguration) in
            configuration.allow = ["cdn.example.com/gifs"].compactMap { SourcePattern($0) }
        }
        #expect(try refusal("https://cdn.example.com/gifs/a.gif", narrow) == nil)
        #expect(try refusal("https://cdn.example.com/a.gif", narrow) == .pattern)
        #expect(try refusal("https://example.com/gifs/a.gif", narrow) == .pattern)
    }

    @Test func withoutPatternsNothingIsAllowed() throws {
        #expect(try refusal("http://example.com/") { $0.allow = [] } == .pattern)
    }

    @Test func narrowedPortsRefuse() throws {
        #expect(try refusal("http://example.com/a.gif") { $0.ports = [443] } == .address(.port(80, allowed: [443])))
        #expect(try refusal("https://example.com/a.gif") { $0.ports = [443] } == nil)
    }

    @Test func withdrawnExceptionRefusesAnAddress() throws {
        let allow = { (configuration: inout FetchConfiguration) in
            configuration.allowPrivate = ["10.0.0.0/8"].compactMap { AddressException($0) }
        }
        #expect(try refusal("http://10.0.0.1/a.gif", allow) == nil)
        #expect(try refusal("http://10.0.0.1:22/a.gif", allow) == .address(.port(22, allowed: FetchConfiguration().ports)))
        #expect(try refusal("http://10.0.0.1/a.gif") { _ in } == .address(.address(purpose: "private use")))
    }

    /// The addresses behind a name are unknown without the DNS, which is not asked.
    @Test func namesAreNotLookedUp() throws {
        #expect(try refusal("http://localhost/a.gif") { _ in } == nil)
    }
}
