import Testing

@testable import Web

@Suite("A URL of this server is recognized in any spelling") struct OwnAddressTests {
    @Test(
        arguments: [
            ("https://gifs.example/mp4/https://a.test/A.gif", "/mp4/https://a.test/A.gif"),
            ("HTTPS://GIFS.Example/mp4/https://a.test/A.gif?B#c", "/mp4/https://a.test/A.gif?B"),
            ("https://gifs.example:443/a/../b%7e", "/a/../b%7e"), ("http://gifs.example/a", "/a"),
            ("http://gifs.example:80/a", "/a"), ("https://gifs.example./a", "/a"), ("https://gifs.example/#a", "/"),
            ("https://gifs.example/", "/"), ("https://gifs.example//a", "//a"), ("https://gifs.example/a#", "/a"),
        ])
    func theTargetIsAsWritten(_ url: String, _ target: String) {
        #expect(OwnAddress.target(of: url, at: "https://gifs.example") == target)
    }

    @Test(
        arguments: [
            "", "https", "https:", "https://", "https:///a", "https:aé", "https://gifs.example", "https://gifs.example?/a",
            "https://gifs.example#/a", "https://gifs.example:8443/a", "http://gifs.example:443/a", "https://gifs.example.org/a",
            "https://x.gifs.example/a", "https://a@gifs.example/a", "https://gifs.example@a.test/a",
            "https://gifs.example\\a.test/a", "ftp://gifs.example/a", "//gifs.example/a", "/a",
        ])
    func otherURLsHaveNoTarget(_ url: String) {
        #expect(OwnAddress.target(of: url, at: "https://gifs.example") == nil)
    }

    @Test(
        arguments: [
            ("http://bücher.example:8080/x/a", "/a"), ("http://xn--bcher-kva.example:8080/x/a", "/a"),
            ("https://bücher.example:8080/x/a", "/a"), ("http://bücher.example/x/a", nil),
            ("http://bücher.example:8080/xa", nil), ("http://bücher.example:8080/X/a", nil),
            ("http://bücher.example:8080/x", nil),
        ] as [(String, String?)])
    func theBaseMayHaveAPortAndAPath(_ url: String, _ target: String?) {
        #expect(OwnAddress.target(of: url, at: "http://xn--bcher-kva.example:8080/x") == target)
    }
}
