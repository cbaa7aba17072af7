import Fetch
import Testing

@Suite("Configurations are validated") struct FetchConfigurationTests {
    @Test func defaultsAreValid() throws {
        try FetchConfiguration().validate()
    }

    static let mistakes: [(String, @Sendable (inout FetchConfiguration) -> Void)] = [
        ("ports", { $0.ports = [] }),
        ("ports", { $0.ports = [0, 80] }),
        ("ports", { $0.ports = PortSet([80...65_536]) }),
        ("max_bytes", { $0.maxBytes = 0 }),
        ("max_head_bytes", { $0.maxHeadBytes = 1 }),
        ("connect_timeout", { $0.connectTimeout = .zero }),
        ("timeout", { $0.timeout = .seconds(-1) }),
        ("stall_timeout", { $0.stallTimeout = .zero }),
        ("stall_rate", { $0.stallRate = -1 }),
        ("max_redirects", { $0.maxRedirects = -1 }),
        ("concurrency", { $0.concurrency = 0 }),
        ("per_host", { $0.perHost = 0 }),
        ("queue", { $0.queue = -1 }),
        ("queue_per_host", { $0.queuePerHost = -1 }),
        ("user_agent", { $0.userAgent = "a\r\nX: y" }),
        ("loop_name", { $0.loopName = "a, b" }),
    ]

    @Test(arguments: mistakes.indices)
    func invalidSettingIsNamed(index: Int) {
        var configuration = FetchConfiguration()
        Self.mistakes[index].1(&configuration)
        let error = #expect(throws: FetchConfigurationError.self) { try configuration.validate() }
        #expect(error?.setting == Self.mistakes[index].0)
        #expect(throws: FetcherSetupError.self) { try Fetcher(configuration: configuration) }
    }
}
