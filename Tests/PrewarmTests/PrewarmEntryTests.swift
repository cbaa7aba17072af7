import Fetch
import Foundation
import Renditions
import Testing

@testable import Prewarm

@Suite("An entry is parsed when its turn comes")
struct PrewarmEntryTests {
    private func failure(_ entry: PrewarmEntry) -> RenditionError? {
        do throws(RenditionError) {
            _ = try entry.target()
            return nil
        } catch {
            return error
        }
    }

    @Test func anEntryNamesARenditionAndItsSource() throws {
        let entry = PrewarmEntry(url: "http://A.example:80/x%7Ey.gif", format: "jpg", options: ["width": "40", "frame": "2"])
        let target = try entry.target()
        #expect(target.rendition.format == .jpg && target.url.canonical == "http://a.example/x~y.gif")
        #expect(target.rendition.canonicalText.contains("width=40") && target.rendition.canonicalText.contains("frame=2"))
    }

    /// Some origins sign the exact text.
    @Test func anEntryBelowAMountOfAWebAddressKeepsItsText() throws {
        var configuration = FetchConfiguration()
        configuration.mounts = [MountRule(try SourceURL("https://media.test/"))]
        let text = "https://media.test/a.gif?sig=a%2fb"
        #expect(try PrewarmEntry(url: text).target(RenditionDefaults(), configuration.rules).url.text == text)
    }

    @Test(arguments: [
        (PrewarmEntry(url: "http://a/1.gif", format: "exe"), "format"),
        (PrewarmEntry(url: "http://a/1.gif", format: "html"), "format"),
        (PrewarmEntry(url: "http://a/1.gif", options: ["widht": "40"]), "widht"),
        (PrewarmEntry(url: "http://a/1.gif", options: ["width": "1"]), "width"),
        (PrewarmEntry(url: "http://a/1.gif", options: ["width": "40", "quality": "x"]), "quality"),
        (PrewarmEntry(url: "http://a/1.gif", options: ["frame": "1"]), "frame"),
    ])
    func theErrorNamesTheFormatOrOption(_ entry: PrewarmEntry, _ name: String) {
        guard case .invalidOption(let found, _)? = failure(entry) else {
            Issue.record("\(String(describing: failure(entry)))")
            return
        }
        #expect(found == name)
    }

