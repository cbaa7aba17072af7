import Testing

@testable import Fleet

@Suite("Addresses of servers") struct RedisAddressTests {
    @Test func everyPartIsRead() throws {
        let address = try RedisAddress("rediss://me:p%40ss%2Fword@redis.example.com:6380/3?ca=/etc/ca.pem")
        #expect(address.endpoint == .tcp(host: "redis.example.com", port: 6380))
        #expect(address.usesTLS)
        #expect(address.user == "me")
        #expect(address.password == "p@ss/word")
        #expect(address.database == 3)
        #expect(address.caFile == "/etc/ca.pem")
        #expect(address.description == "rediss://redis.example.com:6380/3")
    }

    @Test func whatIsLeftOutHasDefaults() throws {
        let address = try RedisAddress("redis://[::1]")
        #expect(address.endpoint == .tcp(host: "::1", port: 6379))
        #expect(address.password == nil && address.user == nil && address.database == 0 && !address.usesTLS)
        #expect(try RedisAddress("redis://:secret@h").password == "secret")
        #expect(try RedisAddress("redis://secret@h").password == "secret")
        #expect(try RedisAddress("redis://secret@h").user == nil)
        let socket = try RedisAddress("unix:/run/redis.sock?db=2&password=x")
        #expect(socket.endpoint == .unix(path: "/run/redis.sock"))
        #expect(socket.database == 2 && socket.password == "x")
        #expect(try RedisAddress("unix:///run/redis.sock").endpoint == .unix(path: "/run/redis.sock"))
    }

    @Test(arguments: [
        "", "redis", "http://h", "redis://", "redis://:6379", "redis://h:0", "redis://h:65536", "redis://h:x", "redis://h/-1",
        "redis://h/x", "redis://h/65536", "redis://h?ca=/a", "rediss://h?ca=", "rediss://h?cb=/a", "rediss://h?ca=a&ca=b",
        "unix:relative", "unix:", "redis://%zz@h", "redis://%ff@h", "redis://%+f@h",
        "unix:/\(String(repeating: "a", count: 108))", "redis://a b",
    ])
    func whatIsNoAddressIsRefused(_ text: String) {
        #expect(throws: ClusterSettingError.self) { try RedisAddress(text) }
    }

    @Test func noDescriptionContainsAPassword() throws {
        #expect(try !RedisAddress("redis://me:hunter2@h:1/2").description.contains("hunter2"))
        let error = #expect(throws: ClusterSettingError.self) { try RedisAddress("redis://me:hunter2@h:x") }
        #expect(error?.description.contains("hunter2") == false)
    }

    @Test func namesAreChecked() {
        #expect(throws: ClusterSettingError.self) {
            try ClusterConfiguration(address: "redis://h", name: "a:b", node: nil)
        }
        #expect(throws: ClusterSettingError.self) {
            try ClusterConfiguration(address: "redis://h", name: "a", node: "")
        }
        #expect(throws: Never.self) {
            try ClusterConfiguration(address: "redis://h", name: "a.b_c-1", node: nil)
        }
    }
}
