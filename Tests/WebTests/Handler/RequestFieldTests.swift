import HTTP
import Sandbox
import Testing

@testable import Web

@Suite("Request fields are read as their standards say") struct RequestFieldTests {
    @Test(arguments: [
        ("video/mp4", true), ("VIDEO/MP4;codecs=\"a, b\"", true), ("image/avif, video/*;q=0.5, */*;q=0.1", true),
        ("image/webp,image/avif,video/*;q=0.8,image/png,image/*;q=0.8,*/*;q=0.5", true),
        ("video/mp4;q=0.8, image/gif;q=0.3, image/*", true), ("video/mp4;q=1.000, image/gif", true),
        ("video/mp4 ; Q = 0.9, image/gif;q=0.5", true),
        ("video/mp4;q=0.33333, image/gif;q=0.333", true), ("video/mp4;q=0.9;q=0, image/gif;q=0.5", true),
        ("image/gif, video/mp4;q=0.5", false), ("image/*;q=0.9, video/*;q=0.8", false),
        ("video/mp4;q=0.4, */*;q=0.5", false), ("video/mp4;q=0, video/*", false), ("video/mp4; q=0.000", false),
        ("*/*", false), ("image/*", false), ("", false),
    ]) func theWeightsOfAcceptDecideBetweenVideoAndGIF(_ accept: String, _ expected: Bool) {
        #expect((AcceptField([accept]).preference(offersAVIF: false, offersWebP: false) == .video) == expected)
    }

    @Test(arguments: [
        ("video/mp4;q=", true), ("video/mp4;q=x", true), ("video/mp4;q=-1", true), ("video/mp4;q=9", true),
        ("image/gif, video/mp4;q=2", true),
    ]) func aMalformedWeightCountsAsOneAndALargerOneIsCapped(_ accept: String, _ expected: Bool) {
        #expect((AcceptField([accept]).preference(offersAVIF: false, offersWebP: false) == .video) == expected)
    }

    @Test func severalAcceptFieldsAreOneList() {
        let preferences = [["image/gif;q=0.5", "video/mp4"], ["image/gif", "video/mp4;q=0.5"], []].map {
            AcceptField($0).preference(offersAVIF: true, offersWebP: true)
        }
        #expect(preferences == [.video, .original, .original] && !AcceptField([]).prefersPage)
    }

    @Test(arguments: [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true), ("text/*", true),
        ("text/html;q=0.5, application/json", false), ("application/json", false), ("*/*", false), ("", false),
        ("text/html;q=0", false), ("text/html;q=0.5, application/problem+json;q=0.6", false),
        ("text/html, application/*;q=0.9", true), ("text/html;q=0.5, */*", false),
        ("text/html;q=0.5, */*, application/*;q=0.1", true),
    ]) func aPageIsPreferredOnlyIfAcceptNamesHTML(_ accept: String, _ expected: Bool) {
        #expect(AcceptField([accept]).prefersPage == expected)
    }

    @Test(arguments: [
        ("text/event-stream", true), ("application/json, text/event-stream", true), ("*/*", false), ("", false),
        ("text/event-stream, */*", true), ("application/json, text/event-stream;q=0.5", false),
        ("text/event-stream;q=0.5, */*", false), ("text/event-stream;q=0", false),
    ]) func eventsArePreferredIfAcceptNamesThemWithTheWeightOfJSON(_ accept: String, _ expected: Bool) {
        #expect(AcceptField([accept]).prefersEvents == expected)
    }

    @Test(
        arguments: [
            ("", 3), ("U=0", 3), ("u=05", 5), ("u=0;a=\"x, u=6\"", 0), ("a=\"x, u=6\", u=2", 2), ("u=0", 0), ("u=7, i", 7),
            ("i, u=5", 5), ("u=5;x=1", 5), ("u=1,u=6", 6), ("u=9", 3),
            ("u=-1", 3), ("u=a", 3), ("x=1", 3),
        ] as [(String, Int)])
    func theLastValidUrgencyOfPriorityCounts(_ value: String, _ level: Int) {
        #expect(withBytes(of: value) { PriorityField.urgency($0) }?.level ?? 3 == level)
    }

    @Test(arguments: [
        (["gifreel"], true), (["GIFREEL"], true), (["a.example, gifreel"], true),
        (["a.example;v=\"1,gifreel\", gifreel;x=1"], true),
        (["other", "gifreel"], true), ([" gifreel\t; a=b"], true),
        ([], false), ([""], false), (["gifreel2"], false), (["a;b=gifreel"], false), (["a;b=\"x, gifreel, y\""], false),
        (["a;b=\"\\\", gifreel, \""], false), (["gifreel.example:80"], false),
    ])
    func aLoopIsFoundOnlyIfAnElementOfCDNLoopIsTheName(values: [String], expected: Bool) {
        #expect(values.contains { withBytes(of: $0) { FieldList($0).names("Gifreel") } } == expected)
    }

    @Test(
        arguments: [
            ([], false), (["*/*"], false), (["text/plain"], false), (["application/openmetrics-text"], true),
            (["application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"], true),
            (["application/openmetrics-text;q=0, text/plain"], false),
            (["application/openmetrics-text;q=0.2, text/plain;q=0.9"], false), (["application/openmetrics-text;q=0"], false),
            (["text/plain;q=0.5,application/openmetrics-text;q=0.5"], true),
        ] as [([String], Bool)])
    func openMetricsIsPreferredIfAcceptNamesItWithTheWeightOfPlainText(_ values: [String], _ expected: Bool) {
        #expect(AcceptField(values).prefersOpenMetrics == expected)
    }
}