    @Test func aFormatWithoutAFileIsRefusedBeforeAFetch() throws {
        #expect(
            failure(PrewarmEntry(url: "http://a/1.gif", format: "html"))
                == .invalidOption(
                    name: "format", reason: "is “html”, which is not stored; give another one, such as mp4 or json"))
        // The source itself is stored, and so are its facts.
        for format in ["gif", "original", "json", "mp4"] {
            #expect(try PrewarmEntry(url: "http://a/1.gif", format: format).target().rendition.format.rawValue == format)
        }
    }

    @Test(arguments: ["", "a.gif", "ftp://a/1.gif", "http://", "file:///etc/passwd", "http://a:99999/1.gif"])
    func aSourceThatIsNoURLOfTheWebIsRefused(_ url: String) {
        guard case .invalidSourceURL? = failure(PrewarmEntry(url: url)) else {
            Issue.record("\(url): \(String(describing: failure(PrewarmEntry(url: url))))")
            return
        }
    }

    private let defaults = RenditionDefaults()

    @Test func entriesOfTheSameRenditionHaveTheSameIdentity() {
        let plain = PrewarmEntry(url: "http://a/1.gif")
        func isSame(_ other: PrewarmEntry) -> Bool { plain.identity(defaults) == other.identity(defaults) }
        #expect(isSame(PrewarmEntry(url: "HTTP://A:80/1.gif", options: ["quality": "60"])))
        #expect(!isSame(PrewarmEntry(url: "http://a/1.gif", options: ["quality": "61"])))
        #expect(!isSame(PrewarmEntry(url: "http://a/1.gif", format: "webp")))
        #expect(!isSame(PrewarmEntry(url: "http://a/2.gif")))
    }

    @Test func theIdentityDependsOnTheDefaultsOfTheSettings() {
        let (plain, auto) = (
            PrewarmEntry(url: "http://a/1.gif"), PrewarmEntry(url: "HTTP://A/1.gif", options: ["undither": "auto"])
        )
        #expect(plain.identity(defaults) == auto.identity(defaults))
        let never = RenditionDefaults(undithers: false)
        #expect(plain.identity(never) != auto.identity(never))
        // Those of a server are unknown.
        #expect(plain.identity(nil) != auto.identity(nil))
        #expect(plain.identity(nil) == PrewarmEntry(url: "HTTP://A:80/1.gif").identity(nil))
    }

    @Test func invalidEntriesAreToldApartByTheirText() {
        let first = PrewarmEntry(url: "http://a/1.gif", options: ["nonsense": "1", "more": "2"])
        let second = PrewarmEntry(url: "http://a/1.gif", options: ["nonsense": "2", "more": "2"])
        #expect(first.identity(defaults) == first.identity(defaults))
        #expect(first.identity(defaults) != second.identity(defaults))
    }

    private func decoded(_ json: some Sequence<UInt8>) throws -> PrewarmEntry {
        try PrewarmListReader.read(Array(json), limit: 1)[0]
    }

    @Test func anEntrySurvivesEncodingWithAllOptions() throws {
        let entry = PrewarmEntry(url: "http://a/ü.gif?\"", format: "webp", options: ["width": "40", "quality": "7"])
        #expect(try decoded(JSONEncoder().encode(entry)) == entry)
    }

    @Test(arguments: [
        (#"{"url":"u","width":480}"#, "480"), (#"{"url":"u","width":"480"}"#, "480"), (#"{"url":"u","width":1.5}"#, "1.5"),
        (#"{"url":"u","width":480.0}"#, "480"),
    ])
    func aValueIsTextOrANumber(_ json: String, _ value: String) throws {
        #expect(try decoded(json.utf8).options == ["width": value])
    }

    @Test(arguments: [
        #"{"width":480}"#, #"{"url":1}"#, #"{"url":"u","width":true}"#, #"{"url":"u","width":null}"#,
        #"{"url":"u","width":[1]}"#, #"{"url":"u","format":1}"#, "[]", "\"u\"",
    ])
    func otherValuesAreRefused(_ json: String) {
        #expect(throws: (any Error).self) { try decoded(json.utf8) }
    }
}

@Suite("The body of a prewarm request is a list of objects")
struct PrewarmListReaderTests {
    private func read(_ text: String, limit: Int = 3) -> Result<[String], PrewarmList.Malformed> {
        do throws(PrewarmList.Malformed) {
            return .success(try PrewarmListReader.read(Array(text.utf8), limit: limit).map(\.url))
        } catch {
            return .failure(error)
        }
    }

    private func sentence(_ text: String, limit: Int = 3) -> String? {
        guard case .failure(let error) = read(text, limit: limit) else { return nil }
        return error.description
    }

    @Test func anEntryWithoutAFormatIsAnMP4() throws {
        #expect(try PrewarmListReader.read(Array(#"{"url":"http://a/1.gif"}"#.utf8), limit: 1).map(\.format) == ["mp4"])
    }

    @Test func asManyEntriesAsTheLimitAreAccepted() throws {
        let lines = (1...3).map { #"{"url":"http://a/\#($0).gif"}"# }
        #expect(try read(lines.joined(separator: "\n")).get().count == 3)
        #expect(try read("[" + lines.joined(separator: ",") + "]").get().count == 3)
    }

    @Test func oneMoreIsRefusedWithTheLimit() {
        let lines = (1...4).map { #"{"url":"http://a/\#($0).gif"}"# }
        #expect(sentence(lines.joined(separator: "\n")) == "The list has 4 URLs; the limit is 3.")
        #expect(sentence("[" + lines.joined(separator: ",") + "]") == "The list has 4 URLs; the limit is 3.")
    }

    /// Decoding all of them would take far more time.
    @Test func theEntriesAreCountedBeforeTheyAreDecoded() {
        let entry = #"{"url":"http://a/{\"{.gif"}"#
        #expect(sentence("[\(entry),\(entry),\(entry),{},{]") == "The list has 5 URLs; the limit is 3.")
        #expect(sentence("\(entry)\n{\n\n{\n{") == "The list has 4 URLs; the limit is 3.")
        #expect(sentence("[\(entry),\(entry),\(entry)]") == nil)
    }

    @Test func blankLinesAreNoEntries() throws {
        let lines = String(repeating: "\n", count: 100_000)
        #expect(try read(lines + #"{"url":"u"}"# + "\r\n" + lines).get() == ["u"])
    }

    @Test(arguments: ["", "\n \n", "[]", " [ ] "]) func anEmptyListIsRefused(_ text: String) {
        #expect(sentence(text) == "The list is empty.")
    }

    @Test func blankLinesCountInTheNumberOfAMalformedLine() {
        #expect(sentence("\n{\"url\":\"u\"}\n\n{\"url\":}\n")?.hasPrefix("Line 4 is not a JSON object") == true)
        #expect(sentence("{\"url\":\"u\"} {\"url\":\"v\"}")?.hasPrefix("Line 1 is not a JSON object") == true)
    }

    @Test(arguments: ["[{\"url\":\"u\"}", "[1]", "[{\"url\":\"u\"},]x", "[[]]"]) func aMalformedListIsRefused(_ text: String) {
        #expect(sentence(text)?.hasPrefix("The list is not a JSON list of objects") == true)
    }

    @Test func aListThatIsNotTextIsNamed() {
        #expect {
            try PrewarmList(Array("GIF89a".utf8) + [0, 1])
        } throws: {
            "\($0)".contains("not UTF-8 text")
        }
    }
}
