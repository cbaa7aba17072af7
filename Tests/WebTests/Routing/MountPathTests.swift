import Media
import Renditions
import Testing

@testable import Web

@Suite("A mount's path names a source and a format") struct MountPathTests {
    private func named(_ path: String, _ sources: [SourceFormat]) -> String? {
        MountPath(path[...], sources: sources).map { "\($0.source) \($0.format.rawValue)\($0.isSource ? " itself" : "")" }
    }

    private static let all: [SourceFormat] = [.gif, .apng, .webp]

    @Test(arguments: [
        ("/x/a.gif", "/x/a.gif mp4 itself"), ("/a.GIF", "/a.GIF mp4 itself"), ("/a.mp4", "/a.gif mp4"),
        ("/a.webp", "/a.gif webp"),
        ("/a.png", "/a.gif png"), ("/a.webp.mp4", "/a.webp.gif mp4"), ("/a.gif.jpg", "/a.gif jpg"),
        ("/a.GIF.jpg", "/a.GIF jpg"), ("/a.gif.gif", "/a.gif gif"), ("/x/a.b.gif", "/x/a.b.gif mp4 itself"),
    ])
    func withGIFsOnlyTheExtensionIsReplacedOrAppended(_ path: String, _ expected: String) {
        #expect(named(path, [.gif]) == expected)
    }

    @Test(arguments: [
        ("/x/a.gif", "/x/a.gif mp4 itself"), ("/a.webp", "/a.webp mp4 itself"), ("/a.PNG", "/a.PNG mp4 itself"),
        ("/a.apng", "/a.apng mp4 itself"), ("/a.webp.mp4", "/a.webp mp4"), ("/a.png.webp", "/a.png webp"),
        ("/a.png.webp.mp4", "/a.png.webp mp4"),
        ("/a.png.jpg", "/a.png jpg"), ("/a.gif.jpg", "/a.gif jpg"), ("/a.mp4", "/a.gif mp4"), ("/a.b.json", "/a.b.gif json"),
        ("/a.gif.gif", "/a.gif gif"), ("/a.webp.gif", "/a.webp gif"),
    ])
    func withOtherFormatsTheExtensionIsAppended(_ path: String, _ expected: String) {
        #expect(named(path, Self.all) == expected)
    }

    @Test func whatNamesNothingIsRefused() {
        for path in ["/a", "/a.exe", "/a.gif/b", "/a.", ""] { #expect(named(path, Self.all) == nil, "\(path)") }
        #expect(named("/a.mp4", [.webp]) == nil && named("/a.webp.mp4", [.webp]) == "/a.webp mp4")
        #expect(named("/a.gif", [.webp]) == nil)
    }

    @Test func aClipIsItsOwnSourceWhereMountsHaveClips() {
        let sources: [SourceFormat] = [.gif, .mp4]
        let clip = MountPath("/a.mp4", sources: sources)
        #expect(clip?.source == "/a.mp4" && clip?.isSource == true && clip?.format == .mp4)
        let rendition = MountPath("/a.mp4.webm", sources: sources)
        #expect(rendition?.source == "/a.mp4" && rendition?.isSource == false)
        #expect(MountPath("/a.jpg", sources: sources)?.source == "/a.gif")
    }

    @Test func addressesLeadBackToTheSameSource() throws {
        for sources in [[.gif], Self.all, [.webp]] {
            for path in ["/a.gif", "/a.GIF", "/a.Gif", "/a.GIF.json", "/a.webp", "/a.webp.mp4", "/b.mp4", "/c.png.html"] {
                guard let path = MountPath(path[...], sources: sources) else { continue }
                let address = MountAddress(stem: path.stem, isSourcePath: path.stem == path.source)
                for target in ["mp4", "png", "webp", "gif"].map({ address.target($0) }) + [address.source] {
                    #expect(MountPath(target[...], sources: sources)?.source == path.source, "\(target)")
                }
            }
        }
    }
}
