import Fetch
import Renditions
import Testing

@testable import Store
@testable import Web

@Suite("The memo of parsed targets") struct RouteMemoTests {
    private func with<Result>(_ text: String, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try Array(text.utf8).withUnsafeBytes(body)
    }

    @Test func onlyRecentTargetsAreKnown() throws {
        let memo = RouteMemo(capacity: 4)
        let parser = RouteParser(mounts: [:])
        let target = "/mp4/http://example.com/a.gif?v=1"
        #expect(with(target) { memo.entry(for: $0) } == nil)
        let route = try parser.parse(target)
        with(target) { memo.insert(route, for: $0) }
        let entry = try #require(with(target) { memo.entry(for: $0) })
        guard case .rendition(let rendition, let url) = route.route else {
            Issue.record("no rendition")
            return
        }
        #expect(entry.alias == AliasKey(sourceURL: url.canonical, rendition: rendition.canonicalText))
        #expect(entry.object == nil)
        for other in ["/mp4/http://example.com/a.gif?v=2", "/mp4/http://example.com/a.gif", ""] {
            #expect(with(other) { memo.entry(for: $0) } == nil)
        }
    }

    @Test func targetsInOneSlotDoNotAnswerForEachOther() throws {
        let memo = RouteMemo(capacity: 1)
        let parser = RouteParser(mounts: [:])
        for name in ["a", "b"] {
            let target = "/mp4/http://example.com/\(name).gif"
            let route = try parser.parse(target)
            with(target) { memo.insert(route, for: $0) }
        }
        #expect(with("/mp4/http://example.com/a.gif") { memo.entry(for: $0) } == nil)
        #expect(with("/mp4/http://example.com/b.gif") { memo.entry(for: $0)?.alias } != nil)
    }

    @Test func contentIsKnownByItsID() throws {
        let memo = RouteMemo()
        let target = "/object/\(String(repeating: "0a", count: 32)).mp4"
        let route = try RouteParser(mounts: [:]).parse(target)
        with(target) { memo.insert(route, for: $0) }
        let object = try #require(with(target) { memo.entry(for: $0) }?.object)
        #expect(object.id.description == String(repeating: "0a", count: 32))
        #expect(object.fileExtension == "mp4")
    }

    @Test func slotsOfTargetsDifferFromMemoToMemo() throws {
        let parser = RouteParser(mounts: [:])
        let targets = (0..<8).map { "/mp4/http://example.com/\($0).gif" }
        /// Which of the targets a memo with few slots still has.
        func kept() throws -> [Bool] {
            let memo = RouteMemo(capacity: 4)
            for target in targets {
                let route = try parser.parse(target)
                with(target) { memo.insert(route, for: $0) }
            }
            return targets.map { target in with(target) { memo.entry(for: $0) != nil } }
        }
        let first = try kept()
        // That 50 memos agree by chance is less likely than 1 in 2¹⁰⁰.
        #expect(try (0..<50).contains { _ in try kept() != first })
    }

    @Test func longTargetsAreNotKept() throws {
        let memo = RouteMemo()
        let target = "/mp4/http://example.com/" + String(repeating: "a", count: 600) + ".gif"
        let route = try RouteParser(mounts: [:]).parse(target)
        with(target) { memo.insert(route, for: $0) }
        #expect(with(target) { memo.entry(for: $0) } == nil)
    }
}
