import Testing

@Suite("Tests wait for conditions, with a bound") struct WaitingRuleTests {
    /// Calls that suspend or block for a fixed time.
    private static let sleeps: Set<String> = ["sleep", "usleep", "nanosleep"]

    /// Files that may sleep, how often, and why.
    private static let allowed: [String: (count: Int, reason: String)] = [
        "Tests/TestSupport/Waiting.swift": (2, "the helper itself: it polls with a bound"),
        "Tests/StoreTests/Files/CrashTests.swift": (1, "it kills a process at a random moment"),
    ]

    @Test func noTestSleepsOutsideOfTheHelperThatWaits() throws {
        let files = try SourceTree(below: "Tests").files
        #expect(files.count > 50)
        for file in files {
            let count = file.tokens.count { Self.sleeps.contains($0.text) }
            let limit = Self.allowed[file.path]?.count ?? 0
            #expect(
                count == limit, "\(file.path) sleeps \(count) times: wait for a condition with waitUntil or blockUntil instead")
        }
    }

    @Test func aSleepIsFoundWhereverItStands() {
        let tree = SourceTree([
            "Tests/ATests/A.swift": "func a() { while x { usleep(1) } } // usleep",
            "Tests/ATests/B.swift":
                "func b() async { try? await Task.sleep(for: .seconds(1)); Thread.sleep(forTimeInterval: 1) }",
            "Tests/ATests/C.swift": "let c = \"usleep\"",
        ])
        #expect(tree.files.map { file in file.tokens.count { Self.sleeps.contains($0.text) } } == [1, 2, 0])
    }
}
