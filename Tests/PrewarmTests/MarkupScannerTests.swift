import Testing

@testable import Prewarm

@Suite("Start tags are found in any markup")
struct MarkupScannerTests {
    private func elements(_ text: String) -> [MarkupScanner.Element] { Array(MarkupScanner(Array(text.utf8))) }

    private func attributes(_ text: String) -> [String: String] { elements(text).first?.attributes ?? [:] }

    @Test func namesAreInLowerCaseAndKeepTheirPrefix() {
        #expect(elements("<IMAGE:Loc><Br/><a>").map(\.name) == ["image:loc", "br", "a"])
    }

    @Test(arguments: [
        ("<img src=\"a b\">", "a b"), ("<img src='a\"b'>", "a\"b"), ("<img src=a/b>", "a/b"), ("<img src = a >", "a"),
        ("<img\n\tSRC\n=\n'a'>", "a"), ("<img/src=a>", "a"), ("<img src=a src=b>", "a"), ("<img src>", ""),
        ("<img alt=x>", nil), ("<img src=\"a>b\">", "a>b"),
    ])
    func anAttributeHasItsFirstValueInAnyForm(_ text: String, _ value: String?) {
        #expect(attributes(text)["src"] == value)
    }

    @Test(arguments: [
        ("&amp;&lt;&gt;&quot;&apos;", "&<>\"'"), ("&#65;&#x42;&#X43;", "ABC"), ("&#x1F600;", "😀"), ("&nbsp;", "&nbsp;"),
        ("&amp", "&amp"), ("a&b=c", "a&b=c"), ("&#xD800;", "&#xD800;"), ("&#99999999;", "&#99999999;"), ("&;", "&;"),
        ("&&amp;", "&&"), ("&#;", "&#;"), ("&amp;amp;", "&amp;"),
        ("&#0;", "&#0;"), ("&#128;&#x9F;", "&#128;&#x9F;"), ("a&#160;b", "a\u{A0}b"), ("&#+65;&#x-0;", "&#+65;&#x-0;"),
    ])
    func characterReferencesAreDecodedAndOtherAmpersandsStay(_ text: String, _ decoded: String) {
        #expect(attributes("<a href=\"\(text)\">")["href"] == decoded)
        #expect(elements("<loc>\(text)</loc>").first?.text == decoded)
    }

    @Test func commentsInstructionsAndEndTagsAreNoElements() {
        let text = "<?xml version='1.0'?><!doctype html><!-- <img src=a.gif> --></p><![CDATA[<b>]]><i>"
        #expect(elements(text).map(\.name) == ["i"])
    }

    @Test(arguments: ["script", "style"]) func rawTextHasNoElements(_ name: String) {
        let text = "<\(name)>if (a<b) '<img src=a.gif>'</\(name.uppercased())><p>"
        #expect(elements(text).map(\.name) == [name, "p"])
    }

    @Test func theTextOfAnElementJoinsCharacterDataWithoutSurroundingSpaces() {
        #expect(elements("<loc>\n a<![CDATA[<&amp;]]>b \n</loc>").first?.text == "a<&amp;b")
    }

    @Test(arguments: ["a < b", "<3", "< p>", "<>", "<=>"]) func aSignThatBeginsNoTagIsText(_ text: String) {
        #expect(elements(text + "<i>").map(\.name) == ["i"])
    }

    @Test func anyTextEndsAndAnyPrefixOfMarkupToo() {
        let whole = Array("<a href='x&#x41;'><![CDATA[q]]></a><!-- c --><script>s</script><img src=y srcset=\"u 1x\">".utf8)
        for length in 0...whole.count {
            #expect(Array(MarkupScanner(Array(whole.prefix(length)))).count <= 3)
        }
        var generator = SystemRandomNumberGenerator()
        let alphabet = Array("<>/!-[]&;#x='\" aSCRIPTscript\n".utf8)
        for _ in 0..<2000 {
            let text = (0..<40).map { _ in alphabet.randomElement(using: &generator) ?? 0 }
            let tags = text.filter { $0 == UInt8(ascii: "<") }.count
            #expect(Array(MarkupScanner(text)).count <= tags, "\(String(decoding: text, as: UTF8.self))")
        }
    }
}
