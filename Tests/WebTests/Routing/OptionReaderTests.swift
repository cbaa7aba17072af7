import Fetch
import Media
import Renditions
import Testing

@testable import Web

@Suite("Options are collected from path, query and form") struct OptionReaderTests {
    private func problem(_ body: () throws(Problem) -> Void) -> Problem? {
        do throws(Problem) {
            try body()
            return nil
        } catch {
            return error
        }
    }

    @Test func aPairIsPercentDecodedAfterItWasSplit() throws {
        var reader = OptionReader(format: .mp4)
        try reader.readPair("width=%31%30%30")
        try reader.readPair("qualit%79=7")
        #expect(try reader.finish().canonicalText == "mp4,quality=7,width=100")
        #expect(
            reader.credentials.options == [
                QueryItem(name: "width", value: "100"), QueryItem(name: "quality", value: "7"),
            ])
    }

    @Test(arguments: ["", "width", "=", "width=%zz", "%zz=1", "width=1=2", "width="])
    func aPairThatIsNoneIsRefused(_ text: String) {
        var reader = OptionReader(format: .mp4)
        let refusal = problem { () throws(Problem) in try reader.readPair(text[...]) }
        #expect(refusal?.status == 400)
    }

    @Test(arguments: [
        ("start=50%", "is not percent-encoded correctly"), ("%zz=1", "is not percent-encoded correctly"),
        ("title=%E9", "is not percent-encoded correctly"), ("width", "is not of the form name=value"),
    ])
    func theRefusalOfAPairSaysWhatIsWrongWithIt(_ text: String, _ reason: String) {
        var reader = OptionReader(format: .mp4)
        #expect(problem { () throws(Problem) in try reader.readPair(text[...]) } == .badOption(text, reason))
    }

    @Test func anOptionMayBeGivenOnceWhereverItStands() throws {
        var reader = OptionReader(format: .mp4)
        try reader.readPair("width=10")
        let again = problem { () throws(Problem) in _ = try reader.readQuery([QueryItem(name: "width", value: "10")]) }
        #expect(again == .badOption("width", "is given twice"))
        for name in ["sig", "expires"] {
            try reader.read(name, "1")
            let twice = problem { () throws(Problem) in try reader.read(name, "1") }
            #expect(twice == .badOption(name, "is given twice"))
        }
    }

    @Test(
        arguments: [
            ("a\r\n  b\tc\u{2028}d\u{85}", "a b c d"), (" \n ", nil), ("", nil), ("\u{a0}\u{200f} \u{feff}", nil),
            ("«\u{a0}a\u{202f}»", "«\u{a0}a\u{202f}»"),
            ("👨\u{200d}👩 \u{200f}א", "👨\u{200d}👩 \u{200f}א"),
        ] as [(String, String?)])
    func aTitleHasOneLine(_ text: String, _ title: String?) throws {
        var reader = OptionReader(format: .html)
        try reader.read("title", text)
        #expect(reader.title == title)
    }

    @Test func theSignatureIsNotPartOfWhatItSigns() throws {
        var reader = OptionReader(format: .jpg)
        for (name, value) in [("sig", "abc"), ("expires", "17"), ("frame", "2")] { try reader.read(name, value) }
        #expect(reader.credentials.signature == "abc" && reader.credentials.expires == 17)
        #expect(reader.credentials.options.map(\.name) == ["expires", "frame"])
        #expect(try reader.finish().canonicalText == "jpg,frame=2")
    }

    @Test(arguments: ["", "-1", "1.5", "x", "+1", " 1", "1234567890123456", "١"]) func aTimeIsAWholeNumberOfSeconds(
        _ text: String
    ) {
        var reader = OptionReader(format: .mp4)
        let problem = problem { () throws(Problem) in try reader.read("expires", text) }
        #expect(problem?.code == "bad_option" || text.isEmpty && problem != nil, "\(text)")
    }

    @Test func aTimeOfFifteenDigitsIsAccepted() throws {
        var reader = OptionReader(format: .mp4)
        try reader.read("expires", "999999999999999")
        #expect(reader.credentials.expires == 999_999_999_999_999)
    }

    @Test func theAddressOfTheSourceIsNoOption() throws {
        var reader = OptionReader(format: .mp4)
        let url = try reader.readQuery([QueryItem(name: "url", value: "x"), QueryItem(name: "fps", value: "5")])
        #expect(url == "x" && reader.credentials.options.map(\.name) == ["fps"])
        let twice = problem { () throws(Problem) in
            _ = try reader.readQuery(["a", "b"].map { QueryItem(name: "url", value: $0) })
        }
        #expect(twice == .badOption("url", "is given twice"))
    }

    @Test func combinationsAreCheckedAtTheEnd() throws {
        var reader = OptionReader(format: .mp4)
        try reader.read("fit", "cover")
        try reader.read("width", "10")
        let alone = problem { () throws(Problem) in _ = try reader.finish() }
        #expect(alone?.detail.contains("“fit”") == true)
        try reader.read("height", "10")
        #expect(try reader.finish().canonicalText == "mp4,fit=cover,height=10,width=10")
    }

    @Test func theAnswersToAMissDependOnTheFormat() throws {
        var page = OptionReader(format: .html)
        try page.read("on_miss", "original")
        #expect(page.onMiss == .original && page.credentials.options == [QueryItem(name: "on_miss", value: "original")])
        #expect(try page.finish().canonicalText == "html")
        var other = OptionReader(format: .html)
        let unknown = problem { () throws(Problem) in try other.read("on_miss", "later") }
        #expect(unknown == .badOption("on_miss", "must be wait or original"))
        var video = OptionReader(format: .mp4)
        let misplaced = problem { () throws(Problem) in try video.read("on_miss", "original") }
        #expect(misplaced == .badOption("on_miss", "must be wait or queue"))
        var poster = OptionReader(format: .jpg)
        try poster.read("on_miss", "queue")
        #expect(poster.onMiss == .queue)
        #expect(try poster.finish().canonicalText == "jpg")
        for name in ["on_miss", "on_error"] {
            var facts = OptionReader(format: .json)
            let unused = problem { () throws(Problem) in try facts.read(name, "wait") }
            #expect(unused == .badOption(name, "has no effect on json"))
        }
    }

    @Test func theAnswerToALargerRenditionIsAChoiceOfAnimations() throws {
        var video = OptionReader(format: .mp4)
        try video.read("on_larger", "problem")
        #expect(video.onLarger == .problem && video.credentials.options == [QueryItem(name: "on_larger", value: "problem")])
        #expect(try video.finish().canonicalText == "mp4")
        var other = OptionReader(format: .output(.avif))
        let unknown = problem { () throws(Problem) in try other.read("on_larger", "gif") }
        #expect(unknown == .badOption("on_larger", "must be send or problem"))
        for format in [Rendition.Format.jpg, .html, .json] {
            var reader = OptionReader(format: format)
            let unused = problem { () throws(Problem) in try reader.read("on_larger", "problem") }
            #expect(unused == .badOption("on_larger", "has no effect on \(format.rawValue)"))
        }
    }

    @Test func namesOfOptionsAreKnown() {
        for name in ["sig", "expires", "width", "loops", "frame", "on_miss", "on_larger"] {
            #expect(OptionReader.isOption(name), "\(name)")
        }
        for name in ["url", "v", "", "Width", "sig "] { #expect(!OptionReader.isOption(name), "\(name)") }
    }
}

