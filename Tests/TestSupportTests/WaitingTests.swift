import TestSupport
import Testing

@Suite("Work on threads belongs to its test") struct WaitingTests {
    /// The testing library assigns an expectation to the test of the task that it is in.
    @Test func aThreadBelongsToTheTestThatCallsIt() async throws {
        let name = try #require(Test.current?.name)
        #expect(try await onThread { Test.current?.name } == name)
    }

    @Test func threadsAtOnceBelongToTheTestThatCallsThem() throws {
        let name = try #require(Test.current?.name)
        #expect(try atOnce(2) { _ in Test.current?.name } == [name, name])
    }
}
