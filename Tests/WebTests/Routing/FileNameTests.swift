import Renditions
import TestSupport
import Testing

@testable import Web

@Suite("Renditions are saved under the name of their source") struct FileNameTests {
    @Test(
        arguments: [
            ("https://a.test/x/cat.gif", "cat.mp4"), ("https://a.test/cat.GIF?v=2", "cat.mp4"),
            ("https://a.test/", "animation.mp4"),
            ("https://a.test", "animation.mp4"), ("https://a.test/img.php?id=1", "img.php.mp4"),
            ("file:///srv/a%20b.gif", "a b.mp4"),
            ("s3://bucket/dir/c.webp", "c.mp4"), ("https://a.test/..%2F..%2Fetc%2Fpasswd.gif", "_.._etc_passwd.mp4"),
            ("https://a.test/a%22b%5Cc%0D%0Ad.gif", "a_b_cd.mp4"), ("https://a.test/%E2%80%AEfig.gif", "fig.mp4"),
            ("https://a.test/.htaccess.gif", "htaccess.mp4"), ("https://a.test/%FF.gif", "animation.mp4"),
            ("https://a.test/\(String(repeating: "a", count: 200)).gif", "\(String(repeating: "a", count: 120)).mp4"),
        ])
    func aNameHoldsNothingThatNamesAPlaceOrEndsAField(_ url: String, _ expected: String) {
        #expect(FileName(of: url, ["mp4"]).text == expected)
    }

    @Test func aNameOutsideASCIIIsStatedTwice() {
        #expect(FileName(of: "https://a.test/cat.gif", ["mp4"]).disposition == "inline; filename=\"cat.mp4\"")
        let name = FileName(of: "https://a.test/caf%C3%A9%20100%25.gif", ["jpg", "jpeg"])
        #expect(name.disposition == "inline; filename=\"caf_ 100_.jpg\"; filename*=UTF-8''caf%C3%A9%20100%25.jpg")
        #expect(FileName(of: "https://a.test/cat.JPEG", ["jpg", "jpeg"]).text == "cat.jpeg")
        #expect(FileName(of: "https://a.test/cat.jpeg", ["mp4"]).text == "cat.jpeg.mp4")
        #expect(FileName(of: "https://a.test/cat.APNG", ["png", "apng"]).text == "cat.apng")
    }

    @Test func aNameInAnAddressIsNoPartOfItsMeaning() throws {
        let parser = RouteParser(mounts: [:])
        let plain = try parser.parse("/mp4,width=20/https://a.test/cat.gif?v=1")
        let url = "https%3A%2F%2Fa.test%2Fcat.gif%3Fv%3D1"
        for target in [
            "/mp4,width=20/cat.mp4?url=\(url)", "/mp4/other.mp4?url=\(url)&width=20", "/mp4/caf%C3%A9.MP4?width=20&url=\(url)",
        ] {
            #expect(try parser.parse(target).route == plain.route, "\(target)")
            #expect(try parser.parse(target).credentials?.source == "https://a.test/cat.gif?v=1")
        }
        #expect(try parser.parse("/awebp/a.webp?url=\(url)").route == parser.parse("/awebp?url=\(url)").route)
        for target in ["/mp4/cat.gif?url=\(url)", "/mp4/a/cat.mp4?url=\(url)", "/mp4/cat?url=\(url)"] {
            #expect("\(target)") { try parser.parse(target) } throws: { ($0 as? Problem)?.code == "not_found" }
        }
        #expect(throws: Problem.badOption("url", "is given twice")) {
            try parser.parse("/mp4/https%3A%2F%2Fa.test%2Fcat.mp4?url=\(url)")
        }
    }
}
