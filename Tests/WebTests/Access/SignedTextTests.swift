import Renditions
import TestSupport
import Testing

@testable import Web

@Suite("Different requests have different signed texts") struct SignedTextTests {
    private static let names = ["a", "b", "expires", "quality", "width"]
    private static let values = ["", "1", "2", "a", "%", "é", "1 2", "x\ty", "=", "1=2", "a=1", ",", ",,", "1,", ",1", "1,b=2"]

    private func options(_ random: inout SeededNumbers) -> [QueryItem] {
        Self.names.filter { _ in Bool.random(using: &random) }.map { name in
            QueryItem(name: name, value: Self.values.randomElement(using: &random) ?? "")
        }
    }

    @Test func aTextDoesNotDependOnTheOrderOfOptionsAndDiffersForDifferentRequests() throws {
        var random = SeededNumbers(seed: 17)
        var requests: [String: [QueryItem]] = [:]
        for _ in 0..<2_000 {
            let options = options(&random)
            let source = ["", "https://a.test/1", "https://a.test/2"].randomElement(using: &random) ?? ""
            let text = try #require(SignedText("mp4", options: options, source: source)).text
            let shuffled = options.shuffled(using: &random)
            #expect(SignedText("mp4", options: shuffled, source: source)?.text == text)
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines.count == 3 && lines[0] == "mp4" && lines[2] == source)
            let request = options.sorted { $0.name < $1.name } + [QueryItem(name: "source", value: source)]
            #expect(requests[text] ?? request == request, "\(text)")
            requests[text] = request
        }
        #expect(requests.count > 500)
    }

    @Test func aSeparatorInANameOrValueHasNoText() {
        for (name, value) in [("a,", "1"), ("a=", "1"), ("a\n", "1"), ("a", "\n1")] {
            #expect(SignedText("png", options: [QueryItem(name: name, value: value)], source: "https://a.test/") == nil)
        }
    }

    @Test func theSameTextIsSignedInEveryFormOfARequest() throws {
        let parser = RouteParser(mounts: [:])
        let targets = [
            "/mp4,quality=80,bg=00ff00/https://a.test/a.gif", "/mp4?bg=00ff00&url=https%3A%2F%2Fa.test%2Fa.gif&quality=80",
            "/mp4,bg=00ff00/https%3A%2F%2Fa.test%2Fa.gif?quality=%380", "/mp4,bg=%300ff00?quality=80&url=https://a.test/a.gif",
        ]
        let texts = try targets.map { target in
            try #require(try parser.parse(target).credentials).texts(canonicalSource: nil).map(\.text)
        }
        #expect(Set(texts) == [["mp4\nbg=00ff00,quality=80\nhttps://a.test/a.gif"]])
    }
}
