import TestSupport
import Testing

@testable import Store

@Suite("XML is read as far as S3 uses it, and everything else is refused") struct XMLTests {
    private func element(_ text: String) -> XMLElement? { XMLElement(document: Array(text.utf8)) }

    @Test func elementsTextAndReferencesAreRead() throws {
        let root = try #require(
            element(
                """
                \u{FEFF}<?xml version="1.0" encoding="UTF-8"?>
                <!-- a comment --><List xmlns="http://s3.amazonaws.com/doc/2006-03-01/" a='>'>
                <Key>a&amp;b&lt;&gt;&quot;&apos;&#233;&#xE9;é</Key><Empty/><x:Key >second</x:Key><!-- <Key> --></List>

                """))
        #expect(root.name == "List")
        #expect(root.text("Key") == "a&b<>\"'ééé")
        #expect(root.children.map(\.name) == ["Key", "Empty", "Key"])
        #expect(root.text("Empty") == "")
        #expect(root.text("Other") == nil)
    }

    @Test(arguments: [
        "", "text", "<a>", "<a></b>", "<a/><b/>", "<a", "<a b></a>", "<a b=c></a>", "<a b='<'></a>", "<a>&unknown;</a>",
        "<a>&#0;</a>",
        "<a>&#xD800;</a>", "<a>&</a>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "<a><![CDATA[b]]></a>", "<a><!-- </a>",
        "<?xml",
        "<html><body>Bad gateway<br></body></html>", "<a>\u{0}</b>",
    ])
    func otherTextIsRefused(_ text: String) {
        #expect(element(text) == nil)
    }

    @Test func invalidUTF8IsRefused() {
        #expect(XMLElement(document: Array("<a>".utf8) + [0xFF] + Array("</a>".utf8)) == nil)
    }

    @Test func nestingIsBounded() {
        func nested(_ depth: Int) -> String {
            String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
        }
        #expect(element(nested(30)) != nil)
        #expect(element(nested(100_000)) == nil)
    }

    /// Each reading ends, with an element or without one.
    @Test func damagedDocumentsDoNoHarm() {
        let document = Array(
            "<?xml version=\"1.0\"?><ListBucketResult><Contents a=\"b\"><Key>x&amp;y&#65;</Key></Contents></ListBucketResult>"
                .utf8)
        var numbers = SeededNumbers(seed: 7)
        var readable = 0
        for _ in 0..<20_000 {
            var bytes = document
            for _ in 0...Int(numbers.next() % 3) {
                bytes[Int(numbers.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: numbers.next())
            }
            bytes.removeLast(Int(numbers.next() % 4) * Int(numbers.next() % 10))
            if XMLElement(document: bytes) != nil { readable += 1 }
        }
        #expect(readable > 0)
    }

    @Test func aPageOfAListIsRead() throws {
        let root = try #require(
            element(
                """
                <ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>a+b/=</NextContinuationToken>
                <Contents><Key>p/aa/b</Key><LastModified>2026-11-22T06:44:00.707Z</LastModified><Size>6</Size></Contents>
                <Contents><Key>c</Key><LastModified>1970-01-01T00:00:00Z</LastModified><Size>0</Size></Contents></ListBucketResult>
                """))
        let page = try #require(S3ListPage(root))
        #expect(page.nextToken == "a+b/=")
        #expect(page.entries.map(\.key) == ["p/aa/b", "c"])
        #expect(page.entries.map(\.modified) == [1_795_329_840, 0])
        #expect(page.entries.map(\.length) == [6, 0])
    }

    @Test(arguments: [
        "<Other/>", "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size><LastModified>1970-01-01T00:00:00Z</LastModified></Contents></ListBucketResult>",
    ])
    func aPageWithMissingOrImpossibleValuesIsRefused(_ text: String) throws {
        #expect(S3ListPage(try #require(element(text))) == nil)
    }

    @Test(arguments: [
        ("2000-02-29T12:34:56Z", 951_827_696 as Int64?), ("1999-12-31T23:59:60.5Z", 946_684_800), ("2026-13-01T00:00:00Z", nil),
        ("2026-11-22 06:44:00Z", nil), ("2026-11-22T06:44:00", nil), ("20x6-11-22T06:44:00Z", nil), ("", nil),
    ])
    func timesAreRead(_ text: String, _ seconds: Int64?) {
        #expect(S3ListPage.seconds(iso8601: text) == seconds)
    }
}