@Suite("A mount stands for an origin and its open paths") struct MountAddressTests {
    private func mount(_ origin: String, allow: [String] = []) throws -> Mount {
        Mount(origin: try SourceURL(origin), allow: allow)
    }

    @Test func theBaseEndsWithASlash() throws {
        #expect(try mount("https://a.test").rule.base == "https://a.test/")
        #expect(try mount("https://a.test/up").rule.base == "https://a.test/up/")
        #expect(try mount("https://a.test/up/").rule.base == "https://a.test/up/")
    }

    @Test func onlyTheAllowedPathsAreServed() throws {
        let open = try mount("https://a.test/up/").rule
        let narrow = try mount("https://a.test/up/", allow: ["cats/", "dogs/x*"]).rule
        for (url, isOpen, isNarrow) in [
            ("https://a.test/up/cats/1.gif", true, true), ("https://a.test/up/dogs/xy.gif", true, true),
            ("https://a.test/up/dogs/y.gif", true, false), ("https://a.test/up/1.gif", true, false),
            ("https://a.test/cats/1.gif", false, false), ("http://a.test/up/cats/1.gif", false, false),
            ("https://b.test/up/cats/1.gif", false, false),
        ] {
            let source = try SourceURL(url)
            #expect(open.serves(source) == isOpen, "\(url)")
            #expect(narrow.serves(source) == isNarrow, "\(url)")
        }
    }

    @Test func aTargetRepeatsWhatWasForwardedBeforeItsOptions() {
        let options = [QueryItem(name: "width", value: "10"), QueryItem(name: "sig", value: "s")]
        #expect(MountAddress(stem: "/m/a").target("mp4") == "/m/a.mp4")
        #expect(MountAddress(stem: "/m/a").target("jpg", options) == "/m/a.jpg?width=10&sig=s")
        let forwarded = MountAddress(stem: "/m/a", forwarded: ["v=1", "w=%20"])
        #expect(forwarded.source == "/m/a.gif?v=1&w=%20")
        #expect(forwarded.target("mp4", options) == "/m/a.mp4?v=1&w=%20&width=10&sig=s")
    }

    @Test func termsThatDifferFromTheUsualOnesAreNotPlain() throws {
        #expect(ResponseTerms.plain.isPlain)
        for terms in [ResponseTerms(maxAge: 1), ResponseTerms(expires: 1), ResponseTerms(varies: true)] {
            #expect(!terms.isPlain)
        }
        var mount = try mount("https://a.test/")
        mount.maxAge = 9
        let parsed = try RouteParser(mounts: ["m": mount]).parse("/m/a.mp4?expires=5")
        #expect(parsed.terms == ResponseTerms(maxAge: 9, expires: 5, varies: false) && parsed.source?.host == "a.test")
        #expect(try RouteParser(mounts: [:]).parse("/healthz").source == nil)
    }
}
