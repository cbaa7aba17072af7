import Fetch
import Media
import Sandbox
import Testing

@testable import Renditions

@Suite("A failure that nodes share") struct SharedFailureTests {
    private static let allowance = WorkerAllowance(cpu: 7, memory: 100 << 20, output: 9 << 20, wall: 15)

    private static let fetchErrors: [FetchError] = [
        .notFound, .gone, .notAnAnimation(looksLike: .jxl), .tooLarge(limit: 1000, declared: nil),
        .tooLarge(limit: 1000, declared: 2000), .tooManyRedirects(limit: 3),
        .failed(.status(503, retryAfter: .seconds(20))), .failed(.status(403, retryAfter: nil)),
    ]
    private static let sandboxErrors: [SandboxError] = [
        .rejected(.notAnAnimation), .rejected(.still(.apng)), .rejected(.incomplete(.gif)),
        .rejected(.corrupt(.webp, .noFrames)),
        .rejected(.tooLarge(.frames, value: 9000, maximum: 5000)), .rejected(.outOfMemory), .cpuLimitExceeded,
    ]
    private static let shared: [RenditionError] =
        fetchErrors.map { RenditionError.fetchFailed($0) }
        + sandboxErrors.map { RenditionError.conversionFailed($0, allowance: allowance) }

    @Test(arguments: shared) func isReadAsItWasWritten(_ error: RenditionError) throws {
        let failure = try #require(SharedFailure(error, foundAt: 1000))
        let read = SharedFailure(
            code: failure.code, details: failure.details(scope: "limits"), scope: "limits", foundAt: 1000,
            lifetime: failure.lifetime)
        #expect(read == failure && read?.error == error)
    }

    @Test(
        arguments: [
            .fetchFailed(.unreachable(cause: "refused")), .fetchFailed(.timeout(.total, limit: .seconds(3))),
            .fetchFailed(.busy),
            .fetchFailed(.notAllowed(.pattern)), .conversionFailed(.queueFull, allowance: allowance),
            .conversionFailed(.misbehaved(.surplusMessage), allowance: allowance), .overloaded(cause: nil), .cancelled,
            .remembered(.fetchFailed(.notFound), remaining: 9),
        ] as [RenditionError])
    func isNoneThatSaysLittleAboutTheSource(_ error: RenditionError) {
        #expect(SharedFailure(error, foundAt: 0) == nil)
    }

    @Test func isUnknownUnderOtherLimits() throws {
        let failure = try #require(SharedFailure(.fetchFailed(.notFound), foundAt: 0))
        let details = failure.details(scope: "max 20")
        #expect(SharedFailure(code: failure.code, details: details, scope: "max 30", foundAt: 0, lifetime: 60) == nil)
        #expect(SharedFailure(code: failure.code, details: details, scope: "max 2", foundAt: 0, lifetime: 60) == nil)
    }

    @Test(
        arguments: [
            ("not_found", "s\n1", 60), ("status", "s\n99,-1", 60), ("status", "s\n404", 60), ("not_a_gif", "s\nCAT", 60),
            ("limit_exceeded", "s\n1,2,3,4,77,1,1", 60), ("corrupt", "s\n1,2,3,4,300", 60), ("cpu_exceeded", "s\n1,2,-3,4", 60),
            ("gone", "s\nx", 60), ("gone", "s\n", 0), ("gone", "s\n", 601), ("cat", "s\n", 60), ("gone", "", 60),
            ("source_too_large", "s\n99999999999999999999,1", 60),
        ])
    func isNoneOfWordsOutOfRange(_ code: String, _ details: String, _ lifetime: Int64) {
        #expect(SharedFailure(code: code, details: Array(details.utf8), scope: "s", foundAt: 0, lifetime: lifetime) == nil)
    }

    @Test func isRememberedForTheTimeThatIsLeftWhateverTheClocksSay() throws {
        let failure = try #require(
            SharedFailure(code: "gone", details: Array("s\n".utf8), scope: "s", foundAt: 1000, lifetime: 60))
        #expect([1000, 1045, 1060, 5000, 10].map { failure.remaining(at: $0) } == [60, 15, 1, 1, 60])
    }

    @Test func ofTheSourceConcernsAllRenditions() throws {
        let ofSource = try #require(SharedFailure(.fetchFailed(.gone), foundAt: 0))
        let ofRendition = try #require(
            SharedFailure(.conversionFailed(.rejected(.incomplete(.webp)), allowance: Self.allowance), foundAt: 0))
        let ofImage = try #require(
            SharedFailure(.conversionFailed(.rejected(.still(.apng)), allowance: Self.allowance), foundAt: 0))
        #expect(ofSource.isOfSource && ofImage.isOfSource && !ofRendition.isOfSource)
    }
}
