import Sandbox
import Testing

@testable import Web

@Suite("Request fields are read as their standards say") struct RequestFieldTests {
    @Test func separatorsInQuotesDoNotSeparateElements() {
        let elements = ListField.elements(["A;x=\"1,2;3\" ; Y , b", "c;z=\"\\\"\""])
        #expect(
            elements == [
                .init(name: "a", parameters: ["x=\"1,2;3\"", "y"]), .init(name: "b", parameters: []),
                .init(name: "c", parameters: ["z=\"\\\"\""]),
            ])
    }

    @Test(arguments: [
        ("video/mp4", true), ("VIDEO/MP4;codecs=\"a, b\"", true), ("image/avif, video/*;q=0.5, */*;q=0.1", true),
        ("image/webp,image/avif,video/*;q=0.8,image/png,image/*;q=0.8,*/*;q=0.5", true),
        ("video/mp4;q=0.8, image/gif;q=0.3, image/*", true), ("video/mp4;q=1.000, image/gif", true),
        ("image/gif, video/mp4;q=0.5", false), ("image/*;q=0.9, video/*;q=0.8", false),
        ("video/mp4;q=0.4, */*;q=0.5", false), ("video/mp4;q=0, video/*", false), ("video/mp4; q=0.000", false),
        ("*/*", false), ("image/*", false), ("", false),
    ]) func theWeightsOfAcceptDecideBetweenVideoAndGIF(_ accept: String, _ expected: Bool) {
        #expect((AcceptField([accept]).preference(offersSequence: false) == .video) == expected)
    }

    @Test(arguments: [
        ("video/mp4;q=", true), ("video/mp4;q=x", true), ("video/mp4;q=-1", true), ("video/mp4;q=9", true),
        ("image/gif, video/mp4;q=2", true),
    ]) func aMalformedWeightCountsAsOneAndALargerOneIsCapped(_ accept: String, _ expected: Bool) {
        #expect((AcceptField([accept]).preference(offersSequence: false) == .video) == expected)
    }

    @Test func severalAcceptFieldsAreOneList() {
        let preferences = [["image/gif;q=0.5", "video/mp4"], ["image/gif", "video/mp4;q=0.5"], []].map {
            AcceptField($0).preference(offersSequence: true)
        }
        #expect(preferences == [.video, .original, .original] && !AcceptField([]).prefersPage)
    }

    @Test(arguments: [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true), ("text/*", true),
        ("text/html;q=0.5, application/json", false), ("application/json", false), ("*/*", false), ("", false),
        ("text/html;q=0", false), ("text/html;q=0.5, application/problem+json;q=0.6", false),
        ("text/html, application/*;q=0.9", true),
    ]) func aPageIsPreferredOnlyIfAcceptNamesHTML(_ accept: String, _ expected: Bool) {
        #expect(AcceptField([accept]).prefersPage == expected)
    }

    @Test(
        arguments: [
            (nil, 3), ("", 3), ("u=0", 0), ("u=7, i", 7), ("i, u=5", 5), ("u=5;x=1", 5), ("u=1,u=6", 6), ("u=9", 3),
            ("u=-1", 3), ("u=a", 3), ("x=1", 3),
        ] as [(String?, Int)])
    func theLastValidUrgencyOfPriorityCounts(_ value: String?, _ level: Int) {
        #expect(PriorityField.urgency(value).level == level)
    }

    @Test(arguments: [
        (["gifreel"], true), (["GIFREEL"], true), (["a.example, gifreel"], true),
        (["a.example;v=\"1,gifreel\", gifreel;x=1"], true),
        (["other", "gifreel"], true), ([" gifreel\t; a=b"], true),
        ([], false), ([""], false), (["gifreel2"], false), (["a;b=gifreel"], false), (["a;b=\"x, gifreel, y\""], false),
        (["a;b=\"\\\", gifreel, \""], false), (["gifreel.example:80"], false),
    ])
    func aLoopIsFoundOnlyIfAnElementOfCDNLoopIsTheName(values: [String], expected: Bool) {
        #expect(LoopToken("Gifreel").occurs(in: values) == expected)
    }

    @Test func parametersOfAFieldAreReadWithAndWithoutQuotes() {
        let field = FieldParameters(#"Form-Data ; A=1;b="x;y" ; c="a\"b\c" ;flag; A=2;="#)
        #expect(field.value == "form-data")
        #expect(field.parameters["a"] == "1" && field.parameters["b"] == "x;y" && field.parameters["c"] == #"a"b\c"#)
        #expect(field.parameters["flag"] == nil)
        #expect(FieldParameters("").value.isEmpty && FieldParameters("a=\"open").parameters.isEmpty)
        #expect(FieldParameters("v;a=\"open").parameters["a"] == "open")
    }
}
