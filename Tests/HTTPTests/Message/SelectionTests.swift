import Testing

@testable import HTTP

@Suite("Preconditions and ranges select a response") struct SelectionTests {
    private static let modified = 784_111_777
    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let earlier = "Sun, 06 Nov 1994 08:49:36 GMT"
    private static let later = "Mon, 07 Nov 1994 08:49:37 GMT"

    private func select(_ fields: [String], method: String = "GET", now: Int = 800_000_000) throws -> Selection {
        let text = fields.joined(separator: "\r\n")
        return try withHead(text, method: method) { head in
            Selection(
                head: head, validators: Validators(entityTag: "\"a,b\"", lastModified: Self.modified), length: 100, now: now)
        }
    }

    private static let cases: [([String], Selection)] = [
        ([], .whole),
        (["If-None-Match: \"a,b\""], .notModified),
        (["If-None-Match: W/\"a,b\""], .notModified),
        (["If-None-Match: \"x\", \"a,b\" , \"y\""], .notModified),
        (["If-None-Match: \"x\"", "If-None-Match: \"a,b\""], .notModified),
        (["If-None-Match: *"], .notModified),
        (["If-None-Match: \"x\""], .whole),
        (["If-None-Match: a,b"], .whole),
        (["If-None-Match: \"x\"", "If-Modified-Since: \(date)"], .whole),
        (["If-Modified-Since: \(date)"], .notModified),
        (["If-Modified-Since: \(later)"], .whole),
        (["If-Modified-Since: \(earlier)"], .whole),
        (["If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT"], .notModified),
        (["If-Modified-Since: Sun Nov  6 08:49:37 1994"], .notModified),
        (["If-Modified-Since: yesterday"], .whole),
        (["If-Match: \"a,b\""], .whole),
        (["If-Match: *"], .whole),
        (["If-Match: W/\"a,b\""], .preconditionFailed),
        (["If-Match: \"x\""], .preconditionFailed),
        (["If-Match: \"x\"", "If-None-Match: \"a,b\""], .preconditionFailed),
        (["If-Unmodified-Since: \(date)"], .whole),
        (["If-Unmodified-Since: \(earlier)"], .preconditionFailed),
        (["If-Unmodified-Since: rubbish"], .whole),
        (["If-Match: \"a,b\"", "If-Unmodified-Since: \(earlier)"], .whole),
        (["Range: bytes=0-9"], .part(0..<10)),
        (["Range: bytes=0-9,20-29"], .parts([0..<10, 20..<30])),
        (["Range: bytes=100-"], .rangeNotSatisfiable),
        (["Range: bytes=0-9", "If-None-Match: \"a,b\""], .notModified),
        (["Range: bytes=0-9", "If-Match: \"x\""], .preconditionFailed),
        (["Range: bytes=0-9", "If-Range: \"a,b\""], .part(0..<10)),
        (["Range: bytes=0-9", "If-Range: W/\"a,b\""], .whole),
        (["Range: bytes=0-9", "If-Range: \"x\""], .whole),
        (["Range: bytes=100-", "If-Range: \"x\""], .whole),
        (["Range: bytes=0-9", "If-Range: \(date)"], .part(0..<10)),
        (["Range: bytes=0-9", "If-Range: \(later)"], .whole),
        (["Range: bytes=0-9", "If-Range: \(earlier)"], .whole),
        (["If-Range: \"x\""], .whole),
    ]

    @Test(arguments: cases)
    func preconditionsSelectTheResponse(fields: [String], expected: Selection) throws {
        #expect(try select(fields) == expected)
    }

    @Test func datesHaveNoEffectOnARepresentationWithoutOne() throws {
        for field in ["If-Modified-Since", "If-Unmodified-Since", "Range: bytes=0-9\r\nIf-Range"] {
            let selection = try withHead("\(field): \(Self.date)") { head in
                Selection(
                    head: head, validators: Validators(entityTag: "\"a\"", lastModified: nil), length: 100, now: 800_000_000)
            }
            #expect(selection == .whole, "\(field)")
        }
    }

    @Test func rangesApplyToGETOnly() throws {
        #expect(try select(["Range: bytes=0-9"], method: "HEAD") == .whole)
        #expect(try select(["If-None-Match: \"a,b\""], method: "HEAD") == .notModified)
    }

    @Test func dateOfTheCurrentSecondIsNoStrongValidator() throws {
        let fields = ["Range: bytes=0-9", "If-Range: \(Self.date)"]
        #expect(try select(fields, now: Self.modified) == .whole)
        #expect(try select(fields, now: Self.modified + 1) == .part(0..<10))
    }

    @Test(arguments: [
        ("\"a\"", true), ("\"\"", true), ("a", false), ("W/\"a\"", false), ("\"a\"b\"", false), ("\"a b\"", false),
        ("\"\u{7F}\"", false), ("\"!é\"", true), ("\"", false),
    ])
    func strongTagsAreRecognized(tag: String, isStrong: Bool) {
        #expect(EntityTag.isStrong(tag) == isStrong)
    }
}
