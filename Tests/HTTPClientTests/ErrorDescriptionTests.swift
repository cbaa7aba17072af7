import Testing

@testable import HTTPClient

@Suite("The description of an error names what happened") struct ErrorDescriptionTests {
    @Test(arguments: [
        (HTTPError.timedOut(.connect, cause: "x"), "unreachable: x"), (.timedOut(.head, cause: "x"), "timed out: x"),
        (.timedOut(.body, cause: "x"), "timed out: x"), (.misconfigured(cause: "x"), "misconfigured: x"),
        (.exhausted(cause: "x"), "exhausted: x"),
    ])
    func aLateResponseIsNoUnreachableServerAndAMissingFileNoExhaustion(error: HTTPError, text: String) {
        #expect("\(error)" == text)
    }
}
